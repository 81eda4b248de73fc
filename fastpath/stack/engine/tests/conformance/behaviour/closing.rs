//! Connections that end.
use crate::support::host::config;
use crate::support::packet::RST;
use crate::support::script::Script;
use hopscope_stack_engine::{
    HowToShut, Linger, Ns, SendFlags, SocketError, SocketOption, TcpState,
};

fn close(script: &mut Script) {
    let (now, id) = (script.host.now, script.id());
    script.host.engine.close(now, id).expect("close");
    script.host.pump();
}

fn shut(script: &mut Script, how: HowToShut) {
    let (now, id) = (script.host.now, script.id());
    script.host.engine.shutdown(now, id, how).expect("shutdown");
    script.host.pump();
}

/// RFC 9293, 3.6, figure 12.
#[test]
fn rfc9293_3_6_normal_close() {
    let mut script = Script::established();
    close(&mut script);
    script.expect("F. 1:1(0) ack 1");
    script.inject(". 1:1(0) ack 2");
    script.inject("F. 1:1(0) ack 2");
    script.expect(". 2:2(0) ack 2");
    assert_eq!(script.state(), TcpState::TimeWait);
    // RFC 9293, 3.6.1: a retransmitted FIN is acknowledged again.
    script.host.run_ms(1_000);
    script.inject("F. 1:1(0) ack 2");
    script.expect(". 2:2(0) ack 2");
    script.host.run_ms(61_000);
    script.expect_nothing();
    assert_eq!(script.state(), TcpState::Closed);
    let left = script.host.engine.connections(script.host.now).count();
    assert_eq!(left, 1, "the listener");
}

/// RFC 9293, 3.6, figure 13.
#[test]
fn rfc9293_3_6_simultaneous_close() {
    let mut script = Script::established();
    close(&mut script);
    script.expect("F. 1:1(0) ack 1");
    script.inject("F. 1:1(0) ack 1");
    script.expect(". 2:2(0) ack 2");
    assert_eq!(script.state(), TcpState::Closing);
    script.inject(". 2:2(0) ack 2");
    assert_eq!(script.state(), TcpState::TimeWait);
}

/// RFC 9293, 3.6: data goes on in the other direction.
#[test]
fn rfc9293_3_6_half_close() {
    let mut script = Script::established();
    shut(&mut script, HowToShut::Write);
    script.expect("F. 1:1(0) ack 1");
    script.inject(". 1:1(0) ack 2");
    for part in 0..5 {
        let start = 1 + 1000 * part;
        script.inject(&format!("P. {start}:{}(1000) ack 2", start + 1000));
    }
    script.read(1, 5_000);
    let (now, id) = (script.host.now, script.id());
    let sent = script.host.engine.send(now, id, b"x", SendFlags::default());
    assert_eq!(sent, Err(SocketError::BrokenPipe));
    script.inject("F. 5001:5001(0) ack 2");
    assert_eq!(script.recv(&mut [0; 10]), Ok(0));
    let ready = script.host.engine.readiness(id).expect("readiness");
    assert!(
        ready.hangup && ready.read_hangup && ready.readable,
        "{ready:?}"
    );
}

#[test]
fn rfc9293_3_6_peer_closes_first() {
    let mut script = Script::established();
    script.inject("FP. 1:101(100) ack 1");
    script.host.run_ms(200);
    script.expect(". 1:1(0) ack 102");
    let ready = script
        .host
        .engine
        .readiness(script.id())
        .expect("readiness");
    assert!(
        ready.readable && ready.read_hangup && ready.writable && !ready.hangup,
        "{ready:?}"
    );
    script.read(1, 100);
    assert_eq!(script.recv(&mut [0; 10]), Ok(0));
    assert_eq!(script.recv(&mut [0; 10]), Ok(0));
    assert_eq!(script.write(1, 300), 300);
    script.expect("P. 1:301(300) ack 102");
    script.inject(". 102:102(0) ack 301");
    close(&mut script);
    script.expect("F. 301:301(0) ack 102");
    script.inject(". 102:102(0) ack 302");
    assert_eq!(script.state(), TcpState::Closed);
}

/// TCPPureAcks is of segments that take no sequence number (Linux tcp_ack).
#[test]
fn a_fin_is_no_pure_ack() {
    let mut script = Script::established();
    let before = script.host.engine.counters().pure_acks;
    script.inject("F. 1:1(0) ack 1");
    script.expect(". 1:1(0) ack 2");
    assert_eq!(script.host.engine.counters().pure_acks, before);
    close(&mut script);
    script.expect("F. 1:1(0) ack 2");
    script.inject(". 2:2(0) ack 2");
    assert_eq!(script.host.engine.counters().pure_acks, before + 1);
}

/// RFC 2525, 2.17: unread data makes close a reset.
#[test]
fn rfc2525_2_17_close_with_unread_data_resets() {
    let mut script = Script::established();
    script.inject("P. 1:101(100) ack 1");
    script.host.run_ms(300);
    while script.take().is_some() {}
    close(&mut script);
    script.expect("R. 1:1(0) ack 101");
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(script.host.engine.counters().abort_on_close, 1);
}

/// RFC 1122, 4.2.2.13: data that arrives after close is a reset.
#[test]
fn rfc1122_4_2_2_13_data_after_close_resets() {
    let mut script = Script::established();
    close(&mut script);
    script.expect("F. 1:1(0) ack 1");
    script.inject(". 1:1(0) ack 2");
    script.inject("P. 1:101(100) ack 2");
    let (_, answer) = script.take().expect("an answer");
    assert!(answer.has(RST), "{}", script.show(&answer));
    assert_eq!(answer.seq, script.engine_iss.wrapping_add(2));
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(script.host.engine.counters().abort_on_data, 1);
}

