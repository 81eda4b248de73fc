//! ICMP errors about connections (RFC 5927).
use crate::support::host::config;
use crate::support::packet::{Segment, add, fold, ip_packet};
use crate::support::script::Script;
use hopscope_stack_engine::{SocketError, TcpState};

/// The error, quoting the IP header and 8 bytes of the engine's segment of this sequence number.
fn error(script: &Script, kind: u8, code: u8, mtu: u16, seq: u32) -> Vec<u8> {
    let quoted = Segment {
        seq: script.engine_iss.wrapping_add(seq),
        ..Segment::default()
    };
    let quoted = quoted.encode(script.engine_end, script.peer_end);
    let mut message = vec![kind, code, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(&quoted[..28]);
    let sum = !fold(add(0, &message));
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    ip_packet(
        "10.0.0.2".parse().expect("an address"),
        script.engine_end.ip(),
        1,
        &message,
    )
}

/// RFC 1122, 4.2.3.9: port unreachable is hard for a SYN.
#[test]
fn rfc1122_4_2_3_9_port_unreachable_refuses() {
    let mut script = Script::connecting(config());
    script.expect("S 0:0(0)");
    let packet = error(&script, 3, 3, 0, 0);
    script.host.receive(&packet);
    let id = script.id();
    assert_eq!(
        script.host.engine.take_error(id),
        Ok(Some(SocketError::Refused))
    );
}

/// RFC 5927, 4.1: a number that is not in flight is an attack; 5.2: hard errors of established connections are soft.
#[test]
fn rfc5927_4_1_sequence_check() {
    let mut script = Script::established();
    assert_eq!(script.write(1, 1000), 1000);
    script.expect("P. 1:1001(1000) ack 1");
    for seq in [5_000_u32, 0x8000_0000, 1_001] {
        let packet = error(&script, 3, 3, 0, seq);
        script.host.receive(&packet);
    }
    assert!(script.host.engine.counters().out_of_window_icmps >= 2);
    let packet = error(&script, 3, 3, 0, 1);
    script.host.receive(&packet);
    assert_eq!(script.state(), TcpState::Established);
    script.inject(". 1:1(0) ack 1001");
    assert_eq!(script.info().unacked, 0);
}

/// RFC 1191, 6: smaller segments at once, without a time-out, and no congestion.
#[test]
fn rfc1191_6_path_mtu() {
    let mut script = Script::established_with(config(), "mss 1460", 32_000);
    assert_eq!(script.write(1, 2_920), 2_920);
    script.expect(". 1:1461(1460) ack 1");
    script.expect("P. 1461:2921(1460) ack 1");
    let packet = error(&script, 3, 4, 1_000, 1);
    script.host.receive(&packet);
    script.expect(". 1:961(960) ack 1");
    script.host.run_ms(1);
    script.inject(". 1:1(0) ack 961");
    script.host.run_ms(1_000);
    while let Some((_, segment)) = script.take() {
        assert!(segment.payload.len() <= 960, "{}", script.show(&segment));
    }
    assert_eq!(script.info().snd_mss, 960);
}

/// RFC 5927, 7.1, and Linux' min_pmtu: nothing goes below what makes sense, and nothing grows.
#[test]
fn rfc5927_7_1_hostile_path_mtu() {
    let mut script = Script::established_with(config(), "mss 1460", 32_000);
    assert_eq!(script.write(1, 2_920), 2_920);
    while script.take().is_some() {}
    for mtu in [0, 1, 68, 500, 9_000] {
        let packet = error(&script, 3, 4, mtu, 1);
        script.host.receive(&packet);
        while script.take().is_some() {}
    }
    let mss = script.info().snd_mss;
    assert!((500..=1460).contains(&mss), "MSS {mss}");
}
