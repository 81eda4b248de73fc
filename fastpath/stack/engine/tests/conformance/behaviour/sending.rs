//! When data is sent.
use crate::support::decode::{ip, unverified};
use crate::support::host::{Sent, config};
use crate::support::packet::PSH;
use crate::support::script::Script;
use hopscope_stack_engine::config::TxOffload;
use hopscope_stack_engine::{Ns, SendFlags, SocketOption};

fn set(script: &mut Script, option: SocketOption) {
    let (now, id) = (script.host.now, script.id());
    script
        .host
        .engine
        .set_option(now, id, option)
        .expect("an option");
    script.host.pump();
}

/// RFC 6928: ten segments at first.
#[test]
fn rfc6928_initial_window() {
    let mut script = Script::established_with(config(), "mss 1000", 65_000);
    assert_eq!(script.write(1, 12_000), 12_000);
    let sent: usize = std::iter::from_fn(|| script.take())
        .map(|(_, s)| s.payload.len())
        .sum();
    assert_eq!(sent, 10_000);
    // RFC 5681, 3.1: slow start, one segment more for each that is acknowledged.
    script.host.run_ms(10);
    script.inject(". 1:1(0) ack 2001 win 65000");
    let sent: usize = std::iter::from_fn(|| script.take())
        .map(|(_, s)| s.payload.len())
        .sum();
    assert_eq!(sent, 2_000, "the rest");
    assert_eq!(script.info().snd_cwnd, 12);
}

/// RFC 9293, 3.7.4 (Nagle), with Minshall's change as Linux has it.
#[test]
fn rfc9293_3_7_4_nagle() {
    let mut script = Script::established();
    assert_eq!(script.write(1, 100), 100);
    script.expect("P. 1:101(100) ack 1");
    assert_eq!(script.write(101, 100), 100);
    assert_eq!(script.write(201, 100), 100);
    script.expect_nothing();
    script.inject(". 1:1(0) ack 101");
    script.expect("P. 101:301(200) ack 1");
    // A full segment does not wait.
    assert_eq!(script.write(301, 1000), 1000);
    script.expect("P. 301:1301(1000) ack 1");
}

#[test]
fn rfc9293_3_7_4_nodelay() {
    let mut script = Script::established();
    set(&mut script, SocketOption::NoDelay(true));
    for part in 0..5 {
        let start = 1 + part * 100;
        assert_eq!(script.write(start, 100), 100);
        script.expect(&format!("P. {start}:{}(100) ack 1", start + 100));
    }
}

/// TCP_CORK: full segments only, until it is off or 200 ms are over.
#[test]
fn cork_holds_what_is_not_full() {
    let mut script = Script::established();
    set(&mut script, SocketOption::Cork(true));
    assert_eq!(script.write(1, 100), 100);
    script.expect_nothing();
    assert_eq!(script.write(101, 1_000), 1_000);
    script.expect(". 1:1001(1000) ack 1");
    script.expect_nothing();
    set(&mut script, SocketOption::Cork(false));
    script.expect("P. 1001:1101(100) ack 1");
    set(&mut script, SocketOption::Cork(true));
    script.inject(". 1:1(0) ack 1101");
    assert_eq!(script.write(1101, 10), 10);
    script.expect_within(Ns::from_ms(150), Ns::from_ms(260), "P. 1101:1111(10) ack 1");
}

#[test]
fn msg_more_waits_for_the_next() {
    let mut script = Script::established();
    let (now, id) = (script.host.now, script.id());
    let first = crate::support::script::payload(1, 100);
    let more = SendFlags { more: true };
    assert_eq!(script.host.engine.send(now, id, &first, more), Ok(100));
    script.expect_nothing();
    assert_eq!(script.write(101, 100), 100);
    script.expect("P. 1:201(200) ack 1");
}

/// RFC 5681, 4.1: after an idle RTO the window is the initial one again.
#[test]
fn rfc5681_4_1_idle_restart() {
    let mut script = Script::established_with(config(), "mss 1000", 65_000);
    let mut place = 1;
    for _ in 0..3 {
        let room = script.info().snd_cwnd * 1000;
        assert_eq!(script.write(place, room), room as usize);
        while script.take().is_some() {}
        place += room;
        script.host.run_ms(10);
        script.inject(&format!(". 1:1(0) ack {place} win 65000"));
    }
    assert!(
        script.info().snd_cwnd > 20,
        "cwnd {}",
        script.info().snd_cwnd
    );
    script.host.run_ms(60_000);
    assert_eq!(script.write(place, 40_000), 40_000);
    let sent: usize = std::iter::from_fn(|| script.take())
        .map(|(_, s)| s.payload.len())
        .sum();
    assert_eq!(sent, 10_000);
}

