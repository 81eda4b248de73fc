//! HTTP/1.1 by hand, and by clients that send more than wrk does.
use super::cable::{STACK, Way, files, namespace};
use super::serving::Serving;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{ApacheBench, Curl, Netns};
    suite.case("stack::http_is_as_rfc_9112_has_it", &[Netns], by_hand);
    suite.case("stack::http_takes_bodies_of_curl", &[Netns, Curl], bodies);
    suite.case(
        "stack::http_answers_curl_in_parallel",
        &[Netns, Curl],
        parallel,
    );
    suite.case("stack::http_answers_ab", &[Netns, ApacheBench], ab);
}

/// What comes back until the server closes, or, where it keeps the connection, until we do.
fn exchange(text: &str) -> Result<String> {
    let mut stream = TcpStream::connect((STACK, 80))?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut back = String::new();
    stream.read_to_string(&mut back)?;
    Ok(back)
}

/// The statuses of all responses.
fn statuses(back: &str) -> Vec<&str> {
    let heads = back.split("HTTP/1.1 ").skip(1);
    heads.map(|head| head.get(..3).unwrap_or(head)).collect()
}

fn by_hand() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=http:5"])?;
    let one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = smuggled.len();
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nLong: {}", "x".repeat(10_000));
    for (text, expected) in [
        (one.to_owned(), &["200"][..]),
        (one.repeat(3), &["200", "200", "200"]),
        // 2.2: empty lines before a request.
        (format!("\r\n\r\n{one}\r\n{one}"), &["200", "200"]),
        // 3.2: a Host.
        ("GET / HTTP/1.1\r\n\r\n".into(), &["400"]),
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n{one}"),
            &["400"],
        ),
        ("GET / HTTP/1.0\r\n\r\n".into(), &["200"]),
        // 6: a body is of its request.
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{smuggled}{one}"),
            &["200", "200"],
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{smuggled}\r\n0\r\n\r\n{one}"
            ),
            &["200", "200"],
        ),
        // 6.3: two lengths are an attack.
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
            ),
            &["400"],
        ),
        // 5.1: no space before the colon.
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n".into(), &["400"]),
        // 9.6: the connection ends with the response.
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n{one}"),
            &["200"],
        ),
        (
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc{one}"),
            &["405", "200"],
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc{one}"
            ),
            &["100", "200", "200"],
        ),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".into(), &["505"]),
        (long, &["431"]),
        // The end comes before the request does.
        (one[..20].into(), &[]),
    ] {
        let back = exchange(&text)?;
        ensure!(statuses(&back) == expected, "{text:?}: {back:?}");
    }
    // Who is refused and stays keeps nobody else waiting.
    let mut stays = TcpStream::connect((STACK, 80))?;
    stays.write_all(b"hello\r\n\r\n")?;
    let mut back = String::new();
    stays.read_to_string(&mut back)?;
    ensure!(statuses(&back) == ["400"], "{back:?}");
    ensure!(
        statuses(&exchange(one)?) == ["200"],
        "nothing else is served"
    );
    drop(stays);
    let summary = serving.stop()?;
    ensure!(summary["app"]["failed"] == 0, "{summary}");
    Ok(())
}

/// With `Expect: 100-continue` (from 1 MiB on), with a length, and in chunks.
fn bodies() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=http:600"])?;
    let file = files().join("body");
    std::fs::write(&file, "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(60_000))?;
    let data = format!("@{}", file.display());
    let url = format!("http://{STACK}/");
    for (more, status) in [
        (&["-X", "GET"][..], "200"),
        (&["-X", "GET", "-H", "Transfer-Encoding: chunked"], "200"),
        (&[], "405"),
    ] {
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--show-error",
            "--max-time",
            "20",
            "--data-binary",
            &data,
        ]);
        curl.args(more).args([
            "--write-out",
            "%{http_code} %{num_connects}\n",
            "--output",
            "/dev/null",
        ]);
        // Twice over the same connection: what is left of a body would be the next request.
        curl.args([&url, "--output", "/dev/null", &url]);
        let out = run(&mut curl)?;
        ensure!(
            out.code == Some(0),
            "{more:?}: {}{}",
            out.stdout,
            out.stderr
        );
        let expected = format!("{status} 1\n{status} 0\n");
        ensure!(out.stdout == expected, "{more:?}: {}", out.stdout);
    }
    let summary = serving.stop()?;
    ensure!(summary["app"]["accepted"] == 3, "{summary}");
    ensure!(summary["app"]["answered"] == 6, "{summary}");
    Ok(())
}

/// Every body is what the server says that it is.
fn parallel() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=http:100000"])?;
    let dir = files();
    let last = counts().pick(60, 2_000);
    let url = format!("http://{STACK}/[1-{last}]");
    let out = run(Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--parallel",
            "--parallel-max",
            "30",
        ])
        .args(["--max-time", "60", "--output", "part-#1", &url])
        .current_dir(&dir))?;
    ensure!(out.code == Some(0), "{}", out.stderr);
    let text = b"hopscope stack serve --app http. ";
    let expected: Vec<u8> = text.iter().copied().cycle().take(100_000).collect();
    for n in 1..=last {
        let part = std::fs::read(dir.join(format!("part-{n}")))?;
        ensure!(part == expected, "part {n}: {} bytes", part.len());
    }
    let summary = serving.stop()?;
    ensure!(summary["app"]["answered"] == last, "{summary}");
    ensure!(summary["app"]["failed"] == 0, "{summary}");
    Ok(())
}

/// HTTP/1.0, kept alive and not.
fn ab() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=http:2000"])?;
    let requests = counts().pick("500", "50000");
    let url = format!("http://{STACK}/");
    for more in [&["-k"][..], &[]] {
        let mut ab = Command::new("ab");
        ab.args(["-q", "-c", "20", "-n", requests]).args(more);
        let out = run(ab.arg(&url))?;
        let has = |line: &str| {
            out.stdout
                .lines()
                .any(|l| l.split_whitespace().eq(line.split(' ')))
        };
        ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
        let bytes = requests.parse::<u64>()? * 2_000;
        for line in [
            format!("Complete requests: {requests}"),
            "Failed requests: 0".into(),
            format!("HTML transferred: {bytes} bytes"),
        ] {
            ensure!(has(&line), "no {line}: {}", out.stdout);
        }
    }
    let summary = serving.stop()?;
    ensure!(summary["app"]["failed"] == 0, "{summary}");
    Ok(())
}