/// SO_LINGER with 0.
#[test]
fn rfc9293_3_10_5_abort() {
    let mut script = Script::established();
    let (now, id) = (script.host.now, script.id());
    script
        .host
        .engine
        .set_option(now, id, SocketOption::Linger(Linger::Reset))
        .expect("SO_LINGER");
    assert_eq!(script.write(1, 100), 100);
    script.expect("P. 1:101(100) ack 1");
    close(&mut script);
    script.expect("R. 101:101(0) ack 1");
    assert_eq!(script.state(), TcpState::Closed);
}

/// All data is sent before FIN, also after close.
#[test]
fn rfc9293_3_10_4_close_sends_what_is_queued() {
    let mut script = Script::established_with(config(), "mss 1000", 2_000);
    assert_eq!(script.write(1, 5_000), 5_000);
    close(&mut script);
    script.expect(". 1:1001(1000) ack 1");
    script.expect(". 1001:2001(1000) ack 1");
    script.expect_nothing();
    script.inject(". 1:1(0) ack 2001 win 10000");
    script.expect(". 2001:3001(1000) ack 1");
    script.expect(". 3001:4001(1000) ack 1");
    script.expect("FP. 4001:5001(1000) ack 1");
    script.inject(". 1:1(0) ack 5002 win 10000");
    assert_eq!(script.state(), TcpState::FinWait2);
}

/// tcp_fin_timeout: FIN-WAIT-2 without a socket ends.
#[test]
fn fin_wait_2_of_a_closed_socket_ends() {
    let mut script = Script::established();
    close(&mut script);
    script.expect("F. 1:1(0) ack 1");
    script.inject(". 1:1(0) ack 2");
    script.host.run_ms(59_000);
    assert_ne!(script.state(), TcpState::Closed);
    script.host.run_ms(2_000);
    assert_eq!(script.state(), TcpState::Closed);
}

/// TCP_LINGER2 below 0: no FIN-WAIT-2 without a socket, whichever comes first, the acknowledgement or close.
#[test]
fn fin_wait_2_of_a_closed_socket_is_not_waited_in() {
    let without = |script: &mut Script| {
        let (now, id) = (script.host.now, script.id());
        let option = SocketOption::FinTimeout(None);
        let set = script.host.engine.set_option(now, id, option);
        set.expect("TCP_LINGER2");
    };
    let mut script = Script::established();
    without(&mut script);
    close(&mut script);
    script.expect("F. 1:1(0) ack 1");
    script.inject(". 1:1(0) ack 2");
    script.expect("R. 2:2(0) ack 1");
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(script.host.engine.counters().abort_on_data, 1);
    let mut script = Script::established();
    without(&mut script);
    shut(&mut script, HowToShut::Write);
    script.expect("F. 1:1(0) ack 1");
    script.inject(". 1:1(0) ack 2");
    assert_eq!(script.state(), TcpState::FinWait2);
    close(&mut script);
    script.expect("R. 2:2(0) ack 1");
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(script.host.engine.counters().abort_on_linger, 1);
}

/// The FIN itself is retransmitted.
#[test]
fn rfc9293_3_8_1_fin_is_retransmitted() {
    let mut script = Script::established();
    close(&mut script);
    script.expect("F. 1:1(0) ack 1");
    script.run_until_sent(Ns::from_ms(2_000));
    script.expect("F. 1:1(0) ack 1");
    script.inject(". 1:1(0) ack 2");
    script.inject("F. 1:1(0) ack 2");
    script.expect(". 2:2(0) ack 2");
}

/// tcp_orphan_retries: an orphan does not stay for ever.
#[test]
fn an_orphan_is_given_up() {
    let mut script = Script::established();
    close(&mut script);
    script.host.run_ms(400_000);
    assert_eq!(script.state(), TcpState::Closed);
    let left = script.host.engine.connections(script.host.now).count();
    assert_eq!(left, 1, "the listener");
}

/// RFC 6191: with timestamps a new SYN may reuse TIME-WAIT although its number is not greater.
#[test]
fn rfc6191_time_wait_is_reused() {
    let mut script = Script::listening(config());
    script.inject("S 0:0(0) win 32000 <mss 1000,TS val 1000 ecr 0>");
    let (_, answer) = script.take().expect("SYN-ACK");
    let (value, _) = answer.timestamps().expect("timestamps");
    script.inject(&format!(". 1:1(0) ack 1 <TS val 1001 ecr {value}>"));
    script.accept();
    close(&mut script);
    script.take().expect("FIN");
    script.inject(&format!("F. 1:1(0) ack 2 <TS val 1002 ecr {value}>"));
    script.take().expect("ACK");
    assert_eq!(script.state(), TcpState::TimeWait);
    script.host.run_ms(1_500);
    // An older timestamp is an old duplicate.
    script.inject("S -100:-100(0) win 32000 <mss 1000,TS val 900 ecr 0>");
    assert_eq!(script.state(), TcpState::TimeWait);
    while script.take().is_some() {}
    script.inject("S -100:-100(0) win 32000 <mss 1000,TS val 5000 ecr 0>");
    assert_eq!(script.state(), TcpState::SynReceived);
    assert_eq!(script.take().expect("SYN-ACK").1.flags, 0x12);
}

/// FIN alone goes out although the congestion window is full, as in Linux.
#[test]
fn fin_does_not_wait_for_the_congestion_window() {
    let mut script = Script::established_with(config(), "mss 1000", 32_000);
    assert_eq!(script.write(1, 10_000), 10_000);
    for _ in 0..10 {
        script.take().expect("a segment");
    }
    shut(&mut script, HowToShut::Write);
    script.expect("F. 10001:10001(0) ack 1");
}
