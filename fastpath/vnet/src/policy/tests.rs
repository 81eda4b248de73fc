//! Each policy by its definition; all of them by what they can never do.
use super::*;

mod definitions;
mod properties;

fn policy(text: &str) -> Policy {
    let kind: PolicyKind = text.parse().expect("a policy");
    assert_eq!(kind.to_string().parse(), Ok(kind), "{text}");
    Policy::new(kind).expect("a fair policy")
}

#[test]
fn refusals_say_what_is_wrong() {
    for (text, said) in [
        ("tam:0", "tam:0: a limit of 0"),
        ("ahc:50:0", "a limit of 0"),
        ("ahc:20000:64", "10000 us at most"),
        ("coal:64:10001", "10000 us at most"),
        ("ahc:50", "no policy \"ahc:50\": plain, suppress"),
        ("tam:x", "\"x\" is not a whole number of entries"),
        ("ahc:-1:3", "\"-1\" is not a whole number of microseconds"),
        ("", "no policy"),
        ("TAM", "no policy"),
        ("adaptive:3", "no policy"),
    ] {
        let error = text.parse::<PolicyKind>().expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}
