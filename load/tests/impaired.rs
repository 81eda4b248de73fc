//! Through the bridge that impairs, whose fates are a pure function of a seed: the generator names
//! every packet that was dropped, repeated, held back or damaged, and no other.
use hopscope_event::{Ns, Stamp, StampFlags, TscFrequency};
use hopscope_load::packets::clock;
use hopscope_load::packets::flow::{Flow, FlowTable, Protocol, numbered};
use hopscope_load::packets::frame::{Frames, Link};
use hopscope_load::packets::plan::{Pace, PacketPlan, Traffic};
use hopscope_load::packets::run::{Ports, RunResult, Timing};
use hopscope_load::packets::wait::Wait;
use hopscope_netio::bridge::{Bridge, Fate, Impairments};
use hopscope_netio::clock::tsc_now;
use hopscope_netio::{MemoryOptions, memory_pair};
use hopscope_openloop::Arrivals;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const COUNT: u64 = 20_000;

fn plan(frequency: TscFrequency) -> PacketPlan {
    let first = Flow {
        protocol: Protocol::Udp,
        source: [198, 18, 0, 1].into(),
        destination: [198, 19, 0, 1].into(),
        source_port: 1024,
        destination_port: 9,
    };
    let link = Link {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };
    let sizes = "imix"
        .parse::<hopscope_load::packets::sizes::Sizes>()
        .expect("a mix");
    // One flow: what was held back is then exactly what is reordered.
    let flows = FlowTable::new(&numbered(first, 1)).expect("one family");
    PacketPlan {
        traffic: Traffic::Generated {
            frames: Arc::new(Frames::new(flows, &sizes, link, 1514).expect("room")),
            sizes,
            link,
            locality: 1,
            scatter: None,
            zipf: None,
        },
        arrivals: Arrivals::Constant,
        ramp: Duration::ZERO,
        seed: 3,
        frequency,
        wait: Wait::Sleep,
    }
}

/// The bridge ends when it has passed on all it was given; no time decides what is lost.
fn through(impairments: Impairments, seed: u64) -> (Vec<Stamp>, RunResult, TscFrequency) {
    let frequency = clock::frequency();
    let (mut near, a) = memory_pair(MemoryOptions::default());
    let (b, mut far) = memory_pair(MemoryOptions::default());
    let none = Impairments::default();
    let bridge = Bridge::new(
        Box::new(a),
        Box::new(b),
        impairments,
        none,
        seed,
        frequency,
        false,
    );
    let mut bridge = bridge.expect("probabilities");
    let passing = std::thread::spawn(move || {
        loop {
            bridge.step(tsc_now()).expect("memory never fails");
            let counts = bridge.counts()[0];
            if counts.received == COUNT && counts.held == 0 {
                return counts;
            }
            std::thread::yield_now();
        }
    });
    let rows = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&rows);
    let timing = Timing {
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(3600),
        count: COUNT,
        interval: Duration::from_secs(1),
        late_after: Duration::from_secs(3600),
        lost_after: Duration::from_secs(60),
        rate: 0.0,
    };
    let ports = Ports::Two {
        sender: &mut near,
        receiver: &mut far,
        threads: false,
    };
    let stop = AtomicBool::new(false);
    let outcome = plan(frequency)
        .run(
            Pace::Max,
            timing,
            1,
            ports,
            Some(Box::new(move |row| {
                sink.lock().expect("no panic").push(*row)
            })),
            &stop,
            &mut |_, _| {},
        )
        .expect("memory never fails");
    let counts = passing.join().expect("the bridge does not panic");
    assert_eq!((counts.overrun, counts.not_sendable), (0, 0));
    let rows = rows.lock().expect("no panic").clone();
    (rows, outcome, frequency)
}

#[test]
fn what_the_bridge_did_is_what_is_found() {
    for seed in 1..=3 {
        let impairments = Impairments {
            drop: 0.03,
            duplicate: 0.02,
            reorder: 0.02,
            corrupt: 0.03,
            delay: Ns(20_000),
            jitter: Ns(5_000),
            // A machine that stands still must not let a held frame go early.
            reorder_wait: Ns(5_000_000_000),
            ..Impairments::default()
        };
        let (rows, outcome, frequency) = through(impairments, seed);
        let fates: Vec<Fate> = (0..COUNT)
            .map(|number| Fate::of(Bridge::seed_of(seed, 0), number, &impairments))
            .collect();
        let truth = |is: &dyn Fn(usize, &Fate) -> bool| -> BTreeSet<u64> {
            let numbered = fates.iter().enumerate();
            numbered
                .filter(|(n, fate)| is(*n, fate))
                .map(|(n, _)| n as u64)
                .collect()
        };
        let told = |is: &dyn Fn(&Stamp) -> bool| -> BTreeSet<u64> {
            rows.iter()
                .filter(|row| is(row))
                .map(|row| row.seq)
                .collect()
        };
        let has = |flag| move |row: &Stamp| row.flags.contains(flag);
        assert_eq!(
            told(&|row| row.received.is_none()),
            truth(&|_, fate| fate.dropped)
        );
        assert_eq!(
            told(&has(StampFlags::DUPLICATE)),
            truth(&|_, fate| fate.duplicated)
        );
        assert_eq!(
            told(&has(StampFlags::CORRUPTED)),
            truth(&|_, fate| fate.corrupted.is_some())
        );
        // Held back behind others, if others came that were not held back themselves. Of a repeated
        // one the twin stays in line and is the first to arrive.
        let passes = |fate: &Fate| !fate.dropped && !fate.reordered;
        let overtaken = |n: usize, fate: &Fate| {
            fate.reordered && !fate.duplicated && fates[n + 1..].iter().any(passes)
        };
        assert_eq!(told(&has(StampFlags::REORDERED)), truth(&overtaken));
        assert_eq!(outcome.strays, Default::default(), "seed {seed}");
        assert_eq!(outcome.total.sent, COUNT);

        // No packet was found faster than the bridge let it be.
        let first: BTreeMap<u64, &Stamp> = rows.iter().rev().map(|row| (row.seq, row)).collect();
        for (number, fate) in fates.iter().enumerate().filter(|(_, fate)| !fate.dropped) {
            let ticks = first[&(number as u64)].transit_ticks().expect("it arrived");
            let ns = frequency.ns(ticks);
            assert!(ns + 1 >= fate.delay.0 as i64, "{number}: {ns} ns, {fate:?}");
        }
    }
}

#[test]
fn a_perfect_cable_loses_and_changes_nothing() {
    let (rows, outcome, _) = through(Impairments::default(), 1);
    assert_eq!(rows.len() as u64, COUNT);
    let numbers: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    assert!(numbers.iter().copied().eq(0..COUNT), "all, in order");
    assert!(
        rows.iter()
            .all(|row| row.received.is_some() && row.flags == StampFlags::NONE)
    );
    assert_eq!((outcome.total.received, outcome.total.lost), (COUNT, 0));
}
