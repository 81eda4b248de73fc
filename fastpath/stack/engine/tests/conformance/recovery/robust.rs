//! Acknowledgements that are wrong, or made to harm.
use super::fast::{reno, ten_in_flight};
use crate::support::host::config;
use crate::support::script::Script;

#[test]
fn rfc2018_sack_scoreboard_robustness() {
    let blocks = [
        // Beyond what was sent, inverted, empty, below SND.UNA, half and half, far away.
        "20001:30001",
        "5001:3001",
        "4001:4001",
        "-5000:-4000",
        "9001:20001",
        "-5000:3001",
        "1000000000:2000000000",
        "1:1001",
        "0:10001",
        "1:4294967295",
    ];
    for block in blocks {
        let mut script = ten_in_flight(config(), ",sackOK");
        for _ in 0..5 {
            script.inject(&format!(". 1:1(0) ack 1 <sack {block}>"));
        }
        script.host.run_ms(1);
        while let Some((_, segment)) = script.take() {
            let seq = segment.seq.wrapping_sub(script.engine_iss);
            assert!(
                seq + segment.payload.len() as u32 <= 10_001,
                "{block}: {}",
                script.show(&segment)
            );
        }
        assert!(
            script.info().sacked <= 10,
            "{block}: {} sacked",
            script.info().sacked
        );
        // Whatever it thought: the connection goes on.
        script.inject(". 1:1(0) ack 10001");
        assert_eq!(script.info().unacked, 0, "{block}");
        assert_eq!(script.write(10_001, 1_000), 1_000);
        script.expect("P. 10001:11001(1000) ack 1");
    }
}

/// RFC 5681, 3.1, and 3465: acknowledgements in pieces do not open the window faster than whole ones.
#[test]
fn rfc3465_ack_division() {
    for config in [config(), reno()] {
        let mut script = ten_in_flight(config, ",sackOK");
        let before = script.info().snd_cwnd;
        for end in 2..1001 {
            script.inject(&format!(". 1:1(0) ack {end}"));
        }
        script.inject(". 1:1(0) ack 1001");
        let after = script.info().snd_cwnd;
        assert!(
            after <= before + 2,
            "one segment in 1000 pieces: cwnd {before} to {after}"
        );
    }
}

/// Acknowledgements of what was not sent open nothing (Savage et al. 1999).
#[test]
fn rfc9293_3_10_7_4_optimistic_acks() {
    let mut script = ten_in_flight(config(), ",sackOK");
    let before = script.info();
    for _ in 0..100 {
        script.inject(". 1:1(0) ack 50001");
    }
    assert_eq!(script.info().snd_cwnd, before.snd_cwnd);
    assert_eq!(script.info().unacked, before.unacked);
    let answers = std::iter::from_fn(|| script.take()).count();
    assert!(
        answers <= 2,
        "{answers} answers to 100 bad segments: not limited"
    );
    script.inject(". 1:1(0) ack 10001");
    assert_eq!(script.info().unacked, 0);
}

/// RFC 7661 and Linux: a window that was not used does not grow.
#[test]
fn rfc7661_application_limited() {
    let mut script = Script::established_with(config(), "mss 1000,sackOK", 65_000);
    let before = script.info().snd_cwnd;
    let mut place = 1;
    for _ in 0..100 {
        assert_eq!(script.write(place, 1000), 1000);
        place += 1000;
        script.host.run_ms(10);
        script.inject(&format!(". 1:1(0) ack {place} win 65000"));
        script.host.run_ms(10);
    }
    let after = script.info().snd_cwnd;
    assert!(
        after <= before + 1,
        "cwnd {before} to {after} with one segment in flight"
    );
}

/// RFC 9293, 3.8.6: the right edge may move left; what is in flight beyond it stays in order and is retransmitted.
#[test]
fn rfc9293_3_8_6_shrinking_window() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 2001 win 1000");
    script.inject(". 1:1(0) ack 2001 win 0");
    assert_eq!(script.write(10_001, 5_000), 5_000);
    script.expect_nothing();
    // RFC 9293, 3.8.6.1: something goes on probing.
    script.host.run_ms(2_000);
    let probes = std::iter::from_fn(|| script.take()).count();
    assert!((1..=12).contains(&probes), "{probes} segments in 2 s");
    script.inject(". 1:1(0) ack 10001 win 65000");
    script.expect(". 10001:11001(1000) ack 1");
}