/// What the send buffer takes is bounded, and room is announced.
#[test]
fn send_blocks_when_the_buffer_is_full() {
    let mut script = Script::established();
    set(&mut script, SocketOption::SendBuffer(20_000));
    let mut place = 1;
    loop {
        let (now, id) = (script.host.now, script.id());
        let bytes = crate::support::script::payload(place, 5_000);
        match script
            .host
            .engine
            .send(now, id, &bytes, SendFlags::default())
        {
            Ok(count) => place += count as u32,
            Err(error) => {
                assert_eq!(error.errno(), 11);
                break;
            }
        }
        assert!(place < 200_000, "the buffer has no bound");
    }
    let ready = script
        .host
        .engine
        .readiness(script.id())
        .expect("readiness");
    assert!(!ready.writable, "{ready:?}");
    while script.host.engine.next_event().is_some() {}
    while script.take().is_some() {}
    let mut acked = 1;
    while acked < place {
        acked = (acked + 4_000).min(place);
        script.inject(&format!(". 1:1(0) ack {acked} win 65000"));
        while script.take().is_some() {}
    }
    let ready = script
        .host
        .engine
        .readiness(script.id())
        .expect("readiness");
    assert!(ready.writable, "{ready:?}");
    let event = std::iter::from_fn(|| script.host.engine.next_event()).last();
    assert!(
        event.is_some_and(|event| event.readiness.writable),
        "{event:?}"
    );
}

/// As in Linux, MSG_MORE holds back although TCP_NODELAY is set; for 200 ms.
#[test]
fn msg_more_outweighs_nodelay() {
    let mut script = Script::established();
    set(&mut script, SocketOption::NoDelay(true));
    let (now, id) = (script.host.now, script.id());
    let bytes = crate::support::script::payload(1, 40);
    let sent = script
        .host
        .engine
        .send(now, id, &bytes, SendFlags { more: true });
    assert_eq!(sent, Ok(40));
    script.expect_within(Ns::from_ms(150), Ns::from_ms(260), "P. 1:41(40) ack 1");
}

/// TCP_NOTSENT_LOWAT bounds what waits; 0 is no bound.
#[test]
fn not_sent_low_water_bounds_what_waits() {
    let mut script = Script::established_with(config(), "mss 1000", 10_000);
    set(&mut script, SocketOption::SendBuffer(200_000));
    set(&mut script, SocketOption::NotSentLowWater(0));
    assert_eq!(script.write(1, 10_000), 10_000);
    set(&mut script, SocketOption::NotSentLowWater(8_000));
    let written = script.write(10_001, 60_000);
    assert!((8_000..=16_000).contains(&written), "{written}");
    let ready = script
        .host
        .engine
        .readiness(script.id())
        .expect("readiness");
    assert!(!ready.writable, "{ready:?}");
}

/// RFC 9293, 3.9.1.2: PSH is for the end of what was written, and MSG_MORE says that it is not there yet. An ACK lets it out all the same.
#[test]
fn rfc9293_3_9_1_2_no_psh_with_msg_more() {
    let mut script = Script::established();
    let (now, id) = (script.host.now, script.id());
    let more = SendFlags { more: true };
    let bytes = crate::support::script::payload(1, 1_100);
    assert_eq!(script.host.engine.send(now, id, &bytes, more), Ok(1_100));
    script.expect(". 1:1001(1000) ack 1");
    script.expect_nothing();
    script.inject(". 1:1(0) ack 1001");
    script.expect(". 1001:1101(100) ack 1");
    script.inject(". 1:1(0) ack 1101");
    let bytes = crate::support::script::payload(1_101, 100);
    let now = script.host.now;
    assert_eq!(script.host.engine.send(now, id, &bytes, more), Ok(100));
    script.expect_nothing();
    // Nobody knows what follows: with the time-out it is pushed.
    script.expect_within(
        Ns::from_ms(150),
        Ns::from_ms(260),
        "P. 1101:1201(100) ack 1",
    );
}

/// Payload bytes of the frames that a first write of 10,000 bytes makes, and whether they have PSH; the handshake took `rtt_ms`.
fn frames_of_the_first_window(rtt_ms: u64) -> Vec<(u32, bool)> {
    let mut config = config();
    config.offload = TxOffload {
        checksum: true,
        segmentation_v4: true,
        segmentation_v6: true,
    };
    let mut script = Script::listening(config);
    script.inject("S 0:0(0) win 65000 <mss 1000>");
    let syn_ack = script.host.take_any().expect("SYN-ACK").packet;
    let (_, _, segment) = unverified(&ip(&syn_ack).expect("IP")).expect("TCP");
    script.engine_iss = segment.seq;
    script.host.run_ms(rtt_ms);
    script.inject(". 1:1(0) ack 1 win 65000");
    script.accept();
    assert_eq!(script.write(1, 10_000), 10_000);
    let sent = std::iter::from_fn(|| script.host.take_any());
    let frame = |s: Sent| (s.frame.payload_bytes, s.packet[33] & PSH != 0);
    sent.map(frame).collect()
}

/// Linux tcp_tso_autosize, tcp_cwnd_test: half a window at most, and about a millisecond of a slow path; each frame ends with PSH.
#[test]
fn frames_for_the_device_to_cut_are_no_long_bursts() {
    assert_eq!(frames_of_the_first_window(0), [(5_000, true); 2]);
    assert_eq!(frames_of_the_first_window(10), [(2_000, true); 5]);
}
