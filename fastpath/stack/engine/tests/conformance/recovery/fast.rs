//! Losses that later segments reveal.
use crate::support::host::config;
use crate::support::script::Script;
use hopscope_stack_engine::Ns;
use hopscope_stack_engine::config::{Config, Congestion};

pub fn reno() -> Config {
    let mut config = config();
    config.tcp.congestion = Congestion::NewReno;
    config
}

/// Ten segments of 1000 bytes in flight, sent to a peer that has acknowledged the handshake after 10 ms.
pub fn ten_in_flight(config: Config, options: &str) -> Script {
    let mut script = Script::listening(config);
    script.inject(&format!("S 0:0(0) win 65000 <mss 1000{options}>"));
    script.expect("S. 0:0(0) ack 1");
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 1 win 65000");
    script.accept();
    assert_eq!(script.write(1, 10_000), 10_000);
    for first in 0..10 {
        let start = 1 + 1000 * first;
        let flags = if first == 9 { "P." } else { "." };
        script.expect(&format!("{flags} {start}:{}(1000) ack 1", start + 1000));
    }
    script.expect_nothing();
    script.host.run_ms(10);
    script
}

#[test]
fn rfc6675_sack_single_loss() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 1 <sack 1001:2001>");
    script.inject(". 1:1(0) ack 1 <sack 1001:3001>");
    script.expect_nothing();
    script.inject(". 1:1(0) ack 1 <sack 1001:4001>");
    script.expect(". 1:1001(1000) ack 1");
    // Nothing else is lost, and all was sent: the rest of the SACKs bring no retransmission.
    for end in 5..=10 {
        script.inject(&format!(". 1:1(0) ack 1 <sack 1001:{}001>", end));
    }
    script.host.run_ms(5);
    script.inject(". 1:1(0) ack 10001");
    script.expect_nothing();
    let info = script.info();
    assert_eq!((info.unacked, info.lost, info.total_retrans), (0, 0, 1));
    assert_eq!(script.host.engine.counters().timeouts, 0);
}

/// RFC 8985, 6.2: one SACK may reveal the loss, when more than the reordering window has passed.
#[test]
fn rfc8985_6_2_one_sack_after_the_reordering_window() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 1 <sack 9001:10001>");
    script.expect_nothing();
    // A quarter of the round trip of 10 ms.
    script.run_until_sent(Ns::from_ms(12));
    // PRR (RFC 6937) lets out what is delivered, and at least one: the timer delivers nothing.
    let mut next = 1;
    for round in 0..9 {
        let mut sent = 0;
        while let Some((_, segment)) = script.take() {
            let start = segment.seq.wrapping_sub(script.engine_iss);
            assert_eq!(
                (start, segment.payload.len()),
                (next, 1000),
                "in order, each once"
            );
            next += 1000;
            sent += 1;
        }
        assert!(sent <= 1 + 2 * round, "{sent} at once");
        script.host.run_ms(10);
        let sack = if next < 9_001 {
            " <sack 9001:10001>"
        } else {
            ""
        };
        let ack = if next < 9_001 { next } else { 10_001 };
        script.inject(&format!(". 1:1(0) ack {ack}{sack}"));
    }
    assert_eq!(script.info().unacked, 0);
    assert_eq!(script.host.engine.counters().timeouts, 0);
}

#[test]
fn rfc6675_two_holes_and_a_partial_ack() {
    let mut script = ten_in_flight(config(), ",sackOK");
    // 1:1001 and 4001:5001 are lost.
    for sack in ["1001:2001", "1001:3001", "1001:4001"] {
        script.inject(&format!(". 1:1(0) ack 1 <sack {sack}>"));
    }
    script.expect(". 1:1001(1000) ack 1");
    for end in ["6001", "7001", "8001"] {
        script.inject(&format!(". 1:1(0) ack 1 <sack 5001:{end} 1001:4001>"));
    }
    script.expect(". 4001:5001(1000) ack 1");
    script.inject(". 1:1(0) ack 1 <sack 5001:10001 1001:4001>");
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 4001 <sack 5001:10001>");
    script.inject(". 1:1(0) ack 10001");
    script.expect_nothing();
    assert_eq!(script.info().total_retrans, 2);
    assert_eq!(script.host.engine.counters().timeouts, 0);
}

