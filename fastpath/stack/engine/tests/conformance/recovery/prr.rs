//! What each ACK lets out during a recovery: RFC 6937, as RFC 9937 revises it.
use super::fast::{reno, ten_in_flight};
use crate::support::host::config;
use crate::support::script::Script;
use hopscope_stack_engine::Ns;

/// Sequence numbers, from the connection's first, of all segments that are out.
fn sent(script: &mut Script) -> Vec<u32> {
    let iss = script.engine_iss;
    std::iter::from_fn(|| script.take())
        .map(|(_, segment)| segment.seq.wrapping_sub(iss))
        .collect()
}

/// Segment by segment: in flight is what ssthresh allows from the first retransmission on.
#[test]
fn rfc9937_one_segment_for_each_that_arrives() {
    let mut script = ten_in_flight(config(), ",sackOK");
    for end in [2001, 3001] {
        script.inject(&format!(". 1:1(0) ack 1 <sack 1001:{end}>"));
        assert_eq!(sent(&mut script), []);
    }
    script.inject(". 1:1(0) ack 1 <sack 1001:4001>");
    assert_eq!(sent(&mut script), [1]);
    let info = script.info();
    assert_eq!((info.snd_cwnd, info.snd_ssthresh), (7, 7));
    assert_eq!(script.write(10_001, 7_000), 7_000);
    assert_eq!(sent(&mut script), []);
    for (end, next) in (5..=10).zip(10..) {
        script.inject(&format!(". 1:1(0) ack 1 <sack 1001:{end}001>"));
        assert_eq!(sent(&mut script), [next * 1000 + 1]);
        assert_eq!(script.info().snd_cwnd, 7);
    }
    script.inject(". 1:1(0) ack 10001");
    assert_eq!(sent(&mut script), [16_001]);
    let info = script.info();
    assert_eq!((info.snd_cwnd, info.snd_ssthresh), (7, 7));
}

/// RFC 6937, 3., the proportional part: Reno halves, so that every second ACK lets a segment out, in no burst.
#[test]
fn rfc6937_the_reduction_is_spread_over_a_round_trip() {
    let mut script = ten_in_flight(reno(), ",sackOK");
    script.inject(". 1:1(0) ack 10001");
    // A window of twenty.
    assert_eq!(script.write(10_001, 20_000), 20_000);
    assert_eq!(sent(&mut script).len(), 20);
    assert_eq!(script.write(30_001, 20_000), 20_000);
    script.host.run_ms(10);
    let (mut total, mut most) = (0, 0);
    for end in 12..=30 {
        script.inject(&format!(". 1:1(0) ack 10001 <sack 11001:{end}001>"));
        let now = sent(&mut script).len();
        (total, most) = (total + now, most.max(now));
    }
    // Of 17 ACKs in the recovery (two came before it), 10 of 18 segments that were in flight when it began.
    assert!((9..=10).contains(&total), "{total} segments");
    assert_eq!(most, 1, "segments for one ACK");
    assert_eq!(script.info().snd_ssthresh, 10);
}

/// What the reordering timer finds lost in a recovery makes room: cwnd is still what the last ACK made it (Linux tcp_rack_reo_timeout).
#[test]
fn rfc9937_losses_that_the_timer_finds_go_out_at_once() {
    let mut script = ten_in_flight(config(), ",sackOK");
    // Reordering was seen, so that a quarter of the round trip is waited for.
    script.inject(". 1:1(0) ack 1 <sack 2001:3001>");
    script.inject(". 1:1(0) ack 3001");
    script.inject(". 1:1(0) ack 10001");
    assert_eq!(script.write(10_001, 10_000), 10_000);
    assert_eq!(sent(&mut script).len(), 10);
    script.host.run_ms(13);
    script.inject(". 1:1(0) ack 10001 <sack 11001:14001>");
    assert_eq!(sent(&mut script), []);
    script.run_until_sent(Ns::from_ms(4));
    assert_eq!(sent(&mut script), [10_001]);
    assert_eq!(script.write(20_001, 10_000), 10_000);
    assert_eq!(sent(&mut script), []);
    script.inject(". 1:1(0) ack 10001 <sack 11001:20001>");
    let new: Vec<u32> = (0..6).map(|n| 20_001 + 1_000 * n).collect();
    assert_eq!(sent(&mut script), new);
    script.host.run_ms(10);
    // Of the retransmission and the new ones the last came.
    script.inject(". 1:1(0) ack 10001 <sack 25001:26001 11001:20001>");
    assert_eq!(sent(&mut script), [26_001]);
    assert_eq!(script.info().snd_cwnd, 7);
    script.run_until_sent(Ns::from_ms(4));
    assert_eq!(
        sent(&mut script),
        [10_001, 20_001, 21_001, 22_001, 23_001, 24_001]
    );
    assert_eq!(script.info().snd_cwnd, 7);
}

/// An ACK that was overtaken has SACKs that are news.
#[test]
fn rfc6675_sacks_below_snd_una_count() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 4001");
    assert_eq!(sent(&mut script), []);
    script.inject(". 1:1(0) ack 3001 <sack 5001:7001>");
    assert_eq!(script.info().sacked, 2);
}

/// RFC 3465, 2.1: bytes that were SACKed before are not newly acknowledged.
#[test]
fn rfc3465_2_1_what_was_sacked_does_not_count_again() {
    let mut script = ten_in_flight(config(), ",sackOK");
    assert_eq!(script.write(10_001, 10_000), 10_000);
    // RFC 3042.
    script.inject(". 1:1(0) ack 1 <sack 1001:2001>");
    script.inject(". 1:1(0) ack 1 <sack 1001:3001>");
    assert_eq!(sent(&mut script), [10_001, 11_001]);
    script.inject(". 1:1(0) ack 3001");
    assert_eq!(script.info().snd_cwnd, 11);
    assert_eq!(sent(&mut script), [12_001, 13_001]);
}
