//! TCP options on segments.
use crate::support::host::config;
use crate::support::packet::{ACK, PSH, SYN, Segment, TcpOption};
use crate::support::script::{Script, payload};
use hopscope_stack_engine::TcpState;

/// Established with timestamps; the engine's last value.
fn stamped() -> (Script, u32) {
    let mut script = Script::listening(config());
    script.inject("S 0:0(0) win 32000 <mss 1000,sackOK,TS val 1000 ecr 0>");
    let (_, answer) = script.take().expect("SYN-ACK");
    let (value, echo) = answer.timestamps().expect("timestamps");
    assert_eq!(echo, 1000);
    script.inject(&format!(". 1:1(0) ack 1 <TS val 1001 ecr {value}>"));
    script.accept();
    (script, value)
}

/// RFC 7323, 3.2: on every segment, echoing the peer's.
#[test]
fn rfc7323_3_2_timestamps_on_every_segment() {
    let (mut script, value) = stamped();
    script.host.run_ms(50);
    assert_eq!(script.write(1, 988), 988);
    let (_, segment) = script.take().expect("data");
    let (later, echo) = segment.timestamps().expect("timestamps");
    assert_eq!(echo, 1001);
    let passed = later.wrapping_sub(value);
    assert!(
        (49..=52).contains(&passed),
        "{passed} ticks of 1 ms in 50 ms"
    );
    assert_eq!(segment.payload.len(), 988, "MSS less the option's 12 bytes");
}

/// RFC 7323, 4.3: of delayed acknowledgements the oldest segment's value is echoed.
#[test]
fn rfc7323_4_3_which_timestamp_to_echo() {
    let (mut script, value) = stamped();
    // Out of order: what is echoed stays that of the last in order.
    script.inject(&format!(
        ". 1001:2001(1000) ack 1 <TS val 1020 ecr {value}>"
    ));
    let (_, ack) = script.take().expect("ACK");
    assert_eq!(ack.timestamps().map(|(_, echo)| echo), Some(1001));
    // A filled hole: that of the segment that filled it.
    script.inject(&format!(". 1:1001(1000) ack 1 <TS val 1010 ecr {value}>"));
    let (_, ack) = script.take().expect("ACK");
    assert_eq!(ack.timestamps().map(|(_, echo)| echo), Some(1010));
}

/// RFC 7323, 5.3: an old timestamp is an old duplicate.
#[test]
fn rfc7323_5_3_paws() {
    let (mut script, value) = stamped();
    script.host.run_ms(600);
    script.inject(&format!("P. 1:101(100) ack 1 <TS val 500 ecr {value}>"));
    script.expect(". 1:1(0) ack 1");
    assert!(script.recv(&mut [0; 10]).is_err(), "dropped");
    assert_eq!(script.host.engine.counters().paws_estab, 1);
    // 5.3, R1: a reset is not subject to it.
    script.inject("R 1:1(0)");
    assert_eq!(script.state(), TcpState::Closed);
}

/// RFC 7323, 5.5: after 24 days of silence any timestamp is good.
#[test]
fn rfc7323_5_5_outdated_timestamps() {
    let (mut script, value) = stamped();
    script.host.run_ms(25 * 86_400_000);
    script.inject(&format!("P. 1:101(100) ack 1 <TS val 500 ecr {value}>"));
    script.read(1, 100);
}

/// RFC 7323, 3.2: without the option a segment SHOULD be dropped; Linux takes it, and so does the engine: either way
/// the connection goes on.
#[test]
fn rfc7323_3_2_a_segment_without_timestamps() {
    let (mut script, value) = stamped();
    script.inject("P. 1:101(100) ack 1");
    while script.take().is_some() {}
    script.inject(&format!("P. 1:101(100) ack 1 <TS val 1100 ecr {value}>"));
    script.read(1, 100);
}

/// RFC 9293, 3.1: unknown options are skipped, and known ones after them are read.
#[test]
fn rfc9293_3_1_unknown_options() {
    let mut script = Script::listening(config());
    let options = vec![
        TcpOption::Raw(vec![254, 6, 1, 2, 3, 4]),
        TcpOption::Nop,
        TcpOption::Raw(vec![34, 2]),
        TcpOption::Mss(777),
        TcpOption::SackPermitted,
    ];
    let syn = Segment {
        flags: SYN,
        seq: script.peer_iss,
        window: 32_000,
        options,
        ..Segment::default()
    };
    let packet = syn.encode(script.peer_end, script.engine_end);
    script.host.receive(&packet);
    script.expect("S. 0:0(0) ack 1");
    script.inject(". 1:1(0) ack 1");
    script.accept();
    assert_eq!(script.info().snd_mss, 777);
    assert!(script.info().options_sack);
}

/// RFC 9293, 3.1 (MUST-7): whatever the options are, the segment harms nobody.
#[test]
fn rfc9293_3_1_malformed_options() {
    let malformed: [&[u8]; 12] = [
        &[2, 0],
        &[2, 1],
        &[2, 3, 5],
        &[2, 5, 1, 1, 1],
        &[3, 4, 1, 1],
        &[5, 3, 0],
        &[5, 9, 0, 0, 0, 0, 0, 0, 0],
        &[5, 40, 1, 2],
        &[8, 9, 0, 0, 0, 0, 0, 0, 0],
        &[8, 10, 0, 0],
        &[254],
        &[254, 255],
    ];
    let mut script = Script::established_with(config(), "mss 1000,sackOK", 32_000);
    let mut place = 1;
    for bytes in malformed {
        let segment = Segment {
            flags: PSH | ACK,
            seq: script.peer_iss.wrapping_add(place),
            ack: script.engine_iss.wrapping_add(1),
            window: 32_000,
            options: vec![TcpOption::Raw(bytes.to_vec())],
            payload: payload(place, 10),
        };
        let packet = segment.encode(script.peer_end, script.engine_end);
        script.host.receive(&packet);
        script.read(place, 10);
        place += 10;
    }
    let counted = script.host.engine.counters().options_malformed;
    assert_eq!(counted, malformed.len() as u64, "each is counted");
}

/// A header length below 20 or beyond the segment, and a wrong checksum: dropped and counted.
#[test]
fn rfc9293_3_1_bad_headers() {
    let mut script = Script::established();
    let line = crate::support::notation::parse("P. 1:11(10) ack 1");
    let good = script
        .segment(&line)
        .encode(script.peer_end, script.engine_end);
    for offset in [0_u8, 1, 4, 8, 15] {
        let mut packet = good.clone();
        packet[32] = offset << 4;
        packet[36..38].fill(0);
        let sum = crate::support::packet::transport_sum(
            script.peer_end.ip(),
            script.engine_end.ip(),
            6,
            &packet[20..],
        );
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
        script.host.receive(&packet);
        script.expect_nothing();
    }
    assert_eq!(script.host.engine.counters().tcp_in_errs, 5);
    let mut packet = good.clone();
    packet[45] ^= 1;
    script.host.receive(&packet);
    script.expect_nothing();
    assert_eq!(script.host.engine.counters().tcp_in_csum_errors, 1);
    script.host.receive(&good);
    script.read(1, 10);
}
