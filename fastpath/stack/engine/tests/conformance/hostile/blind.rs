//! RFC 5961: attackers who do not see the connection.
use crate::simulator::random::Random;
use crate::support::host::config;
use crate::support::packet::{ACK, PSH, RST, SYN, Segment};
use crate::support::script::Script;
use hopscope_stack_engine::TcpState;

/// Guesses of resets, SYNs and data: none hits, few are answered, the connection goes on.
#[test]
fn rfc5961_blind_injection() {
    let mut script = Script::established_with(config(), "mss 1000,sackOK", 32_000);
    let mut random = Random::new(1);
    let (mut answers, mut data) = (0, 0);
    for _ in 0..20_000 {
        let flags = [RST, RST | ACK, SYN, SYN | ACK, PSH | ACK, ACK][random.below(6) as usize];
        let mut seq = random.next() as u32;
        let ack = random.next() as u32;
        if seq.wrapping_sub(script.peer_iss.wrapping_add(1)) == 0 {
            seq = seq.wrapping_add(1);
        }
        // Data needs an acceptable acknowledgement, too (5.2).
        let unacceptable = script.engine_iss.wrapping_add(1 << 30);
        let ack = if flags & PSH != 0 { unacceptable } else { ack };
        // Data outside the window is always answered, as in Linux (tcp_oow_rate_limited): no two ends loop by it.
        let payload = if flags & PSH != 0 {
            vec![0xee; 10]
        } else {
            Vec::new()
        };
        data += usize::from(flags & PSH != 0);
        let segment = Segment {
            flags,
            seq,
            ack,
            window: 1,
            payload,
            ..Segment::default()
        };
        let packet = segment.encode(script.peer_end, script.engine_end);
        script.host.receive(&packet);
        while script.take().is_some() {
            answers += 1;
        }
        script.host.run_ms(1);
    }
    assert_eq!(script.state(), TcpState::Established);
    // 20 s at one each 500 ms, and challenges (RFC 5961, 7).
    assert!(
        answers <= data + 200,
        "{answers} answers, {data} segments with data"
    );
    script.inject("P. 1:101(100) ack 1");
    script.read(1, 100);
    assert_eq!(script.write(1, 100), 100);
    while let Some((_, segment)) = script.take() {
        if !segment.payload.is_empty() {
            return;
        }
    }
    panic!("the connection sends nothing");
}

/// RFC 5961, 7: challenge ACKs of all connections together.
#[test]
fn rfc5961_7_challenge_acks_are_limited() {
    let mut config = config();
    config.tcp.challenge_acks_per_s = 100;
    config.tcp.invalid_ack_interval = hopscope_stack_engine::Ns(0);
    let mut script = Script::established_with(config, "mss 1000", 32_000);
    for _ in 0..1_000 {
        script.inject("S 5000:5000(0)");
    }
    let answers = std::iter::from_fn(|| script.take()).count();
    assert!(
        (50..=150).contains(&answers),
        "{answers} challenge ACKs in one moment"
    );
    // RFC 5961, 7, and CVE-2016-5696: the exact number tells an attacker nothing, but it is the counters' number.
    assert_eq!(script.host.engine.counters().challenge_ack, answers as u64);
}
