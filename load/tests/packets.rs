//! Ground truth: a link with known delays, losses, duplicates, reordering and damage is found to be
//! exactly that, packet by packet.
mod virtual_time;

use hopscope_event::{Stamp, StampFlags, Tsc};
use hopscope_load::packets::find_max::{Search, Verdict};
use hopscope_load::packets::flow::Protocol;
use hopscope_load::packets::run::RunResult;
use hopscope_load::packets::sampling::below;
use hopscope_netio::Counters;
use hopscope_openloop::Arrivals;
use hopscope_openloop::random::seeded;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use virtual_time::*;

/// What the link did, by number of the packet.
type Truth = Arc<Mutex<Vec<(Tsc, Fate)>>>;

/// One in 20 lost, one in 20 twice, one in 20 damaged, one in ten held back behind others.
fn impaired(seed: u64, clock: Turned) -> (TheLink, Truth) {
    let truth = Truth::default();
    let noted = Arc::clone(&truth);
    let mut random = seeded(seed, "link");
    let decide = move |_: u64, len: usize, now: Tsc| {
        let delay = 3_000 + below(&mut random, 2_000);
        let fate: Fate = match below(&mut random, 20) {
            0 => vec![],
            1 => vec![(delay, None), (delay + below(&mut random, 200_000), None)],
            2 => {
                let at = below(&mut random, len as u64) as usize;
                let flip = 1u8 << below(&mut random, 8);
                vec![(delay, Some((at, flip)))]
            }
            3 | 4 => vec![(delay + 150_000 + below(&mut random, 100_000), None)],
            _ => vec![(delay, None)],
        };
        noted.lock().expect("no panic").push((now, fate.clone()));
        fate
    };
    (TheLink::new(clock, Box::new(decide)), truth)
}

/// First arrivals and further ones of each packet, as the rows tell them.
fn by_number(rows: &[Stamp]) -> (BTreeMap<u64, Stamp>, BTreeMap<u64, Vec<Stamp>>) {
    let (mut first, mut further) = (BTreeMap::new(), BTreeMap::<u64, Vec<Stamp>>::new());
    for row in rows {
        if row.flags.contains(StampFlags::DUPLICATE) {
            further.entry(row.seq).or_default().push(*row);
        } else {
            assert!(
                first.insert(row.seq, *row).is_none(),
                "{row:?} is told twice"
            );
        }
    }
    (first, further)
}

/// RFC 4737, 3.3, from the truth alone: of each flow, in order of first arrivals.
fn reordered(truth: &[(Tsc, Fate)], flow_of: impl Fn(u64) -> u32) -> Vec<u64> {
    let mut arrivals: Vec<(Tsc, u64)> = Vec::new();
    for (seq, (sent, fate)) in truth.iter().enumerate() {
        if let Some(delay) = fate.iter().map(|(delay, _)| *delay).min() {
            arrivals.push((*sent + delay, seq as u64));
        }
    }
    arrivals.sort();
    let (mut highest, mut reordered) = (BTreeMap::<u32, u64>::new(), Vec::new());
    for (_, seq) in arrivals {
        let highest = highest.entry(flow_of(seq)).or_default();
        if seq < *highest {
            reordered.push(seq);
        }
        *highest = (*highest).max(seq);
    }
    reordered.sort_unstable();
    reordered
}

