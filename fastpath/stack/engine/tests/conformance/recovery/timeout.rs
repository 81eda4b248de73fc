//! RFC 6298 and what follows a time-out.
use super::fast::ten_in_flight;
use crate::support::host::config;
use crate::support::script::Script;
use hopscope_stack_engine::config::Config;
use hopscope_stack_engine::{Ns, SocketError, TcpState};

fn without_probes() -> Config {
    let mut config = config();
    config.tcp.tail_loss_probe = false;
    config
}

/// RFC 6298, 5.5: each time-out doubles.
#[test]
fn rfc6298_5_5_backoff() {
    let mut script = ten_in_flight(without_probes(), ",sackOK");
    script.expect_within(Ns::from_ms(180), Ns::from_ms(230), ". 1:1001(1000) ack 1");
    for doubling in 1..6 {
        let expected = 200 << doubling;
        script.expect_within(
            Ns::from_ms(expected * 95 / 100),
            Ns::from_ms(expected * 115 / 100),
            ". 1:1001(1000) ack 1",
        );
    }
    assert_eq!(script.host.engine.counters().timeouts, 6);
}

/// RFC 6298, 5.7 and 3 (Karn): the acknowledgement of a retransmission is no sample.
#[test]
fn rfc6298_3_karn() {
    let mut script = ten_in_flight(without_probes(), ",sackOK");
    script.run_until_sent(Ns::from_ms(300));
    script.expect(". 1:1001(1000) ack 1");
    let before = script.info().rtt;
    script.host.run_ms(80);
    script.inject(". 1:1(0) ack 1001");
    assert_eq!(script.info().rtt, before);
}

/// RFC 5681, 3.1 (4): after a time-out one segment, then slow start.
#[test]
fn rfc5681_3_1_loss_window() {
    let mut script = ten_in_flight(without_probes(), "");
    script.run_until_sent(Ns::from_ms(300));
    script.expect(". 1:1001(1000) ack 1");
    script.expect_nothing();
    assert_eq!(script.info().snd_cwnd, 1);
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 1001 win 65000");
    script.expect(". 1001:2001(1000) ack 1");
    script.expect(". 2001:3001(1000) ack 1");
    script.expect_nothing();
}

/// RFC 5682, 2.1: two acknowledgements of what was not retransmitted say that the time-out was spurious.
#[test]
fn rfc5682_spurious_timeout_is_undone() {
    let mut script = ten_in_flight(without_probes(), ",sackOK");
    assert_eq!(script.write(10_001, 4_000), 4_000);
    let before = script.info().snd_cwnd;
    script.run_until_sent(Ns::from_ms(300));
    script.expect(". 1:1001(1000) ack 1");
    // The acknowledgements were only late.
    script.inject(". 1:1(0) ack 1001");
    script.host.run_ms(1);
    script.inject(". 1:1(0) ack 2001");
    script.inject(". 1:1(0) ack 3001");
    while let Some((_, segment)) = script.take() {
        let seq = segment.seq.wrapping_sub(script.engine_iss);
        assert!(seq >= 10_001, "retransmitted: {}", script.show(&segment));
    }
    script.inject(". 1:1(0) ack 10001");
    assert!(
        script.info().snd_cwnd >= before,
        "cwnd {} of {before}",
        script.info().snd_cwnd
    );
    assert_eq!(script.host.engine.counters().spurious_rtos, 1);
}

/// Lost retransmission, then the time-out: everything is repaired.
#[test]
fn rfc6298_lost_retransmission_then_timeout() {
    let mut script = ten_in_flight(config(), ",sackOK");
    script.inject(". 1:1(0) ack 1 <sack 1001:10001>");
    script.expect(". 1:1001(1000) ack 1");
    script.expect_within(Ns::from_ms(150), Ns::from_ms(260), ". 1:1001(1000) ack 1");
    script.inject(". 1:1(0) ack 10001");
    script.host.run_ms(2_000);
    script.expect_nothing();
    assert_eq!(script.info().unacked, 0);
}

/// RFC 9293, 3.8.3 (R2): Linux' tcp_retries2 of 15 gives up after 924.6 s at an RTO of 200 ms.
#[test]
fn rfc9293_3_8_3_a_connection_is_given_up() {
    let mut script = ten_in_flight(without_probes(), "");
    script.host.run_ms(900_000);
    assert_eq!(script.state(), TcpState::Established);
    script.host.run_ms(60_000);
    assert_eq!(script.state(), TcpState::Closed);
    let error = script.recv(&mut [0; 10]);
    assert_eq!(error, Err(SocketError::TimedOut));
    assert_eq!(script.host.engine.counters().abort_on_timeout, 1);
}

/// RFC 6298, 2.1 and 5.6: a SYN after 1, 2, 4 … s.
#[test]
fn rfc6298_2_1_syn() {
    let mut config = config();
    config.tcp.syn_retries = 3;
    let mut script = Script::connecting(config);
    script.expect("S 0:0(0)");
    for seconds in [1, 2, 4] {
        script.expect_within(
            Ns::from_ms(seconds * 990),
            Ns::from_ms(seconds * 1_010),
            "S 0:0(0)",
        );
    }
    script.host.run_ms(8_100);
    script.expect_nothing();
    let id = script.id();
    assert_eq!(
        script.host.engine.take_error(id),
        Ok(Some(SocketError::TimedOut))
    );
    assert_eq!(script.state(), TcpState::Closed);
}

#[test]
fn rfc6298_2_1_syn_ack() {
    let mut config = config();
    config.tcp.synack_retries = 2;
    let mut script = Script::listening(config);
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.expect("S. 0:0(0) ack 1");
    script.expect_within(Ns::from_ms(990), Ns::from_ms(1_010), "S. 0:0(0) ack 1");
    script.expect_within(Ns::from_ms(1_980), Ns::from_ms(2_020), "S. 0:0(0) ack 1");
    script.host.run_ms(10_000);
    script.expect_nothing();
    assert_eq!(script.state(), TcpState::Closed);
}
