//! What a packet's whole way costs: each point's hit, and what of it is not hits.
use super::constant::{median, spread};
use super::traffic::Loopback;
use super::{CalibrateError, PACKETS, ROUNDS};
use crate::programs::{Choose, SliceError, Slicer};
use hopscope_bpf::run_stats;
use hopscope_event::slice::{Constant, Counter, HookCost, Point};
use std::collections::BTreeMap;

pub(super) struct PathCosts {
    pub hits: Vec<HookCost>,
    pub miss: Constant,
    pub begin: Constant,
    pub hand_over: Constant,
}

/// A hit that only stamps: from outside, and by the kernel's own measure of the program's run.
#[derive(Clone, Copy)]
pub(super) struct EmptyHit {
    pub hit: Constant,
    pub run_ns: u32,
}

/// One packet's time in four states, taken in turn: detached, every packet followed, followed and not
/// handed over, not chosen. Differences of the medians of one round count. What one program costs
/// more than a stamp is what the kernel measures of its runs more than of a stamp's; what is left of
/// the whole belongs to every hit alike.
pub(super) fn path_costs(
    slicer: &mut Slicer,
    traffic: &Loopback,
    empty: EmptyHit,
) -> Result<PathCosts, CalibrateError> {
    let min_latency = slicer.options().min_latency_ns;
    slicer.set_min_latency(0)?;
    // The packets here are none of those that the user asked for. Others' are not followed: their
    // records would end after the counters are set to zero.
    slicer.set_own(traffic.netns())?;
    slicer.set_choose(Choose::Own)?;
    let mut ring = slicer.drain()?;
    let (mut miss, mut hand_over, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let mut hits = 0;
    let mut runs: BTreeMap<Point, Vec<u32>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let off = traffic.run(PACKETS)?;
        slicer.start()?;
        let created = slicer.counters()?.get(Counter::Created);
        let (of_packet, on) = counted(slicer, traffic)?;
        hits = of_packet;
        // What is measured is the way of packets that are followed.
        let seen = slicer.counters()?.get(Counter::Created) - created;
        if seen < u64::from(PACKETS / 2) {
            return Err(CalibrateError::TooFew {
                sent: PACKETS,
                seen: seen as u32,
            });
        }
        for (point, run_ns) in run_times(slicer, traffic)? {
            runs.entry(point).or_default().push(run_ns);
        }
        slicer.set_min_latency(u64::MAX)?;
        let (_, kept) = counted(slicer, traffic)?;
        slicer.set_choose(Choose::None)?;
        let (misses, none) = counted(slicer, traffic)?;
        slicer.set_choose(Choose::Own)?;
        slicer.set_min_latency(0)?;
        slicer.detach();
        ring.take_all()?;
        miss.push(none.saturating_sub(off) / misses.max(1));
        hand_over.push(on.saturating_sub(kept));
        whole.push(on.saturating_sub(off));
    }
    slicer.set_min_latency(min_latency)?;
    slicer.set_choose(Choose::Asked)?;
    let hand_over = spread(&mut hand_over);
    let more = |point: Point| {
        let mut times = runs.get(&point).cloned().unwrap_or_default();
        if times.is_empty() {
            0
        } else {
            median(&mut times).saturating_sub(empty.run_ns)
        }
    };
    let points = slicer.points();
    // The record begins before its first stamp's clock is read.
    let first = points
        .iter()
        .copied()
        .find(|point| *point >= Point::TxIpOut);
    let begin = first.map_or(0, more);
    let of_point = |point: Point| {
        if Some(point) == first {
            0
        } else {
            more(point).saturating_sub(of_end(point, &points, hand_over.mode))
        }
    };
    let known: u32 = points.iter().map(|point| of_point(*point)).sum();
    let known = known + begin + hand_over.mode + hits * empty.hit.mode;
    let whole = spread(&mut whole);
    let rest = (i64::from(whole.mode) - i64::from(known)) / i64::from(hits.max(1));
    let of_hit = |point| {
        let more = i64::from(of_point(point)) + rest;
        let plus = |ns: u32| (i64::from(ns) + more).max(0) as u32;
        let hit = Constant {
            mode: plus(empty.hit.mode),
            low: plus(empty.hit.low),
            high: plus(empty.hit.high),
            samples: empty.hit.samples,
        };
        HookCost { point, hit }
    };
    Ok(PathCosts {
        hits: points.iter().map(|point| of_hit(*point)).collect(),
        miss: spread(&mut miss),
        begin: Constant {
            mode: begin,
            low: begin,
            high: begin,
            samples: ROUNDS as u32,
        },
        hand_over,
    })
}

/// The last program's run has the handing over in it.
fn of_end(point: Point, points: &[Point], hand_over: u32) -> u32 {
    match points.last() {
        Some(last) if *last == point => hand_over,
        _ => 0,
    }
}

/// By point, what one run of its programs takes, as the kernel measures it, in ns.
pub(super) fn run_times(
    slicer: &Slicer,
    traffic: &Loopback,
) -> Result<Vec<(Point, u32)>, CalibrateError> {
    let before = slicer.runs(&[])?;
    let measuring = run_stats::measure().map_err(SliceError::from)?;
    traffic.run(PACKETS)?;
    drop(measuring);
    let after = slicer.runs(&[])?;
    let mut sums: BTreeMap<Point, (u64, u64)> = BTreeMap::new();
    for ((point, before), (_, after)) in before.iter().zip(&after) {
        let Some(point) = point else { continue };
        let sum = sums.entry(*point).or_default();
        sum.0 += after.run_ns - before.run_ns;
        sum.1 += after.runs - before.runs;
    }
    let each = sums
        .into_iter()
        .filter(|(_, (_, runs))| *runs >= u64::from(PACKETS) / 2);
    Ok(each
        .map(|(point, (ns, runs))| (point, (ns / runs) as u32))
        .collect())
}

/// Hits a packet, and a packet's median time.
fn counted(slicer: &Slicer, traffic: &Loopback) -> Result<(u32, u32), CalibrateError> {
    let hits =
        |slicer: &Slicer| -> Result<u64, SliceError> { Ok(slicer.counters()?.get(Counter::Hits)) };
    let before = hits(slicer)?;
    let time = traffic.run(PACKETS)?;
    let per_packet = (hits(slicer)? - before) / u64::from(PACKETS);
    Ok((per_packet as u32, time))
}
