//! Loss-recovery scenarios, each named after the RFC section that says what happens.
use super::path::{FIRST, Fate, MSS, Options, Path, Transmitted};
use crate::Ns;
use crate::config::TcpConfig;
use crate::info::CongestionState;
use crate::tcp::sender::SentKind;

/// The first transmissions of these segments are lost.
fn lose_once(segments: &'static [u32]) -> impl FnMut(Transmitted) -> Fate {
    move |t| {
        if t.transmission == 0 && segments.contains(&t.segment) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    }
}

fn sent(path: &Path, segment: u32) -> Vec<(Ns, SentKind)> {
    let of = path.sent_log.iter().filter(|(_, t)| t.segment == segment);
    of.map(|(at, t)| (*at, t.kind)).collect()
}

/// Writes `segments` of them and runs until all is acknowledged.
fn transfer(path: &mut Path, segments: u32) -> Ns {
    let begin = path.now;
    path.write(u64::from(segments * MSS));
    path.run(begin + Ns::from_ms(60_000));
    assert!(path.done(), "{:?}", path.sender);
    assert_eq!(path.receiver.rcv_nxt, FIRST + segments * MSS);
    path.now.since(begin)
}

const RTT: Ns = Ns::from_ms(1);

#[test]
fn rfc6675_sack_single_loss() {
    let mut path = Path::new(Options::default(), lose_once(&[2]));
    let took = transfer(&mut path, 10);
    assert_eq!(path.counters.tcp_retrans_segs, 1);
    assert_eq!(path.counters.fast_retrans, 1);
    assert_eq!(path.counters.timeouts + path.counters.loss_probes, 0);
    assert!(took < Ns::from_ms(3), "{took:?}");
    // RFC 9438, 4.6; two segments were acknowledged before.
    assert_eq!(path.sender.window.ssthresh(), 12 * MSS * 7 / 10);
}

#[test]
fn rfc6675_two_holes_partial_ack() {
    for rack in [true, false] {
        let mut options = Options::default();
        options.config.rack = rack;
        let mut path = Path::new(options, lose_once(&[1, 4]));
        let took = transfer(&mut path, 10);
        assert_eq!(path.counters.tcp_retrans_segs, 2, "rack {rack}");
        assert_eq!(path.counters.sack_recovery, 1);
        assert_eq!(path.counters.timeouts, 0);
        // Both in one round trip, without a wait for the partial ACK.
        assert!(took < Ns::from_ms(3), "{took:?}");
    }
}

#[test]
fn rfc6582_no_sack_two_holes_take_a_round_trip_each() {
    let mut options = Options::default();
    options.config.sack = false;
    let mut path = Path::new(options, lose_once(&[1, 4]));
    let took = transfer(&mut path, 10);
    assert_eq!(path.counters.reno_recovery, 1);
    assert_eq!(path.counters.tcp_retrans_segs, 2);
    assert_eq!(path.counters.timeouts, 0);
    assert!(took > RTT + RTT && took < Ns::from_ms(6), "{took:?}");
}

#[test]
fn rfc8985_lost_retransmission_is_found_without_a_timeout() {
    let options = Options {
        ack_delay: Ns::from_ms(1),
        ..Options::default()
    };
    let mut path = Path::new(options, |t| match (t.segment, t.transmission) {
        (2, 0 | 1) => Fate::Lost,
        _ => Fate::Arrives,
    });
    let took = transfer(&mut path, 40);
    assert_eq!(sent(&path, 2).len(), 3);
    assert_eq!(path.counters.lost_retransmit, 1);
    assert_eq!(path.counters.timeouts, 0);
    assert!(took < Ns::from_ms(8), "{took:?}");
}

#[test]
fn rfc6298_5_lost_retransmit_then_rto() {
    let mut options = Options::default();
    options.config.rack = false;
    options.config.tail_loss_probe = false;
    let mut path = Path::new(options, |t| match (t.segment, t.transmission) {
        (2, 0 | 1) => Fate::Lost,
        _ => Fate::Arrives,
    });
    transfer(&mut path, 10);
    let times = sent(&path, 2);
    assert_eq!(path.counters.timeouts, 1);
    let waited = times[2].0.since(times[1].0);
    assert!(
        (Ns::from_ms(200)..Ns::from_ms(204)).contains(&waited),
        "{waited:?}"
    );
}

#[test]
fn rfc6298_5_5_timer_backs_off() {
    let mut path = Path::new(Options::default(), |t| match (t.segment, t.transmission) {
        (0, 0..5) => Fate::Lost,
        _ => Fate::Arrives,
    });
    transfer(&mut path, 1);
    let times: Vec<Ns> = sent(&path, 0).iter().map(|(at, _)| *at).collect();
    let waits: Vec<u64> = times
        .windows(2)
        .map(|w| w[1].since(w[0]).0 / 1_000_000)
        .collect();
    // The probe, then the time-out and its doublings.
    assert_eq!(waits, [201, 201, 402, 804, 1608]);
}