fn names_all(settings: &Settings, seed: u64) {
    let clock = Turned::default();
    let (mut link, truth) = impaired(seed, clock);
    let found = run(settings, &mut link);
    let truth = truth.lock().expect("no panic").clone();
    assert_eq!(found.sender.sent, truth.len() as u64);
    assert!(truth.len() > 3_000, "{}", truth.len());
    assert_eq!(found.sender.unsent, 0);
    let (first, further) = by_number(&found.rows);
    assert_eq!(first.len(), truth.len(), "a row for each packet");
    for (seq, (given, fate)) in truth.iter().enumerate() {
        let seq = seq as u64;
        let row = &first[&seq];
        // Written into the port's slot one look at the clock before the link had it.
        assert_eq!(*given - row.sent, 25, "{row:?}");
        let arrivals: Vec<Tsc> = fate.iter().map(|(delay, _)| *given + *delay).collect();
        assert_eq!(row.received, arrivals.first().copied(), "{seq}: {fate:?}");
        let duplicates = further.get(&seq).map_or(0, Vec::len);
        assert_eq!(duplicates, fate.len().saturating_sub(1), "{seq}: {fate:?}");
        if let (Some(told), Some(at)) = (further.get(&seq), arrivals.get(1)) {
            assert_eq!(told[0].received, Some(*at));
        }
        let damaged = fate.iter().any(|(_, change)| change.is_some());
        assert_eq!(
            row.flags.contains(StampFlags::CORRUPTED),
            damaged,
            "{seq}: {fate:?} {row:?}"
        );
    }
    let is_reordered = |row: &&Stamp| row.flags.contains(StampFlags::REORDERED);
    let told: Vec<u64> = first
        .values()
        .filter(is_reordered)
        .map(|row| row.seq)
        .collect();
    assert_eq!(
        told,
        reordered(&truth, |seq| (seq % u64::from(settings.flows)) as u32)
    );
    assert!(!told.is_empty() && !further.is_empty(), "nothing to find");

    // The counts are those of the rows, and every interval balances.
    let total = &found.total;
    assert_eq!(
        total.lost,
        truth.iter().filter(|(_, fate)| fate.is_empty()).count() as u64
    );
    assert_eq!(total.duplicate, further.len() as u64);
    assert_eq!(total.reordered, told.len() as u64);
    let sum = |of: fn(&hopscope_load::packets::tally::PacketCounts) -> u64| -> u64 {
        found
            .intervals
            .iter()
            .map(|interval| of(&interval.counts))
            .sum()
    };
    assert_eq!(sum(|counts| counts.sent), found.sender.sent);
    assert!(
        found
            .intervals
            .iter()
            .all(|i| i.counts.sent == i.counts.received + i.counts.lost)
    );
    assert_eq!(found.intervals.len(), 10);
    assert_eq!(found.strays, Default::default());
}

#[test]
fn every_lost_duplicated_reordered_and_damaged_packet_is_named() {
    for seed in 1..=3 {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        names_all(&settings, seed);
    }
}

#[test]
fn so_it_is_with_every_protocol_and_size() {
    for protocol in Protocol::ALL {
        for ipv6 in [false, true] {
            let settings = Settings {
                protocol,
                ipv6,
                sizes: "96:7,594:4,1518:1",
                rate: 50_000.0,
                ..Settings::default()
            };
            names_all(&settings, 9);
        }
    }
}

#[test]
fn latency_counts_from_the_intended_time() {
    // A port that is busy for 2 ms once: what was due meanwhile left late, and says so.
    let clock = Turned::default();
    let stalled = clock.clone();
    let decide = move |seq: u64, _: usize, now: Tsc| {
        if seq == 1_000 {
            stalled.set(now + 2_000_000);
        }
        vec![(10_000, None)]
    };
    let mut link = TheLink::new(clock, Box::new(decide));
    let settings = Settings {
        arrivals: Arrivals::Constant,
        ..Settings::default()
    };
    let found = run(&settings, &mut link);
    assert_eq!((found.sender.sent, found.sender.unsent), (10_000, 0));
    // 200 packets were due in 2 ms; each waited for what was left of it.
    let latency = &found.total.latency;
    let max = latency.max_ns().expect("recorded");
    assert!((1_980_000..2_030_000).contains(&max), "{max}");
    assert!(
        (190..=215).contains(&found.total.late),
        "{}",
        found.total.late
    );
    assert!(latency.quantile_ns(0.99).expect("recorded") > 900_000);
    // From sending all took the same: looking at that alone would hide the stall.
    let transit = found.total.transit.max_ns().expect("recorded");
    assert!(transit < 11_000, "{transit}");
    let late = |row: &&Stamp| row.flags.contains(StampFlags::LATE);
    for row in found.rows.iter().filter(late) {
        assert!(row.sent - row.intended > LATE_AFTER as i64);
    }
}

#[test]
fn a_port_that_is_too_slow_lowers_no_rate_silently() {
    let clock = Turned::default();
    let mut link = TheLink::new(clock, Box::new(|_, _, _| vec![(5_000, None)]));
    // 50,000 a second of 100,000 asked.
    link.gap = 20_000;
    let settings = Settings {
        arrivals: Arrivals::Constant,
        ..Settings::default()
    };
    let found = run(&settings, &mut link);
    assert_eq!(found.sender.sent + found.sender.unsent, 10_000);
    assert!(
        (4_900..5_100).contains(&found.sender.sent),
        "{:?}",
        found.sender
    );
    assert!(found.sender.port_full > 0);
    assert!(found.total.late > 4_800, "{}", found.total.late);
    assert!(found.total.worst_late_ns > 45_000_000);
}

