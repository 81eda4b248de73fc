//! Flow control.
use crate::support::host::config;
use crate::support::script::Script;
use hopscope_stack_engine::{Ns, SocketOption, TcpState};

/// RFC 9293, 3.8.6.1: probes while the window is zero, for ever, with backoff.
#[test]
fn rfc9293_3_8_6_1_zero_window_probes() {
    let mut script = Script::established_with(config(), "mss 1000", 2_000);
    assert_eq!(script.write(1, 4_000), 4_000);
    script.expect(". 1:1001(1000) ack 1");
    script.expect(". 1001:2001(1000) ack 1");
    script.host.run_ms(1);
    script.inject(". 1:1(0) ack 2001 win 0");
    let mut last = script.host.now;
    let mut spans = Vec::new();
    for _ in 0..6 {
        script.run_until_sent(Ns::from_ms(60_000));
        let (at, probe) = script.take().expect("a probe");
        assert!(probe.payload.len() <= 1, "{}", script.show(&probe));
        spans.push(at.since(last).0 / 1_000_000);
        last = at;
        script.inject(". 1:1(0) ack 2001 win 0");
    }
    assert!((150..=400).contains(&spans[0]), "{spans:?}");
    let doubled = spans
        .windows(2)
        .all(|pair| pair[1] >= pair[0] * 18 / 10 && pair[1] <= pair[0] * 23 / 10);
    assert!(doubled, "{spans:?}");
    script.inject(". 1:1(0) ack 2001 win 5000");
    script.expect(". 2001:3001(1000) ack 1");
    script.expect("P. 3001:4001(1000) ack 1");
}

/// RFC 9293, 3.8.6.1: a peer that answers probes keeps the connection open.
#[test]
fn rfc9293_3_8_6_1_a_closed_window_is_no_failure() {
    let mut script = Script::established_with(config(), "mss 1000", 1_000);
    assert_eq!(script.write(1, 3_000), 3_000);
    script.inject(". 1:1(0) ack 1001 win 0");
    let end = script.host.now + Ns::from_ms(5_000_000);
    while script.host.now < end {
        script.run_until_sent(Ns::from_ms(200_000));
        while script.take().is_some() {}
        script.inject(". 1:1(0) ack 1001 win 0");
    }
    script.inject(". 1:1(0) ack 1001 win 5000");
    script.expect(". 1001:2001(1000) ack 1");
}

/// Linux, tcp_probe_timer: unless nobody is left who would read an answer.
#[test]
fn a_closed_window_does_not_keep_what_is_nobodys() {
    for abandons in [false, true] {
        let mut script = Script::established_with(config(), "mss 1000", 1_000);
        assert_eq!(script.write(1, 3_000), 3_000);
        script.inject(". 1:1(0) ack 1001 win 0");
        let (begun, id) = (script.host.now, script.id());
        let engine = &mut script.host.engine;
        match abandons {
            true => engine.abandon(id).expect("abandon"),
            false => engine.close(begun, id).expect("close"),
        }
        let is_there = |script: &Script| {
            let mut all = script.host.engine.connections(script.host.now);
            all.any(|row| !matches!(row.state, TcpState::Listen | TcpState::Closed))
        };
        while is_there(&script) {
            assert!(
                script.host.now.since(begun) < Ns::from_ms(900_000),
                "{abandons}"
            );
            script.run_until_sent(Ns::from_ms(200_000));
            while script.take().is_some() {}
            if is_there(&script) {
                script.inject(". 1:1(0) ack 1001 win 0");
            }
        }
        // Probes after 0.2, 0.4 … 102.4 s, and the one that would be 120 s later.
        let passed = script.host.now.since(begun);
        assert!(passed > Ns::from_ms(180_000), "{abandons}: {passed:?}");
        assert_eq!(script.host.engine.counters().abort_on_timeout, 1);
    }
}

/// RFC 9293, 3.8.6.2.1: the sender makes no small segment of a small window, when there is more.
#[test]
fn rfc9293_3_8_6_2_1_sender_avoids_silly_windows() {
    let mut script = Script::established_with(config(), "mss 1000", 4_000);
    assert_eq!(script.write(1, 10_000), 10_000);
    for _ in 0..4 {
        script.take().expect("a segment");
    }
    script.inject(". 1:1(0) ack 1001 win 3100");
    script.expect_nothing();
    script.inject(". 1:1(0) ack 2001 win 3000");
    script.expect(". 4001:5001(1000) ack 1");
    script.expect_nothing();
}

