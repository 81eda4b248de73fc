//! When the receiver acknowledges.
use crate::support::host::config;
use crate::support::script::Script;
use hopscope_stack_engine::{HowToShut, Ns};

/// More than Linux' 16 quick acknowledgements, each piggybacked, so that delays begin.
fn interactive() -> (Script, u32, u32) {
    let mut script = Script::established();
    let (mut theirs, mut ours) = (1, 1);
    for _ in 0..20 {
        script.inject(&format!("P. {theirs}:{}(100) ack {ours}", theirs + 100));
        script.read(theirs, 100);
        theirs += 100;
        assert_eq!(script.write(ours, 100), 100);
        ours += 100;
        while script.take().is_some() {}
        script.host.run_ms(1);
        script.inject(&format!(". {theirs}:{theirs}(0) ack {ours}"));
        script.host.run_ms(100);
        while script.take().is_some() {}
    }
    (script, theirs, ours)
}

/// RFC 1122, 4.2.3.2: at most 0.5 s; Linux: 40 to 200 ms.
#[test]
fn rfc1122_4_2_3_2_delayed_ack() {
    let (mut script, theirs, ours) = interactive();
    script.inject(&format!("P. {theirs}:{}(100) ack {ours}", theirs + 100));
    script.expect_nothing();
    let ack = format!(". {ours}:{ours}(0) ack {}", theirs + 100);
    script.expect_within(Ns::from_ms(35), Ns::from_ms(200), &ack);
    assert!(script.host.engine.counters().delayed_acks > 0);
}

/// The reply carries the acknowledgement.
#[test]
fn rfc1122_4_2_3_2_ack_with_the_reply() {
    let (mut script, theirs, ours) = interactive();
    script.inject(&format!("P. {theirs}:{}(100) ack {ours}", theirs + 100));
    script.expect_nothing();
    assert_eq!(script.write(ours, 50), 50);
    script.expect(&format!("P. {ours}:{}(50) ack {}", ours + 50, theirs + 100));
    script.host.run_ms(190);
    script.expect_nothing();
}

/// RFC 5681, 4.2: every second full segment at least.
#[test]
fn rfc5681_4_2_every_second_segment() {
    let (mut script, theirs, ours) = interactive();
    let mut place = theirs;
    let mut acks = 0;
    for _ in 0..20 {
        script.inject(&format!(". {place}:{}(1000) ack {ours}", place + 1000));
        place += 1000;
        while let Some((_, segment)) = script.take() {
            assert!(segment.payload.is_empty());
            acks += 1;
        }
        script.read(place - 1000, 1000);
    }
    assert!(
        (10..=20).contains(&acks),
        "{acks} acknowledgements of 20 segments"
    );
}

/// RFC 5681, 4.2: out of order, and what fills a hole, at once; RFC 2018, 4: the newest block first.
#[test]
fn rfc2018_4_blocks() {
    let mut script = Script::established_with(config(), "mss 1000,sackOK", 32_000);
    script.inject(". 2001:3001(1000) ack 1");
    script.expect(". 1:1(0) ack 1 <sack 2001:3001>");
    script.inject(". 6001:7001(1000) ack 1");
    script.expect(". 1:1(0) ack 1 <sack 6001:7001 2001:3001>");
    script.inject(". 4001:5001(1000) ack 1");
    script.expect(". 1:1(0) ack 1 <sack 4001:5001 6001:7001 2001:3001>");
    script.inject(". 5001:6001(1000) ack 1");
    script.expect(". 1:1(0) ack 1 <sack 4001:7001 2001:3001>");
    script.inject(". 1:1001(1000) ack 1");
    script.expect(". 1:1(0) ack 1001 <sack 4001:7001 2001:3001>");
    script.inject(". 1001:2001(1000) ack 1");
    script.expect(". 1:1(0) ack 3001 <sack 4001:7001>");
    script.inject(". 3001:4001(1000) ack 1");
    script.expect(". 1:1(0) ack 7001 <>");
    script.read(1, 7_000);
}