#[test]
fn the_warm_up_is_not_measured() {
    let clock = Turned::default();
    let slow_first =
        |seq: u64, _: usize, _: Tsc| vec![(if seq < 1_000 { 900_000 } else { 4_000 }, None)];
    let mut link = TheLink::new(clock, Box::new(slow_first));
    let settings = Settings {
        arrivals: Arrivals::Constant,
        warm_up: Duration::from_millis(10),
        ..Settings::default()
    };
    let found = run(&settings, &mut link);
    assert_eq!((found.warm_up.sent, found.total.sent), (1_000, 10_000));
    assert!(found.intervals[0].warm_up && !found.intervals[1].warm_up);
    assert!(found.total.latency.max_ns().expect("recorded") < 6_000);
    assert!(found.warm_up.latency.max_ns().expect("recorded") >= 900_000);
}

#[test]
fn what_comes_after_its_time_is_counted_apart() {
    let clock = Turned::default();
    let decide = |seq: u64, _: usize, _: Tsc| match seq {
        7 => vec![(LOST_AFTER + 5_000_000, None)],
        _ => vec![(4_000, None)],
    };
    let mut link = TheLink::new(clock, Box::new(decide));
    let found = run(&Settings::default(), &mut link);
    assert_eq!((found.total.lost, found.strays.after_lost), (1, 1));
    let row = found.rows.iter().find(|row| row.seq == 7).expect("a row");
    assert_eq!(row.received, None);
}

#[test]
fn frames_of_others_are_foreign_and_harm_nothing() {
    let clock = Turned::default();
    let decide = |seq: u64, len: usize, _: Tsc| match seq % 10 {
        0 => vec![(4_000, None), (5_000, Some((len, 0x5a)))],
        // Its second arrival has another ethertype, and still our stamp.
        1 => vec![(4_000, None), (5_000, Some((12, 0xff)))],
        _ => vec![(4_000, None)],
    };
    let mut link = TheLink::new(clock, Box::new(decide));
    let settings = Settings {
        arrivals: Arrivals::Constant,
        ..Settings::default()
    };
    let found = run(&settings, &mut link);
    assert_eq!((found.sender.sent, found.total.lost), (10_000, 0));
    assert_eq!((found.strays.foreign, found.strays.damaged), (1_000, 0));
    assert_eq!(
        (found.total.duplicate, found.total.corrupted),
        (1_000, 1_000)
    );
}

/// A token bucket of 40,000 a second with room for 64 frames.
#[test]
fn the_search_finds_the_limit_of_a_token_bucket() {
    let mut search = Search::new(10.0, 200_000.0, 0.01);
    let mut trials = 0;
    while let Some(rate) = search.rate() {
        let (mut tokens, mut last) = (64.0, START);
        let decide = move |_: u64, _: usize, now: Tsc| {
            tokens = (tokens + (now - last) as f64 * 40_000.0 / 1e9).min(64.0);
            last = now;
            if tokens < 1.0 {
                return vec![];
            }
            tokens -= 1.0;
            vec![(4_000, None)]
        };
        let settings = Settings {
            rate,
            arrivals: Arrivals::Constant,
            duration: Duration::from_secs(1),
            ..Settings::default()
        };
        let found = run(
            &settings,
            &mut TheLink::new(Turned::default(), Box::new(decide)),
        );
        let outcome = RunResult {
            start: START,
            measured_from: START,
            ended: START + 1_000_000_000,
            asked: Some(rate),
            sender: found.sender,
            total: found.total,
            warm_up: found.warm_up,
            strays: found.strays,
            sender_port: Counters::default(),
            receiver_port: Counters::default(),
            interrupted: false,
        };
        search.result(Verdict::of(&outcome, 0.0));
        trials += 1;
    }
    let found = search.found().expect("some rate passes");
    // 64 frames of credit in a second, and one percent of resolution.
    assert!((39_600.0..=40_070.0).contains(&found), "{found}");
    assert_eq!(search.limited_by(), Some(Verdict::Lost));
    assert!(trials <= 12, "{trials}");
}