#[test]
fn rfc6582_without_sack_three_duplicates() {
    let mut script = ten_in_flight(reno(), "");
    for _ in 0..2 {
        script.inject(". 1:1(0) ack 1 win 65000");
        script.expect_nothing();
    }
    script.inject(". 1:1(0) ack 1 win 65000");
    script.expect(". 1:1001(1000) ack 1");
    // RFC 6582, 3.2: a partial acknowledgement has the next hole retransmitted.
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 5001 win 65000");
    script.expect(". 5001:6001(1000) ack 1");
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 10001 win 65000");
    script.expect_nothing();
    let info = script.info();
    assert_eq!((info.unacked, info.total_retrans), (0, 2));
}

#[test]
fn rfc6582_a_window_update_is_no_duplicate() {
    let mut script = ten_in_flight(reno(), "");
    for window in [65_001, 65_002, 65_003, 65_004] {
        script.inject(&format!(". 1:1(0) ack 1 win {window}"));
    }
    script.expect_nothing();
}

#[test]
fn rfc5681_3_2_data_is_no_duplicate_ack() {
    let mut script = ten_in_flight(reno(), "");
    for place in 0..4 {
        let start = 1 + place * 100;
        script.inject(&format!("P. {start}:{}(100) ack 1 win 65000", start + 100));
    }
    script.host.run_ms(1);
    while let Some((_, segment)) = script.take() {
        assert!(
            segment.payload.is_empty(),
            "a retransmission: {}",
            script.show(&segment)
        );
    }
}

/// RFC 8985, 5: a lost retransmission is found by what was sent after it.
#[test]
fn rfc8985_lost_retransmission() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 1 <sack 1001:4001>");
    script.expect(". 1:1001(1000) ack 1");
    assert_eq!(script.write(10_001, 4_000), 4_000);
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 1 <sack 1001:10001>");
    // New data goes out after the retransmission.
    script.host.run_ms(3);
    let mut sent_new = 0;
    while let Some((_, segment)) = script.take() {
        sent_new += segment.payload.len() as u32;
    }
    assert_eq!(sent_new, 4_000, "the new data");
    script.host.run_ms(12);
    script.inject(". 1:1(0) ack 1 <sack 1001:14001>");
    script.run_until_sent(Ns::from_ms(20));
    script.expect(". 1:1001(1000) ack 1");
    assert_eq!(script.host.engine.counters().lost_retransmit, 1);
    assert_eq!(script.host.engine.counters().timeouts, 0);
}

/// RFC 2883, 4, and 8985, 6.2: a duplicate report of a retransmission undoes the reduction (Linux).
#[test]
fn rfc2883_dsack_undoes_a_spurious_recovery() {
    let mut script = ten_in_flight(config(), ",sackOK");
    let before = script.info().snd_cwnd;
    script.inject(". 1:1(0) ack 1 <sack 1001:4001>");
    script.expect(". 1:1001(1000) ack 1");
    // The original was only late.
    script.inject(". 1:1(0) ack 10001");
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 10001 <sack 1:1001>");
    let info = script.info();
    assert!(
        info.snd_cwnd >= before,
        "cwnd {} of {before}",
        info.snd_cwnd
    );
    let counters = script.host.engine.counters();
    assert_eq!(counters.dsack_recv, 1);
    assert_eq!(
        counters.dsack_undo + counters.full_undo + counters.partial_undo,
        1
    );
}

/// RFC 2018, 4, and RFC 9293, 3.10.7.4: an ACK that was overtaken acknowledges nothing, and still says what arrived.
#[test]
fn rfc2018_4_sacks_of_an_ack_below_snd_una() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 3001");
    script.expect_nothing();
    script.inject(". 1:1(0) ack 2001 <sack 4001:7001>");
    script.expect(". 3001:4001(1000) ack 1");
    assert_eq!(script.info().sacked, 3);
}