/// At most four blocks, three beside timestamps, whatever is missing.
#[test]
fn rfc2018_3_as_many_blocks_as_fit() {
    let mut script = Script::established_with(config(), "mss 1000,sackOK", 32_000);
    for hole in 0..10 {
        let start = 1001 + 2000 * hole;
        script.inject(&format!(". {start}:{}(1000) ack 1", start + 1000));
    }
    let mut last = None;
    while let Some((_, segment)) = script.take() {
        last = Some(segment);
    }
    assert_eq!(last.expect("an acknowledgement").sack().len(), 4);
}

/// RFC 2883, 4.1: a duplicate is reported first.
#[test]
fn rfc2883_4_1_duplicates() {
    let mut script = Script::established_with(config(), "mss 1000,sackOK", 32_000);
    script.inject(". 1:1001(1000) ack 1");
    script.host.run_ms(200);
    script.expect(". 1:1(0) ack 1001");
    script.inject(". 1:1001(1000) ack 1");
    script.expect(". 1:1(0) ack 1001 <sack 1:1001>");
    // 4.2: of out-of-order data, before the block that holds it.
    script.inject(". 2001:3001(1000) ack 1");
    script.expect(". 1:1(0) ack 1001 <sack 2001:3001>");
    script.inject(". 2001:3001(1000) ack 1");
    script.expect(". 1:1(0) ack 1001 <sack 2001:3001 2001:3001>");
    // Once only.
    script.inject(". 4001:5001(1000) ack 1");
    script.expect(". 1:1(0) ack 1001 <sack 4001:5001 2001:3001>");
    let counters = script.host.engine.counters();
    assert_eq!((counters.dsack_old_sent, counters.dsack_ofo_sent), (1, 1));
}

/// 4.2.2: a segment that overlaps both.
#[test]
fn rfc2883_4_2_partial_duplicate() {
    let mut script = Script::established_with(config(), "mss 1000,sackOK", 32_000);
    script.inject(". 1:1001(1000) ack 1");
    script.host.run_ms(200);
    script.expect(". 1:1(0) ack 1001");
    script.inject(". 501:1501(1000) ack 1");
    script.host.run_ms(200);
    script.expect(". 1:1(0) ack 1501 <sack 501:1001>");
    script.read(1, 1_500);
}

/// A segment of many (GRO without the device's word): larger than any MSS.
#[test]
fn rfc9293_3_10_7_4_a_large_segment_is_taken_whole() {
    let mut script = Script::established_with(config(), "mss 1100,sackOK,wscale 7", 320);
    script.inject(". 1:10001(10000) ack 1 win 320");
    script.expect(". 1:1(0) ack 10001");
    script.read(1, 10_000);
}

/// RFC 9293, 3.10.7.4, eighth: FIN is acknowledged at once.
#[test]
fn rfc9293_3_10_7_4_fin_is_acknowledged_at_once() {
    let mut script = Script::established();
    script.inject("F. 1:1(0) ack 1");
    script.expect(". 1:1(0) ack 2");
}

/// RFC 9293, 3.10.7.4: what is not acceptable is answered, each time. Only segments without data are limited (Linux tcp_invalid_ratelimit).
#[test]
fn rfc9293_3_10_7_4_data_outside_the_window_are_answered_each_time() {
    let mut script = Script::established();
    for offset in [1 << 17, 1 << 24, 1 << 30, (1 << 31) + (1 << 24)] {
        for flags in ["P.", "F."] {
            let (start, length) = (1 + offset, u32::from(flags == "P.") * 100);
            for _ in 0..3 {
                let end = start + length;
                script.inject(&format!("{flags} {start}:{end}({length}) ack 1"));
                script.expect(". 1:1(0) ack 1");
            }
        }
    }
    script.inject(". 16777216:16777216(0) ack 1");
    script.expect(". 1:1(0) ack 1");
    script.inject(". 16777216:16777216(0) ack 1");
    script.expect_nothing();
    assert_eq!(script.host.engine.counters().ack_skipped_seq, 1);
}

/// The same in TIME-WAIT.
#[test]
fn rfc9293_3_10_7_4_fin_again_in_time_wait_is_answered_each_time() {
    let mut script = Script::established();
    let (now, id) = (script.host.now, script.id());
    let shut = script.host.engine.shutdown(now, id, HowToShut::Write);
    shut.expect("shutdown");
    script.expect("F. 1:1(0) ack 1");
    for _ in 0..3 {
        script.inject("F. 1:1(0) ack 2");
        script.expect(". 2:2(0) ack 2");
    }
}
