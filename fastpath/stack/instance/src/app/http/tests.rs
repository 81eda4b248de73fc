use super::*;

fn taken(text: &str) -> (usize, Option<Answer>, bool, u64) {
    let (mut exchange, mut counts) = (Exchange::default(), AppCounts::default());
    let used = exchange.take(text.as_bytes(), &mut counts);
    (used, exchange.owed, exchange.ends, counts.corrupt)
}

#[test]
fn a_request_is_taken_whole_or_not_at_all() {
    let one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(taken(one), (one.len(), Some(Answer::Whole), false, 0));
    assert_eq!(taken(&one[..one.len() - 1]), (0, None, false, 0));
    let two = format!("{one}{one}");
    assert_eq!(taken(&two).0, one.len());
}

#[test]
fn a_connection_ends_when_asked_to() {
    let ends = |text: &str| taken(text).2;
    assert!(ends(
        "GET / HTTP/1.1\r\nHost: a\r\nconnection: x,Close\r\n\r\n"
    ));
    assert!(ends("GET / HTTP/1.0\r\n\r\n"));
    assert!(!ends("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    assert!(!ends("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"));
}

/// RFC 9112, C.2.2: else an HTTP/1.0 client waits for the end of a connection that is kept.
#[test]
fn a_kept_connection_of_1_0_is_told_so() {
    let asked = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let answer = taken(asked).1.unwrap();
    let http = Http::new(5);
    let text = String::from_utf8(http.bytes(answer).to_vec()).unwrap();
    assert!(
        text.contains("\r\nConnection: keep-alive\r\n\r\nhopsc"),
        "{text}"
    );
}

#[test]
fn what_is_no_request_is_refused() {
    for (text, answer) in [
        ("hello\r\n\r\n", BAD),
        ("GET / HTTP/1.1\r\n\r\n", BAD),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            BAD,
        ),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", NOT_THIS_VERSION),
        (&"x".repeat(HEAD_MAX), TOO_LONG),
    ] {
        let (_, owed, ends, corrupt) = taken(text);
        assert_eq!(owed, Some(Answer::Refusal(answer)), "{text}");
        assert!(ends && corrupt == 1);
    }
    let put = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let refused = Some(Answer::Refusal(NOT_ALLOWED));
    assert_eq!(taken(put), (put.len(), refused, false, 1));
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    let text = "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(taken(text), (text.len(), Some(Answer::Whole), false, 0));
    assert_eq!(taken("\r\n"), (2, None, false, 0));
}

/// RFC 9112, 6: what follows the head is of this request, not the next one.
#[test]
fn a_body_belongs_to_its_request() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\n";
    for rest in [
        "Content-Length: 30\r\n\r\nGET / HTTP/1.1\r\nHost: evil\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\n\r\n",
    ] {
        let request = format!("{head}{rest}");
        let two = format!("{request}{head}\r\n");
        assert_eq!(taken(&two), (request.len(), Some(Answer::Whole), false, 0));
    }
}

#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let (mut exchange, mut counts) = (Exchange::default(), AppCounts::default());
    assert_eq!(exchange.take(head.as_bytes(), &mut counts), head.len());
    assert_eq!(exchange.owed.take(), Some(Answer::Continue));
    assert_eq!(exchange.take(b"abc", &mut counts), 3);
    assert_eq!(exchange.owed, Some(Answer::Whole));
}