#[test]
fn rfc8985_7_tail_loss_timer_recovery() {
    let mut path = Path::new(Options::default(), lose_once(&[9]));
    let took = transfer(&mut path, 10);
    assert_eq!(path.counters.loss_probes, 1);
    assert_eq!(path.counters.timeouts, 0);
    assert_eq!(sent(&path, 9)[1].1, SentKind::TailProbe);
    assert!(took < Ns::from_ms(6), "{took:?}");
    // 7.4.2: that the probe repaired a loss shows when no DSACK came before the next ACK; then it is congestion.
    assert_eq!(path.sender.window.ssthresh(), u32::MAX);
    transfer_more(&mut path, 2);
    assert_eq!(path.counters.loss_probe_recovery, 1);
    assert!(path.sender.window.ssthresh() <= 14 * MSS);
}

#[test]
fn rfc8985_7_tail_of_three_is_repaired_after_the_probe() {
    let mut path = Path::new(Options::default(), lose_once(&[7, 8, 9]));
    let took = transfer(&mut path, 10);
    assert_eq!(path.counters.loss_probes, 1);
    assert_eq!(path.counters.timeouts, 0);
    assert_eq!(path.counters.tcp_retrans_segs, 3);
    assert!(took < Ns::from_ms(8), "{took:?}");
}

#[test]
fn rfc8985_7_4_a_needless_probe_is_no_congestion() {
    // Not lost, but late.
    let mut path = Path::new(Options::default(), |t| match (t.segment, t.transmission) {
        (9, 0) => Fate::Late(Ns::from_ms(4)),
        _ => Fate::Arrives,
    });
    transfer(&mut path, 10);
    path.run_for(Ns::from_ms(20));
    transfer_more(&mut path, 2);
    assert_eq!(path.counters.loss_probes, 1);
    assert_eq!(path.counters.loss_probe_recovery, 0);
    assert_eq!(path.sender.window.ssthresh(), u32::MAX);
}

#[test]
fn rfc8985_7_2_the_last_single_segment_waits_for_a_delayed_ack() {
    let options = Options {
        config: TcpConfig::lan(),
        ..Options::default()
    };
    let mut path = Path::new(options, |_| Fate::Arrives);
    path.write(u64::from(MSS));
    let (_, at) = path.sender.timer().unwrap();
    // The RTO, which is less than 2·SRTT + max_ack_delay.
    assert_eq!(at.since(path.now), Ns::from_ms(6));
    transfer_more(&mut path, 0);
}

/// By SACK alone, without timestamps.
#[test]
fn rfc5682_spurious_timeout_is_undone() {
    let mut options = Options::default();
    options.config.timestamps = false;
    // All is late by 400 ms once.
    let mut path = Path::new(options, |t| {
        if (10..60).contains(&t.nth) {
            Fate::Late(Ns::from_ms(400))
        } else {
            Fate::Arrives
        }
    });
    path.write(u64::from(10 * MSS));
    path.run_for(Ns::from_ms(100));
    let cwnd = path.sender.cwnd();
    transfer_more(&mut path, 30);
    assert!(path.counters.timeouts >= 1);
    assert_eq!(path.counters.spurious_rtos, 1);
    assert!(path.sender.cwnd() >= cwnd, "{} {cwnd}", path.sender.cwnd());
    assert_eq!(path.sender.window.ssthresh(), u32::MAX);
}

fn transfer_more(path: &mut Path, segments: u32) {
    path.write(u64::from(segments * MSS));
    path.run(path.now + Ns::from_ms(60_000));
    assert!(path.done());
}

#[test]
fn rfc3522_reordering_that_looked_like_loss_is_undone_by_timestamps() {
    // Late enough to be taken for lost; 10 ms of path, so that the stamps differ.
    let options = Options {
        one_way: Ns::from_ms(10),
        ..Options::default()
    };
    let mut path = Path::new(options, |t| match (t.segment, t.transmission) {
        (0, 0) => Fate::Late(Ns::from_ms(15)),
        _ => Fate::Arrives,
    });
    transfer(&mut path, 10);
    assert_eq!(path.counters.sack_recovery, 1);
    assert_eq!(path.counters.full_undo + path.counters.partial_undo, 1);
    assert_eq!(path.sender.window.ssthresh(), u32::MAX);
}

#[test]
fn rfc2883_dsack_undoes_without_timestamps() {
    let mut options = Options::default();
    options.config.timestamps = false;
    let mut path = Path::new(options, |t| match (t.segment, t.transmission) {
        (0, 0) => Fate::Late(Ns::from_ms(1)),
        _ => Fate::Arrives,
    });
    transfer(&mut path, 10);
    path.run_for(Ns::from_ms(10));
    assert_eq!(path.counters.sack_recovery, 1);
    assert_eq!(path.counters.dsack_recv, 1);
    assert_eq!(path.counters.dsack_undo, 1);
    assert_eq!(path.sender.window.ssthresh(), u32::MAX);
}

