//! Timers of connections that are idle or stuck.
use crate::support::script::Script;
use hopscope_stack_engine::{Ns, SocketError, SocketOption, TcpState};

fn set(script: &mut Script, option: SocketOption) {
    let (now, id) = (script.host.now, script.id());
    script
        .host
        .engine
        .set_option(now, id, option)
        .expect("an option");
}

/// RFC 9293, 3.8.4.
#[test]
fn rfc9293_3_8_4_keep_alive() {
    let mut script = Script::established();
    set(&mut script, SocketOption::KeepIdle(Ns::from_ms(10_000)));
    set(&mut script, SocketOption::KeepInterval(Ns::from_ms(2_000)));
    set(&mut script, SocketOption::KeepCount(3));
    set(&mut script, SocketOption::KeepAlive(true));
    script.expect_within(Ns::from_ms(9_900), Ns::from_ms(10_100), ". 0:0(0) ack 1");
    script.inject(". 1:1(0) ack 1");
    // Answered: idle again.
    script.expect_within(Ns::from_ms(9_900), Ns::from_ms(10_100), ". 0:0(0) ack 1");
    for _ in 0..2 {
        script.expect_within(Ns::from_ms(1_900), Ns::from_ms(2_100), ". 0:0(0) ack 1");
    }
    script.host.run_ms(2_100);
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(script.recv(&mut [0; 1]), Err(SocketError::TimedOut));
    script.expect("R. 1:1(0) ack 1");
}

/// Off unless set.
#[test]
fn rfc9293_3_8_4_no_keep_alive_by_default() {
    let mut script = Script::established();
    script.host.run_ms(10_000_000);
    script.expect_nothing();
    assert_eq!(
        script.host.engine.poll_at(),
        None,
        "an idle connection has no timer"
    );
}

/// RFC 5482: TCP_USER_TIMEOUT.
#[test]
fn rfc5482_user_timeout() {
    let mut script = Script::established();
    set(&mut script, SocketOption::UserTimeout(Ns::from_ms(3_000)));
    assert_eq!(script.write(1, 1000), 1000);
    script.host.run_ms(2_900);
    assert_eq!(script.state(), TcpState::Established);
    script.host.run_ms(4_000);
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(script.recv(&mut [0; 1]), Err(SocketError::TimedOut));
}

/// A peer's keep-alive is answered.
#[test]
fn rfc9293_3_8_4_the_peers_keep_alive() {
    let mut script = Script::established();
    script.inject("P. 1:101(100) ack 1");
    script.host.run_ms(200);
    while script.take().is_some() {}
    script.inject(". 100:100(0) ack 1");
    script.expect(". 1:1(0) ack 101");
    script.host.run_ms(10_000);
    script.inject(". 100:101(1) ack 1");
    script.expect(". 1:1(0) ack 101");
}
