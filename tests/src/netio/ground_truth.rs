//! Frames through a bridge between two veth pairs: the ones that arrive are those that the seed
//! lets pass, in the order that it says.
use super::frames::{number, open, receive, receive_until, send};
use super::veth;
use anyhow::{Result, ensure};
use hopscope_event::Ns;
use hopscope_netio::Direction;
use hopscope_netio::bridge::{Bridge, Fate, Impairments, Waiting};
use hopscope_netio::clock::measure_frequency;
use hopscope_tests::counts;
use std::sync::atomic::{AtomicBool, Ordering};

const SEED: u64 = 2026;
const IMPAIRED: Impairments = Impairments {
    drop_tail: 0.0,
    drop: 0.05,
    duplicate: 0.05,
    reorder: 0.05,
    reorder_by: 2,
    reorder_wait: Ns(10_000_000_000),
    corrupt: 0.0,
    delay: Ns(20_000),
    jitter: Ns(10_000),
};

pub(super) fn run() -> Result<()> {
    veth::namespace()?;
    veth::pair("near", "in")?;
    veth::pair("out", "far")?;
    let bridge_ports = (
        open("packet:in", Direction::Both)?,
        open("packet:out", Direction::Both)?,
    );
    let mut bridge = Bridge::new(
        bridge_ports.0,
        bridge_ports.1,
        IMPAIRED,
        Impairments::default(),
        SEED,
        measure_frequency(),
        true,
    )?;
    let mut near = open("packet:near", Direction::Both)?;
    let mut far = open("packet:far", Direction::Both)?;
    let count = counts().pick(3_000, 50_000) as u32;
    let expected = truth(count);
    let mut frames = Vec::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let running = scope.spawn(|| bridge.run(&stop, Waiting::Sleep));
        let sent = send(&mut *near, 0..count, || {
            receive(&mut *far, &mut frames).map(drop)
        });
        let received = receive_until(&mut *far, &mut frames, expected.len());
        stop.store(true, Ordering::Release);
        running.join().expect("no panic")?;
        sent.and(received)
    })?;
    let arrived = frames
        .iter()
        .map(|f| number(f))
        .collect::<Result<Vec<_>>>()?;
    let [counts, back] = bridge.counts();
    ensure!(
        arrived == expected,
        "{} arrived, {} expected: {counts:?}",
        arrived.len(),
        expected.len()
    );
    let fates = bridge.fates()[0].unwrap_or_default();
    ensure!(fates.len() == count as usize && back.received == 0);
    ensure!(
        counts.received + counts.duplicated == counts.dropped + counts.released + counts.held,
        "{counts:?}"
    );
    Ok(())
}

/// By the rules alone: a held frame follows the second one that passes it.
fn truth(count: u32) -> Vec<u32> {
    let seed = Bridge::seed_of(SEED, 0);
    let (mut out, mut held) = (Vec::new(), Vec::<(u32, u32)>::new());
    for number in 0..count {
        let fate = Fate::of(seed, u64::from(number), &IMPAIRED);
        if fate.dropped {
            continue;
        }
        if fate.duplicated {
            out.push(number);
        }
        if fate.reordered {
            held.push((number, 0));
            continue;
        }
        out.push(number);
        held.iter_mut().for_each(|(_, passed)| *passed += 1);
        out.extend(
            held.extract_if(.., |(_, passed)| *passed >= 2)
                .map(|(n, _)| n),
        );
    }
    out
}
