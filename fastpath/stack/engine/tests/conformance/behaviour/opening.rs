//! Connections that begin.
use crate::support::host::config;
use crate::support::packet::{RST, TcpOption};
use crate::support::script::Script;
use hopscope_stack_engine::config::{Config, SynCookies};
use hopscope_stack_engine::{Ns, SocketError, TcpState};

#[test]
fn rfc9293_3_5_active_open() {
    let mut script = Script::connecting(config());
    let (_, syn) = script.take().expect("SYN");
    assert!(
        syn.options.contains(&TcpOption::Mss(1460)),
        "{:?}",
        syn.options
    );
    assert!(syn.options.contains(&TcpOption::SackPermitted));
    assert!(syn.timestamps().is_some_and(|(_, echo)| echo == 0));
    let ready = script
        .host
        .engine
        .readiness(script.id())
        .expect("readiness");
    assert!(
        !ready.writable && !ready.readable && !ready.error,
        "{ready:?}"
    );
    script.inject("S. 0:0(0) ack 1 win 32000 <mss 1000>");
    script.expect(". 1:1(0) ack 1");
    let ready = script
        .host
        .engine
        .readiness(script.id())
        .expect("readiness");
    assert!(
        ready.writable && !ready.readable && !ready.hangup,
        "{ready:?}"
    );
    assert_eq!(script.info().snd_mss, 1000);
}

/// RFC 9293, 3.10.7.3: a reset that acknowledges the SYN.
#[test]
fn rfc9293_3_10_7_3_refused() {
    let mut script = Script::connecting(config());
    script.expect("S 0:0(0)");
    script.inject("R. 0:0(0) ack 1");
    let id = script.id();
    let ready = script.host.engine.readiness(id).expect("readiness");
    assert!(
        ready.error && ready.hangup && ready.readable && ready.writable,
        "{ready:?}"
    );
    assert_eq!(
        script.host.engine.take_error(id),
        Ok(Some(SocketError::Refused))
    );
    assert_eq!(script.host.engine.take_error(id), Ok(None));
    script.expect_nothing();
}

/// RFC 9293, 3.5, figure 8.
#[test]
fn rfc9293_3_5_simultaneous_open() {
    let mut script = Script::connecting(config());
    script.expect("S 0:0(0)");
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.expect("S. 0:0(0) ack 1");
    assert_eq!(script.state(), TcpState::SynReceived);
    script.inject("S. 0:0(0) ack 1 win 32000");
    script.host.run_ms(200);
    assert_eq!(script.state(), TcpState::Established);
    while script.take().is_some() {}
    assert_eq!(script.write(1, 500), 500);
    script.expect("P. 1:501(500) ack 1");
    script.inject("P. 1:101(100) ack 501");
    script.read(1, 100);
}

/// RFC 9293, 3.7.1: without the option the MSS is 536.
#[test]
fn rfc9293_3_7_1_default_mss() {
    let mut script = Script::established_with(config(), "", 32_000);
    assert_eq!(script.write(1, 1000), 1000);
    script.expect(". 1:537(536) ack 1");
}

/// RFC 9293, 3.7.1, and Linux (TCP_MIN_MSS): an MSS of 1 is no way to make a million segments.
#[test]
fn rfc9293_3_7_1_tiny_mss() {
    let mut script = Script::established_with(config(), "mss 1", 32_000);
    assert_eq!(script.write(1, 1000), 1000);
    let (_, segment) = script.take().expect("a segment");
    assert!(
        segment.payload.len() >= 36,
        "{} bytes",
        segment.payload.len()
    );
}

/// Data with the handshake's last ACK is data.
#[test]
fn rfc9293_3_10_7_4_data_with_the_last_ack() {
    let mut script = Script::listening(config());
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.expect("S. 0:0(0) ack 1");
    script.inject("P. 1:101(100) ack 1");
    script.accept();
    script.read(1, 100);
}

/// A lost last ACK: data completes the handshake, and a retransmitted SYN is answered again.
#[test]
fn rfc9293_3_5_retransmitted_syn() {
    let mut script = Script::listening(config());
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.expect("S. 0:0(0) ack 1");
    script.host.run_ms(900);
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.expect("S. 0:0(0) ack 1");
    script.inject(". 1:1(0) ack 1");
    script.accept();
}

/// RFC 9293, 3.5.3: half-open, the old connection is found by the new SYN.
#[test]
fn rfc9293_3_5_3_half_open_is_discovered() {
    let mut script = Script::established();
    script.inject("S 100000:100000(0) win 32000 <mss 1000>");
    script.expect(". 1:1(0) ack 1");
    script.inject("R 1:1(0)");
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(script.recv(&mut [0; 10]), Err(SocketError::Reset));
}

fn cookies() -> Config {
    let mut config = config();
    config.tcp.syn_cookies = SynCookies::Always;
    config
}

