use super::*;
use proptest::prelude::*;

fn parse(line: &str) -> Result<Request, String> {
    Request::parse(line.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn requests_mean_what_they_say() {
    let wait = |line| match parse(line) {
        Ok(Request::Stat { wait }) => wait,
        other => panic!("{other:?}"),
    };
    assert_eq!(wait(r#"{"do":"stat"}"#), WAIT);
    assert_eq!(wait(r#"{"wait_ns":50000,"do":"stat"}"#), Ns::from_us(50));
    let asked = r#"{"do":"set","pair":1,"tx_call_policy":"ahc:50:64","kick_policy":"defer:8:20","shadows":true}"#;
    let expected = Change {
        pair: Some(1),
        tx_calls: "ahc:50:64".parse().ok(),
        kicks: "defer:8:20".parse().ok(),
        shadows: Some(true),
        ..Change::default()
    };
    assert_eq!(parse(asked), Ok(Request::Set(expected)));
}

#[test]
fn what_is_no_request_is_refused_with_its_reason() {
    for (line, word) in [
        ("", "no request"),
        ("stat", "no request"),
        ("{}", "missing field `do`"),
        (r#"{"do":"stop"}"#, "unknown variant"),
        (r#"{"do":"stat","all":1}"#, "unknown field"),
        (r#"{"do":"set"}"#, "nothing is to be set"),
        (r#"{"do":"set","pair":1}"#, "nothing is to be set"),
        (r#"{"do":"stat","shadows":true}"#, "use set"),
        (r#"{"do":"set","pair":-1,"shadows":true}"#, "no request"),
        (r#"{"do":"set","tx_call_policy":"soon"}"#, "event-idx"),
        (r#"{"do":"set","rx_call_policy":"tam:0"}"#, "limit of 0"),
        (r#"{"do":"set","kick_policy":"defer:0:1"}"#, "1 to 1024"),
        (r#"{"do":"stat"}{"do":"stat"}"#, "trailing"),
    ] {
        let said = parse(line).expect_err(line);
        assert!(said.contains(word), "{line}: {said}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_a_request_or_an_error(line in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Request::parse(&line);
    }

    /// The words of requests in all sorts of places.
    #[test]
    fn words_in_any_order_are_too(words in prop::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("\"do\""), Just(":"), Just(","), Just("\"set\""), Just("\"stat\""),
        Just("\"pair\""), Just("\"shadows\""), Just("true"), Just("18446744073709551616"), Just("["),
        Just("\"tx_call_policy\""), Just("\"ahc:1:1\""), Just("\"coal:1\""), Just("null"), Just("-1e999"),
    ], 0..40)) {
        let _ = parse(&words.concat());
    }

    /// Each policy that has a name can be asked for by it.
    #[test]
    fn names_of_policies_come_back(limit in 1..u32::MAX, us in 0..=10_000u32) {
        for name in [format!("tam:{limit}"), format!("batch:{limit}"), format!("ahc:{us}:{limit}"),
                     format!("coal:{limit}:{us}"), format!("ahc-window:{us}:{limit}")] {
            let line = format!(r#"{{"do":"set","tx_call_policy":"{name}"}}"#);
            let kind: PolicyKind = name.parse().expect("a policy");
            let Ok(Request::Set(change)) = parse(&line) else { panic!("{line}") };
            prop_assert_eq!(change.tx_calls, Some(kind));
            prop_assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }
}