/// RFC 9293, 3.8.6.2.2: a window that opens by little is not announced.
#[test]
fn rfc9293_3_8_6_2_2_receiver_avoids_silly_windows() {
    let mut script = Script::listening(config());
    let (now, listener) = (script.host.now, script.listener.expect("a listener"));
    script
        .host
        .engine
        .set_option(now, listener, SocketOption::ReceiveBuffer(8_000))
        .expect("SO_RCVBUF");
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.expect("S. 0:0(0) ack 1");
    script.inject(". 1:1(0) ack 1");
    script.accept();
    let mut place = 1;
    let mut window = 0;
    for _ in 0..40 {
        script.inject(&format!(". {place}:{}(1000) ack 1", place + 1000));
        script.host.run_ms(250);
        let mut acked = place;
        while let Some((_, segment)) = script.take() {
            acked = segment.ack.wrapping_sub(script.peer_iss);
            window = segment.window;
        }
        place = acked.max(place);
        if window == 0 {
            break;
        }
        assert!(window >= 500, "a window of {window} is silly");
    }
    assert_eq!(window, 0, "the window closes");
    // One byte read at a time: at most one announcement for each segment's worth.
    let mut announced = 0;
    for byte in 0..1_500 {
        script.read(1 + byte, 1);
        while script.take().is_some() {
            announced += 1;
        }
    }
    assert!(announced <= 2, "{announced} window updates for 1500 bytes");
    let rest = place - 1 - 1_500;
    script.read(1_501, rest);
    let mut update = None;
    while let Some((_, segment)) = script.take() {
        update = Some(segment);
    }
    assert!(
        update.is_some_and(|update| update.window >= 4_000),
        "the window opens"
    );
}

/// Data into a closed window is not taken, but acknowledged.
#[test]
fn rfc9293_3_4_data_into_a_zero_window() {
    let mut script = Script::listening(config());
    let (now, listener) = (script.host.now, script.listener.expect("a listener"));
    script
        .host
        .engine
        .set_option(now, listener, SocketOption::ReceiveBuffer(4_000))
        .expect("SO_RCVBUF");
    script.inject("S 0:0(0) win 32000 <mss 1000>");
    script.expect("S. 0:0(0) ack 1");
    script.inject(". 1:1(0) ack 1");
    script.accept();
    let mut place = 1;
    for _ in 0..40 {
        script.inject(&format!(". {place}:{}(1000) ack 1", place + 1000));
        script.host.run_ms(250);
        while let Some((_, segment)) = script.take() {
            place = segment.ack.wrapping_sub(script.peer_iss);
        }
    }
    assert!(
        place < 20_001,
        "{place}: what is taken is bounded by the buffer"
    );
    script.inject(&format!(". {place}:{}(1) ack 1", place + 1));
    script.expect(&format!(". 1:1(0) ack {place} win 0"));
    script.read(1, place - 1);
}

/// RFC 7323, 2.3: shifts above 14 are 14.
#[test]
fn rfc7323_2_3_scale_above_14() {
    let script = Script::established_with(config(), "mss 1000,wscale 200", 1_000);
    assert_eq!(script.info().snd_wscale, 14);
}

/// RFC 7323, 2.2: the window of a SYN is not scaled, that of all others is.
#[test]
fn rfc7323_2_2_windows_are_scaled() {
    let mut script = Script::listening(config());
    script.inject("S 0:0(0) win 3000 <mss 1000,wscale 4>");
    script.expect("S. 0:0(0) ack 1");
    script.inject(". 1:1(0) ack 1 win 500");
    script.accept();
    assert_eq!(script.info().snd_wnd, 8_000);
    assert_eq!(script.write(1, 10_000), 10_000);
    let sent: usize = std::iter::from_fn(|| script.take())
        .map(|(_, s)| s.payload.len())
        .sum();
    assert_eq!(sent, 8_000);
}

/// Without the peer's option the window is at most 65,535.
#[test]
fn rfc7323_2_2_unscaled() {
    let script = Script::established();
    let info = script.info();
    assert!(!info.options_window_scaling && info.rcv_wscale == 0);
    assert!(info.rcv_wnd <= 65_535, "{}", info.rcv_wnd);
}

/// tcpi_busy_time, tcpi_rwnd_limited: how long there was something to send, and how long of it the peer's window was the limit.
#[test]
fn tcp_info_tells_how_long_the_window_limits() {
    let mut script = Script::established_with(config(), "mss 1000", 2_000);
    script.host.run_ms(100);
    let limits = |script: &Script| {
        let info = script.info();
        [info.busy_time, info.rwnd_limited, info.sndbuf_limited].map(|span| span.0 / 1_000_000)
    };
    assert_eq!(limits(&script), [0, 0, 0]);
    assert_eq!(script.write(1, 3_000), 3_000);
    script.host.run_ms(20);
    assert_eq!(limits(&script), [20, 20, 0]);
    script.inject(". 1:1(0) ack 2001 win 2000");
    script.host.run_ms(10);
    assert_eq!(limits(&script), [30, 20, 0]);
    script.inject(". 1:1(0) ack 3001 win 2000");
    script.host.run_ms(50);
    assert_eq!(limits(&script), [30, 20, 0]);
}