#[test]
fn rfc8985_6_2_reordering_once_seen_is_waited_for() {
    let options = Options {
        bits_per_s: 100_000_000,
        ..Options::default()
    };
    let mut path = Path::new(options, |t| {
        // Each fifth is late by 0.2 ms, less than a quarter of the round trip.
        if t.segment % 5 == 0 {
            Fate::Late(Ns::from_us(200))
        } else {
            Fate::Arrives
        }
    });
    transfer(&mut path, 500);
    assert!(path.counters.sack_reorder > 10);
    assert!(
        path.counters.tcp_retrans_segs <= 3,
        "{:?}",
        path.counters.tcp_retrans_segs
    );
}

#[test]
fn rfc5681_no_timestamp_no_sack_still_recovers() {
    let mut options = Options::default();
    options.config.timestamps = false;
    options.config.sack = false;
    let mut path = Path::new(options, lose_once(&[0, 3, 11, 12, 27]));
    transfer(&mut path, 60);
}

#[test]
fn rfc6298_3_karn_no_sample_of_a_retransmitted_segment() {
    let mut options = Options::default();
    options.config.timestamps = false;
    let mut path = Path::new(options, lose_once(&[0]));
    transfer(&mut path, 1);
    // An ambiguous sample would be of 200 ms.
    assert!(
        path.sender.srtt().unwrap() <= RTT,
        "{:?}",
        path.sender.srtt()
    );
}

#[test]
fn rfc7661_app_limited_no_cwnd_growth() {
    let mut path = Path::new(Options::default(), |_| Fate::Arrives);
    for _ in 0..200 {
        path.write(u64::from(2 * MSS));
        path.run_for(Ns::from_ms(2));
    }
    assert_eq!(path.sender.cwnd(), 10 * MSS);
}

#[test]
fn rfc5681_4_1_restart_after_idle() {
    let mut path = Path::new(Options::default(), |_| Fate::Arrives);
    transfer(&mut path, 500);
    assert!(path.sender.cwnd() > 100 * MSS);
    path.run_for(Ns::from_ms(10_000));
    path.write(u64::from(MSS));
    assert_eq!(path.sender.cwnd(), 10 * MSS);
}

#[test]
fn rfc6937_a_window_half_lost_keeps_the_ack_clock() {
    // 20 of 40 in flight are lost: the retransmissions come in step with the ACKs.
    let lost: &'static [u32] = &[
        31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63, 65, 67, 69,
    ];
    // The very last segment's ACK may be delayed, whatever the recovery was like.
    let options = Options {
        ack_delay: Ns::from_ms(1),
        ..Options::default()
    };
    let mut path = Path::new(options, lose_once(lost));
    let took = transfer(&mut path, 200);
    assert_eq!(path.counters.timeouts, 0);
    assert_eq!(path.counters.tcp_retrans_segs, 20);
    assert!(took < Ns::from_ms(25), "{took:?}");
    // After the first, hardly more at once than an ACK delivers.
    let again = path.sent_log.iter();
    let again = again.filter(|(_, t)| t.kind == SentKind::Retransmission);
    let times: Vec<Ns> = again.map(|(at, _)| *at).collect();
    let most = times
        .iter()
        .map(|at| times.iter().filter(|t| *t == at).count());
    assert!(most.max() <= Some(3), "{times:?}");
}

#[test]
fn rfc6298_a_window_all_lost_takes_one_timeout() {
    let mut path = Path::new(Options::default(), |t| {
        if (30..70).contains(&t.nth) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    let took = transfer(&mut path, 200);
    assert!(path.counters.timeouts <= 1);
    assert!(took < Ns::from_ms(450), "{took:?}");
    assert_eq!(path.sender.state, CongestionState::Open);
}

#[test]
fn rfc2883_a_network_that_duplicates_is_no_reason_for_anything() {
    let mut path = Path::new(Options::default(), |t| {
        if t.nth % 3 == 0 {
            Fate::Twice
        } else {
            Fate::Arrives
        }
    });
    transfer(&mut path, 300);
    assert!(path.counters.dsack_ignored_dubious > 50);
    assert_eq!(path.counters.tcp_retrans_segs, 0);
    assert_eq!(path.counters.sack_recovery, 0);
}

#[test]
fn rfc5681_lost_acks_alone_cause_no_retransmission() {
    let mut path = Path::new(Options::default(), |_| Fate::Arrives);
    path.lose_acks(|nth| nth % 2 == 0);
    transfer(&mut path, 301);
    assert_eq!(
        path.counters.tcp_retrans_segs - path.counters.loss_probes,
        0
    );
    assert_eq!(path.counters.timeouts, 0);
}

#[test]
fn rfc3042_limited_transmit_without_sack_repairs_small_windows() {
    let mut options = Options::default();
    options.config.sack = false;
    options.config.initial_window = 3;
    let mut path = Path::new(options, lose_once(&[0]));
    let took = transfer(&mut path, 20);
    assert_eq!(path.counters.timeouts, 0);
    assert!(took < Ns::from_ms(100), "{took:?}");
}
