//! Losses at the end of what was sent.
use super::fast::ten_in_flight;
use crate::support::host::config;
use hopscope_stack_engine::Ns;

/// RFC 8985, 7.2: PTO is 2 × SRTT, and with more than one segment in flight no delayed ACK is allowed for.
#[test]
fn rfc8985_7_2_tail_loss_probe() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 8001");
    // Last two are lost: the probe is the last segment.
    script.expect_within(
        Ns::from_ms(15),
        Ns::from_ms(60),
        "P. 9001:10001(1000) ack 1",
    );
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 8001 <sack 9001:10001>");
    script.run_until_sent(Ns::from_ms(20));
    script.expect(". 8001:9001(1000) ack 1");
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 10001");
    let counters = *script.host.engine.counters();
    assert_eq!((counters.loss_probes, counters.timeouts), (1, 0));
    script.host.run_ms(1_000);
    script.expect_nothing();
}

/// RFC 8985, 7.4: a probe that repaired the only loss counts as a loss for congestion control.
#[test]
fn rfc8985_7_4_probe_that_repairs_reduces() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 9001");
    script.expect_within(
        Ns::from_ms(15),
        Ns::from_ms(250),
        "P. 9001:10001(1000) ack 1",
    );
    script.host.run_ms(10);
    let before = script.info().snd_cwnd;
    script.inject(". 1:1(0) ack 10001");
    // Not before the next acknowledgement is it clear that the probe was no duplicate.
    assert_eq!(script.write(10_001, 1_000), 1_000);
    script.expect("P. 10001:11001(1000) ack 1");
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 11001");
    assert!(
        script.info().snd_cwnd < before,
        "cwnd {} of {before}",
        script.info().snd_cwnd
    );
    assert_eq!(script.host.engine.counters().loss_probe_recovery, 1);
}

/// … and one that was not needed does not.
#[test]
fn rfc8985_7_4_probe_that_was_a_duplicate_does_not() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 9001");
    script.expect_within(
        Ns::from_ms(15),
        Ns::from_ms(250),
        "P. 9001:10001(1000) ack 1",
    );
    let before = script.info().snd_cwnd;
    script.inject(". 1:1(0) ack 10001 <sack 9001:10001>");
    script.expect_nothing();
    assert!(
        script.info().snd_cwnd >= before,
        "cwnd {} of {before}",
        script.info().snd_cwnd
    );
    assert_eq!(script.host.engine.counters().loss_probe_recovery, 0);
}

#[test]
fn rfc8985_7_2_no_probe_without_sack() {
    let mut script = ten_in_flight(config(), "");
    script.inject(". 1:1(0) ack 8001 win 65000");
    script.host.run_ms(150);
    script.expect_nothing();
}

/// The probe's loss leads to the RTO, which begins with the first.
#[test]
fn rfc8985_7_3_the_timeout_follows_a_lost_probe() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 8001");
    script.run_until_sent(Ns::from_ms(60));
    script.expect("P. 9001:10001(1000) ack 1");
    script.expect_within(
        Ns::from_ms(190),
        Ns::from_ms(260),
        ". 8001:9001(1000) ack 1",
    );
    assert_eq!(script.host.engine.counters().timeouts, 1);
}