/// RFC 4987, 3.6: nothing is kept until the ACK returns.
#[test]
fn rfc4987_3_6_syn_cookie() {
    let mut script = Script::listening(cookies());
    script.inject("S 0:0(0) win 32000 <mss 1000,sackOK,wscale 7>");
    let (_, answer) = script.take().expect("SYN-ACK");
    assert_eq!(answer.flags, 0x12, "SYN-ACK");
    assert_eq!(script.state(), TcpState::Closed, "no state");
    script.host.run_ms(5_000);
    script.expect_nothing();
    script.inject(". 1:1(0) ack 1");
    script.accept();
    // Without timestamps there is room for the MSS alone, rounded down.
    let info = script.info();
    assert!(
        !info.options_sack && !info.options_window_scaling,
        "{info:?}"
    );
    assert!((500..=1000).contains(&info.snd_mss), "MSS {}", info.snd_mss);
    let counters = script.host.engine.counters();
    assert_eq!((counters.syncookies_sent, counters.syncookies_recv), (1, 1));
}

/// With timestamps the cookie carries SACK and the scale.
#[test]
fn rfc4987_3_6_syn_cookie_in_the_timestamp() {
    let mut script = Script::listening(cookies());
    script.inject("S 0:0(0) win 32000 <mss 1460,sackOK,TS val 7 ecr 0,wscale 7>");
    let (_, answer) = script.take().expect("SYN-ACK");
    let (value, echo) = answer.timestamps().expect("timestamps");
    assert_eq!(echo, 7);
    let line = format!(". 1:1(0) ack 1 win 250 <TS val 8 ecr {value}>");
    script.inject(&line);
    script.accept();
    let info = script.info();
    assert!(
        info.options_sack && info.options_window_scaling && info.options_timestamps,
        "{info:?}"
    );
    assert_eq!(info.snd_wscale, 7);
    assert_eq!(info.snd_wnd, 250 << 7);
}

#[test]
fn rfc4987_3_6_a_wrong_cookie_is_refused() {
    let mut script = Script::listening(cookies());
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.take().expect("SYN-ACK");
    for guess in [2_u32, 1000, 0x8000_0000] {
        script.inject(&format!(". 1:1(0) ack {guess}"));
        let (_, answer) = script.take().expect("an answer");
        assert_eq!(answer.flags, 4, "RST");
    }
    assert!(
        script
            .host
            .engine
            .accept(script.listener.expect("a listener"))
            .is_err()
    );
    // Nor an old one.
    script.host.run_ms(600_000);
    script.inject(". 1:1(0) ack 1");
    assert_eq!(script.take().expect("an answer").1.flags, 4, "RST");
}

/// A full accept queue drops the last ACK, which is repeated (Linux, tcp_abort_on_overflow 0).
#[test]
fn a_full_accept_queue_waits() {
    let mut script = Script::new(config());
    script.listener = Some(script.host.listen(80, 1));
    // Linux' queue of backlog 1 holds two.
    for port in 1..=4 {
        script.peer_end.set_port(port);
        script.inject("S 0:0(0) win 32000 <mss 1000>");
        if let Some((_, answer)) = script.take() {
            script.engine_iss = answer.seq;
            script.inject(". 1:1(0) ack 1");
        }
    }
    let listener = script.listener.expect("a listener");
    let accepted = std::iter::from_fn(|| script.host.engine.accept(listener).ok()).count();
    assert_eq!(accepted, 2);
    let counters = script.host.engine.counters();
    assert!(
        counters.listen_overflows > 0 && counters.listen_drops > 0,
        "{counters:?}"
    );
}

/// RFC 9293, 3.5.1: the peer has an old connection, which the reset ends. The next SYN does not wait for a time-out.
#[test]
fn rfc9293_3_5_1_a_half_open_peer_is_asked_again_at_once() {
    let mut script = Script::connecting(config());
    script.expect("S 0:0(0)");
    script.inject(". 5000:5000(0) ack 777");
    let (_, reset) = script.take().expect("a reset");
    assert!(reset.has(RST));
    script.expect_within(Ns::from_ms(1), Ns::from_ms(10), "S 0:0(0)");
    script.inject("S. 0:0(0) ack 1 win 32000 <mss 1000>");
    script.expect(". 1:1(0) ack 1");
    // Once: an answer to each SYN would be a storm.
    let mut script = Script::connecting(config());
    script.expect("S 0:0(0)");
    for _ in 0..2 {
        script.inject(". 5000:5000(0) ack 777");
        script.run_until_sent(Ns::from_ms(20));
        script.take().expect("a reset");
        script.run_until_sent(Ns::from_ms(20));
        script.take();
    }
    script.inject(". 5000:5000(0) ack 777");
    script.take().expect("a reset");
    script.host.run_ms(20);
    script.expect_nothing();
}
