use super::*;
use crate::{MemoryOptions, MemoryPort, Outgoing, memory_pair};

const FREQUENCY: TscFrequency = TscFrequency(1_000_000_000);
const SEED: u64 = 7;

const ALL: Impairments = Impairments {
    drop_tail: 0.0,
    drop: 0.1,
    duplicate: 0.1,
    reorder: 0.1,
    reorder_by: 3,
    reorder_wait: Ns(u64::MAX / 4),
    corrupt: 0.1,
    delay: Ns(0),
    jitter: Ns(0),
};

/// A bridge between two memory pairs, and the outer ends.
fn bridge(there: Impairments) -> (MemoryPort, Bridge, MemoryPort) {
    let (a, inner_a) = memory_pair(MemoryOptions::default());
    let (b, inner_b) = memory_pair(MemoryOptions::default());
    let (inner_a, inner_b) = (Box::new(inner_a), Box::new(inner_b));
    let back = Impairments::default();
    let bridge = Bridge::new(inner_a, inner_b, there, back, SEED, FREQUENCY, true).unwrap();
    (a, bridge, b)
}

fn send(port: &mut MemoryPort, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut fill = |slot: &mut [u8]| {
            slot[..8].copy_from_slice(&number.to_le_bytes());
            slot[8..60].fill(0);
            Outgoing {
                len: 60,
                ..Outgoing::default()
            }
        };
        assert_eq!(port.send(1, &mut fill).unwrap(), 1);
    }
    port.flush().unwrap();
}

fn receive(port: &mut MemoryPort) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    port.receive(1024, &mut |frame| frames.push(frame.bytes.to_vec()))
        .unwrap();
    frames
}

/// What must come out, by the rules and the fates alone.
fn truth(frames: u64) -> Vec<Vec<u8>> {
    let (mut out, mut parked) = (Vec::new(), Vec::<(u32, Vec<u8>)>::new());
    for number in 0..frames {
        let fate = Fate::of(Bridge::seed_of(SEED, 0), number, &ALL);
        if fate.dropped {
            continue;
        }
        let mut frame = vec![0; 60];
        frame[..8].copy_from_slice(&number.to_le_bytes());
        if let Some(bit) = fate.corrupted {
            frame[(bit % 480 / 8) as usize] ^= 1 << (bit % 8);
        }
        if fate.duplicated {
            out.push(frame.clone());
        }
        if fate.reordered {
            parked.push((0, frame));
            continue;
        }
        out.push(frame);
        for (overtaken, _) in &mut parked {
            *overtaken += 1;
        }
        while let Some(at) = parked.iter().position(|(overtaken, _)| *overtaken >= 3) {
            out.push(parked.remove(at).1);
        }
    }
    out
}

#[test]
fn each_frame_comes_out_as_its_fate_says() {
    let (mut a, mut bridge, mut b) = bridge(ALL);
    let (mut out, frames) = (Vec::new(), 5_000);
    for start in (0..frames).step_by(50) {
        send(&mut a, start..start + 50);
        bridge.step(tsc_now()).unwrap();
        out.extend(receive(&mut b));
    }
    assert_eq!(out, truth(frames));
    let [counts, back] = bridge.counts();
    assert_eq!(back, LaneCounts::default());
    assert_eq!(
        counts.received + counts.duplicated,
        counts.dropped + counts.released + counts.held
    );
    let fates = bridge.fates()[0].unwrap();
    let of = |f: fn(&Fate) -> bool| fates.iter().filter(|fate| f(fate)).count() as u64;
    assert_eq!(counts.dropped, of(|f| f.dropped));
    assert_eq!(counts.duplicated, of(|f| f.duplicated));
    assert_eq!(counts.reordered, of(|f| f.reordered));
    assert_eq!(counts.corrupted, of(|f| f.corrupted.is_some()));
    // 5,000 draws of 0.1: 500, and 5 standard deviations are 106.
    for count in [counts.dropped, counts.duplicated + counts.duplicated / 10] {
        assert!((394..=606).contains(&count), "{counts:?}");
    }
}

#[test]
fn a_delayed_frame_leaves_when_its_time_has_come_and_jitter_keeps_the_order() {
    let (mut a, mut bridge, mut b) = bridge(Impairments {
        delay: Ns(1_000_000_000_000),
        jitter: Ns(500_000_000_000),
        ..Impairments::default()
    });
    send(&mut a, 0..20);
    let now = tsc_now();
    bridge.step(now).unwrap();
    assert_eq!(receive(&mut b), Vec::<Vec<u8>>::new());
    assert_eq!(bridge.counts()[0].held, 20);
    // A tick is a nanosecond here. The first frame was stamped before `now`.
    let first = Fate::of(
        Bridge::seed_of(SEED, 0),
        0,
        &Impairments {
            delay: Ns(1_000_000_000_000),
            jitter: Ns(500_000_000_000),
            ..Impairments::default()
        },
    );
    assert!(first.delay.0 > 1_000_000_000_000);
    bridge.step(now + 999_000_000_000).unwrap();
    assert_eq!(receive(&mut b), Vec::<Vec<u8>>::new());
    bridge.step(now + first.delay.0).unwrap();
    let mut out = receive(&mut b);
    assert!(!out.is_empty());
    bridge.step(now + 1_500_000_000_000).unwrap();
    out.extend(receive(&mut b));
    assert!(out.iter().map(|frame| frame[0]).eq(0..20));
    assert_eq!(bridge.counts()[0].held, 0);
    assert_eq!(bridge.counts()[0].delayed, 20);
}

#[test]
fn a_frame_that_nothing_overtakes_goes_in_the_end_and_is_counted() {
    let (mut a, mut bridge, mut b) = bridge(Impairments {
        reorder: 1.0,
        ..Impairments::default()
    });
    send(&mut a, 0..1);
    let now = tsc_now();
    bridge.step(now).unwrap();
    assert_eq!(receive(&mut b).len(), 0);
    bridge.step(now + 100_000_000).unwrap();
    assert_eq!(receive(&mut b).len(), 1);
    assert_eq!(bridge.counts()[0].reorder_timed_out, 1);
}

#[test]
fn what_the_other_port_cannot_send_is_counted() {
    let (mut a, inner_a) = memory_pair(MemoryOptions::default());
    let small = MemoryOptions {
        max_frame_len: 40,
        ..MemoryOptions::default()
    };
    let (_b, inner_b) = memory_pair(small);
    let perfect = Impairments::default();
    let (inner_a, inner_b) = (Box::new(inner_a), Box::new(inner_b));
    let mut bridge =
        Bridge::new(inner_a, inner_b, perfect, perfect, SEED, FREQUENCY, false).unwrap();
    send(&mut a, 0..3);
    bridge.step(tsc_now()).unwrap();
    let counts = bridge.counts()[0];
    assert_eq!((counts.not_sendable, counts.held), (3, 0));
}

#[test]
fn a_probability_that_is_none_is_refused() {
    let error = Impairments {
        drop: 1.5,
        ..Impairments::default()
    }
    .check()
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "drop 1.5 is not a probability: it must be from 0 to 1"
    );
}
