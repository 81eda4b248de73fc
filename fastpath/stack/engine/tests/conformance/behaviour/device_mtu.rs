//! The device's MTU changes under connections. What they do then is Linux' (tcp_current_mss), but that segments which are too long do not
//! wait for loss recovery.
use crate::support::host::config;
use crate::support::script::Script;
use hopscope_stack_engine::config::TxOffload;
use hopscope_stack_engine::{SocketError, SocketKind, SocketOption};

/// Two full segments of 1,460 bytes are on their way.
fn two_on_their_way() -> Script {
    let mut script = Script::established_with(config(), "mss 1460", 32_000);
    assert_eq!(script.write(1, 2_920), 2_920);
    script.expect(". 1:1461(1460) ack 1");
    script.expect("P. 1461:2921(1460) ack 1");
    script
}

fn set_mtu(script: &mut Script, mtu: u16) {
    let now = script.host.now;
    script.host.engine.set_mtu(now, mtu);
    script.host.pump();
}

fn told(script: &mut Script) -> (u16, u16) {
    let (now, id) = (script.host.now, script.id());
    let engine = &mut script.host.engine;
    let mtu = engine.path_mtu(now, id).expect("a connection");
    match engine.option(id, SocketOption::MaxSegment(0)) {
        Ok(SocketOption::MaxSegment(mss)) => (mtu, mss),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_on_its_way_comes_again_at_once_and_smaller() {
    let mut script = two_on_their_way();
    let cwnd = script.info().snd_cwnd;
    set_mtu(&mut script, 1_000);
    script.expect(". 1:961(960) ack 1");
    script.expect(". 961:1921(960) ack 1");
    script.expect(". 1921:2881(960) ack 1");
    script.expect("P. 2881:2921(40) ack 1");
    script.expect_nothing();
    assert_eq!(script.info().snd_cwnd, cwnd, "it is no congestion");
    assert_eq!(told(&mut script), (1_000, 960));
    script.inject(". 1:1(0) ack 2921");
    script.write(2_921, 1_500);
    script.expect(". 2921:3881(960) ack 1");
    script.expect("P. 3881:4421(540) ack 1");
}

/// The same where the device cuts segments: what it is told to cut them to is the new size.
#[test]
fn the_device_cuts_to_the_new_size() {
    let mut offloading = config();
    offloading.offload = TxOffload {
        checksum: true,
        segmentation_v4: true,
        segmentation_v6: true,
    };
    let mut script = Script::listening(offloading);
    script.inject("S 0:0(0) win 32000 <mss 1460>");
    // Its checksum is the device's to complete, so that the script cannot take it.
    let syn_ack = script.host.take_any().expect("a SYN-ACK").packet;
    let iss = syn_ack[24..].first_chunk().expect("a sequence number");
    script.engine_iss = u32::from_be_bytes(*iss);
    script.inject(". 1:1(0) ack 1 win 32000");
    script.accept();
    assert_eq!(script.write(1, 7_300), 7_300);
    while script.host.take_any().is_some() {}
    set_mtu(&mut script, 1_000);
    let mut bytes = 0;
    while let Some(sent) = script.host.take_any() {
        let longest = match sent.frame.segmentation {
            Some(cut) => usize::from(cut.segment_bytes),
            None => sent.frame.payload_bytes as usize,
        };
        assert!(longest <= 960, "{:?}", sent.frame);
        bytes += sent.frame.payload_bytes;
    }
    assert_eq!(bytes, 7_300);
}

#[test]
fn a_higher_mtu_makes_larger_segments_up_to_the_peers_mss() {
    let mut script = two_on_their_way();
    set_mtu(&mut script, 1_000);
    while script.take().is_some() {}
    script.inject(". 1:1(0) ack 2921");
    set_mtu(&mut script, 9_000);
    script.expect_nothing();
    assert_eq!(told(&mut script), (9_000, 1_460));
    script.write(2_921, 2_920);
    script.expect(". 2921:4381(1460) ack 1");
    script.expect("P. 4381:5841(1460) ack 1");
}

/// What is in flight fits still: nothing is sent again.
#[test]
fn a_higher_mtu_sends_nothing_again() {
    let mut script = two_on_their_way();
    set_mtu(&mut script, 4_000);
    script.expect_nothing();
    assert_eq!(script.host.engine.counters().tcp_retrans_segs, 0);
}

/// TCP_MAXSEG, or a peer that takes less: the MTU is not what bounds the segments.
#[test]
fn segments_that_fit_are_left_alone() {
    let mut script = Script::established_with(config(), "mss 500", 32_000);
    script.write(1, 1_000);
    script.expect(". 1:501(500) ack 1");
    script.expect("P. 501:1001(500) ack 1");
    set_mtu(&mut script, 1_000);
    script.expect_nothing();
    assert_eq!(told(&mut script), (1_000, 500));
}

#[test]
fn a_time_out_resends_in_the_new_size() {
    let mut script = two_on_their_way();
    set_mtu(&mut script, 1_000);
    while script.take().is_some() {}
    script.run_until_sent(hopscope_stack_engine::Ns::from_ms(3_000));
    let (_, segment) = script.take().expect("a retransmission");
    assert!(segment.payload.len() <= 960, "{}", script.show(&segment));
}

/// The SYN was before, the ACK after: of both who opens and who is opened.
#[test]
fn it_changes_during_the_handshake() {
    let mut script = Script::listening(config());
    script.inject("S 0:0(0) win 32000 <mss 1460>");
    script.expect("S. 0:0(0) ack 1 <mss 1460>");
    set_mtu(&mut script, 1_000);
    script.inject(". 1:1(0) ack 1 win 32000");
    script.accept();
    assert_eq!(told(&mut script), (1_000, 960));

    let mut script = Script::connecting(config());
    script.expect("S 0:0(0)");
    set_mtu(&mut script, 1_000);
    script.inject("S. 0:0(0) ack 1 win 32000 <mss 1460>");
    script.expect(". 1:1(0) ack 1");
    assert_eq!(told(&mut script), (1_000, 960));
}

#[test]
fn a_new_connection_announces_what_fits() {
    let mut small = Script::listening(config());
    set_mtu(&mut small, 1_000);
    small.inject("S 0:0(0) win 32000 <mss 1460>");
    small.expect("S. 0:0(0) ack 1 <mss 960>");
}

/// Below RFC 8200's 1,280, too: smaller packets are allowed, larger ones would be lost.
#[test]
fn ipv6_follows_below_its_least_mtu() {
    let mut script = Script::listening(config());
    script.engine_end.set_ip("fd00::1".parse().unwrap());
    script.peer_end.set_ip("fd00::2".parse().unwrap());
    let engine = &mut script.host.engine;
    let listener = engine.socket(SocketKind::Tcp, true).unwrap();
    let local = "[fd00::1]:81".parse().unwrap();
    engine.bind(listener, local).unwrap();
    engine.listen(listener, 1).unwrap();
    script.engine_end.set_port(81);
    script.listener = Some(listener);
    script.inject("S 0:0(0) win 32000 <mss 1440>");
    script.expect("S. 0:0(0) ack 1 <mss 1440>");
    script.inject(". 1:1(0) ack 1 win 32000");
    script.accept();
    script.write(1, 1_440);
    script.expect("P. 1:1441(1440) ack 1");
    set_mtu(&mut script, 1_000);
    script.expect(". 1:941(940) ack 1");
    script.expect("P. 941:1441(500) ack 1");
}

#[test]
fn a_socket_without_a_connection_has_no_path() {
    let mut script = Script::listening(config());
    let listener = script.listener.expect("a listener");
    let now = script.host.now;
    assert_eq!(
        script.host.engine.path_mtu(now, listener),
        Err(SocketError::NotConnected)
    );
}
