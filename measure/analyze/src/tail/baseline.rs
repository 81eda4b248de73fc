//! The first pass: what is ordinary in this recording.
use super::bins::{Bins, Shape};
use super::brief::{Brief, Place};
use super::history::History;
use crate::join::captured_count;
use crate::packet::Packet;
use crate::run::Run;
use hdrhistogram::Histogram;
use hopscope_event::{FunctionId, OffCpu, ThreadIx};
use std::collections::HashMap;

/// Runs at a batch size from which its median is taken; else it is estimated from other sizes.
const RUNS_MIN: u64 = 24;

/// A function that occurs in fewer than one run with packets in so many is ordinarily not there: the
/// 90th percentile of its time is 0.
const RARE_ONE_IN: u64 = 10;

/// Where the number of packets in a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSize {
    /// This capture of this function.
    Captured(FunctionId, u16),
    /// This function is called once for each packet.
    CallsOf(FunctionId),
    /// The packets that were matched with the run; those that never came back are missing.
    Matched,
}

/// Feed it runs and packets of the whole recording, then give it to [`super::Tail`].
#[derive(Debug)]
pub struct Baseline {
    history: History,
    capture: Option<(FunctionId, u16)>,
    batch_from: Option<BatchSize>,
    by_place: HashMap<Place, OfPlace>,
    /// Time before runs that packets waited, by what was called there outside of runs.
    outside: HashMap<FunctionId, Bins>,
    with_packets: u64,
    batches: Bins,
    pickup: Bins,
    way_out: Bins,
    latency: Histogram<u64>,
    reuse: (f64, u64),
    pub(super) runs: u64,
}

#[derive(Debug, Default)]
struct OfPlace {
    sizes: HashMap<u32, OfSize>,
    /// Runs with packets in which it occurs.
    with_packets: u64,
}

#[derive(Debug, Default)]
struct OfSize {
    bins: Bins,
    batches: u64,
}

/// Sizes that are looked at together: exact up to 8, then four an octave.
fn size_class(batch: u32) -> u32 {
    if batch <= 8 {
        return batch;
    }
    let octave = batch.ilog2();
    octave * 4 + (batch >> (octave - 2) & 3)
}

impl Baseline {
    /// `capture`: where a probe captured the number of packets of a run.
    pub fn new(capture: Option<(FunctionId, u16)>) -> Baseline {
        Baseline {
            history: History::default(),
            capture,
            batch_from: capture.map(|(f, c)| BatchSize::Captured(f, c)),
            by_place: HashMap::new(),
            outside: HashMap::new(),
            with_packets: 0,
            batches: Bins::default(),
            pickup: Bins::default(),
            way_out: Bins::default(),
            latency: Histogram::new(3).expect("3 digits is in the allowed 0..=5"),
            reuse: (0.0, 0),
            runs: 0,
        }
    }

    /// To be told before the runs.
    pub fn off_cpu(&mut self, thread: ThreadIx, spans: impl IntoIterator<Item = OffCpu>) {
        self.history.off_cpu(thread, spans);
    }

    pub fn run(&mut self, run: &Run) {
        self.history.run(run, captured(run, self.capture));
        while self.history.is_full() {
            self.learn_oldest();
        }
    }

    pub fn packet(&mut self, packet: &Packet) {
        self.history.packet(packet);
        let stamp = &packet.stamp;
        let (Some(latency), Some(received)) = (stamp.latency_ticks(), stamp.received) else {
            return;
        };
        // Auto-resizing: takes any value.
        _ = self.latency.record(latency.max(0) as u64);
        let run = packet.run.and_then(|ix| self.history.get(ix));
        if let Some(run) = run.filter(|r| r.complete && received > r.end) {
            self.way_out.record(received - run.end);
        }
    }

    /// No more runs and packets come.
    pub fn finish(mut self) -> Ordinary {
        while self.history.all().next().is_some() {
            self.learn_oldest();
        }
        let History {
            packets,
            from,
            to,
            off,
            ..
        } = self.history;
        let span = from.zip(to).map_or(0, |(from, to)| to - from);
        let with_packets = self.with_packets;
        let is_rare = |runs: u64| runs * RARE_ONE_IN < with_packets;
        let places = self.by_place.into_iter().map(|(place, of)| {
            let rare = is_rare(of.with_packets);
            let mut sizes: Vec<_> = of.sizes.into_values().collect();
            sizes.sort_by_key(|s| s.batches / s.bins.len.max(1));
            let enough = |s: &&OfSize| s.bins.len >= RUNS_MIN;
            let known: Vec<_> = match sizes.iter().any(|s| enough(&s)) {
                true => sizes.iter().filter(enough).map(OfSize::shape).collect(),
                // Too few of any size: all that there is.
                false => sizes.iter().map(OfSize::shape).collect(),
            };
            let ticks = sizes.iter().map(|s| s.bins.ordinary_ticks()).sum();
            let ordinary = OrdinaryPlace {
                ticks,
                sizes: amortized(known),
                with_packets: of.with_packets,
                rare,
            };
            (place, ordinary)
        });
        let places: HashMap<Place, OrdinaryPlace> = places.collect();
        let outside = self.outside.into_iter().map(|(function, bins)| {
            let ordinary = OrdinaryPlace {
                ticks: bins.ordinary_ticks(),
                sizes: vec![(1.0, bins.shape())],
                with_packets: bins.len,
                rare: is_rare(bins.len),
            };
            (Place::Function(function), ordinary)
        });
        let outside: HashMap<Place, OrdinaryPlace> = outside.collect();
        let (pickup, way_out) = (self.pickup.ordinary_ticks(), self.way_out.ordinary_ticks());
        let all = places.values().chain(outside.values());
        let of_places: i128 = all.map(|of| of.ticks).sum();
        Ordinary {
            places,
            outside,
            with_packets,
            batch_from: self.batch_from.unwrap_or(BatchSize::Matched),
            capture: self.capture,
            batch: self.batches.shape(),
            batch_p90: self.batches.quantile(0.9),
            pickup: self.pickup.shape(),
            pickups: self.pickup.len,
            way_out: self.way_out.shape(),
            way_outs: self.way_out.len,
            latency: self.latency,
            reuse_log: self.reuse.0 / self.reuse.1.max(1) as f64,
            ticks: of_places + pickup + way_out,
            pickup_ticks: pickup,
            way_out_ticks: way_out,
            runs: self.runs,
            packets,
            packets_per_tick: packets as f64 / span.max(1) as f64,
            off,
            arrivals_known: true,
        }
    }

    fn learn_oldest(&mut self) {
        if self.batch_from.is_none() {
            self.batch_from = Some(per_packet_function(&self.history));
        }
        let Some(run) = self.history.forget_oldest() else {
            return;
        };
        if !run.complete {
            return;
        }
        self.runs += 1;
        let from = self.batch_from.unwrap_or(BatchSize::Matched);
        let batch = batch_size(&run, from);
        let some = packets_in(&run, from) > 0;
        self.with_packets += u64::from(some);
        self.batches.record(i64::from(batch));
        for spent in &run.spent {
            let of = self.by_place.entry(spent.place).or_default();
            of.with_packets += u64::from(some);
            let size = of.sizes.entry(size_class(batch)).or_default();
            size.bins.record(spent.ticks);
            size.batches += u64::from(batch);
        }
        if let Some(sent) = run.first_sent {
            let from = run.previous_end.map_or(sent, |end| end.max(sent));
            for (function, ticks) in run.outside_since(from) {
                self.outside.entry(function).or_default().record(ticks);
            }
        }
        self.reuse.0 += run.reuse_log;
        self.reuse.1 += u64::from(run.reused);
        if let Some(sent) = run.first_sent
            && run.start > sent
            && run.previous_end.is_none_or(|end| end <= sent)
        {
            let off = self
                .history
                .off
                .preempted_ticks(run.thread, sent, run.start);
            let pickup = run.start - sent - off;
            self.pickup.record(pickup);
        }
    }
}

/// A packet costs no more in a large batch than in a small one, and varies no more. Where it does,
/// the batches of that size are large *because* of what was slow (packets gathered behind it), and
/// are no measure of what is ordinary.
fn amortized(mut sizes: Vec<(f64, Shape)>) -> Vec<(f64, Shape)> {
    let (mut per_packet, mut spread) = (f64::MAX, f64::MAX);
    for (size, shape) in &mut sizes {
        shape.median = shape.median.min(per_packet * *size);
        shape.spread = shape.spread.min(spread);
        per_packet = shape.median / *size;
        spread = shape.spread;
    }
    sizes
}

impl OfSize {
    fn shape(&self) -> (f64, Shape) {
        let mean = self.batches as f64 / self.bins.len.max(1) as f64;
        (mean, self.bins.shape())
    }
}

pub(super) fn captured(run: &Run, capture: Option<(FunctionId, u16)>) -> Option<u32> {
    captured_count(run, capture?)
}

pub(super) fn batch_size(run: &Brief, from: BatchSize) -> u32 {
    packets_in(run, from).max(1)
}

/// 0: a pass that handled none.
fn packets_in(run: &Brief, from: BatchSize) -> u32 {
    let said = match from {
        BatchSize::Captured(..) => run.captured.unwrap_or(0),
        BatchSize::CallsOf(f) => run.calls_of(Place::Function(f)),
        BatchSize::Matched => 0,
    };
    said.max(run.packets)
}

/// The function whose calls in a run come nearest to the number of its packets, and are hardly
/// ever fewer: packets that are dropped are handled too.
fn per_packet_function(history: &History) -> BatchSize {
    let mut seen: HashMap<FunctionId, (u64, u64, u32)> = HashMap::new();
    let (mut runs, mut packets) = (0u64, 0u64);
    for run in history.all().filter(|r| r.complete && r.packets > 0) {
        runs += 1;
        packets += u64::from(run.packets);
        for spent in &run.spent {
            if let Place::Function(f) = spent.place {
                let (calls, enough, most) = seen.entry(f).or_default();
                *calls += u64::from(spent.calls);
                *enough += u64::from(spent.calls >= run.packets);
                *most = (*most).max(spent.calls);
            }
        }
    }
    // One that is never called twice in a run is called for each batch.
    let fits = |(_, (calls, enough, most)): &(FunctionId, (u64, u64, u32))| {
        *enough * 20 >= runs * 19 && *calls <= packets * 4 && *most > 1
    };
    let nearest = seen
        .into_iter()
        .filter(fits)
        .min_by_key(|(f, (calls, ..))| (*calls, *f));
    nearest.map_or(BatchSize::Matched, |(f, _)| BatchSize::CallsOf(f))
}

/// What is ordinary of one place.
#[derive(Debug, Default)]
struct OrdinaryPlace {
    ticks: i128,
    /// By batch size, of the runs in which it occurs.
    sizes: Vec<(f64, Shape)>,
    with_packets: u64,
    /// In most runs it takes no time, so that is what is ordinary of it.
    rare: bool,
}

/// What is ordinary.
#[derive(Debug)]
pub struct Ordinary {
    places: HashMap<Place, OrdinaryPlace>,
    /// Outside of runs, of the time for which packets waited.
    outside: HashMap<Place, OrdinaryPlace>,
    with_packets: u64,
    pub(super) batch_from: BatchSize,
    pub(super) capture: Option<(FunctionId, u16)>,
    pub(super) batch: Shape,
    pub(super) batch_p90: f64,
    pub(super) pickup: Shape,
    pub(super) pickups: u64,
    pub(super) way_out: Shape,
    pub(super) way_outs: u64,
    pub(super) latency: Histogram<u64>,
    /// Mean of log2(packets since the flow's last one) + 1.
    pub(super) reuse_log: f64,
    ticks: i128,
    pickup_ticks: i128,
    way_out_ticks: i128,
    pub(super) runs: u64,
    pub(super) packets: u64,
    pub(super) packets_per_tick: f64,
    pub(super) off: super::off_cpu::OffCpuSpans,
    pub(super) arrivals_known: bool,
}

impl Ordinary {
    /// Packets have no stamps: their times are of the places where runs captured their numbers, and
    /// nothing is known of when they arrived.
    pub fn without_arrivals(self) -> Ordinary {
        Ordinary {
            arrivals_known: false,
            ..self
        }
    }

    pub fn batch_from(&self) -> BatchSize {
        self.batch_from
    }

    pub(super) fn batch_of(&self, run: &Brief) -> u32 {
        batch_size(run, self.batch_from)
    }

    /// Median time in this place for a batch, and the spread there. A place that occurs in few runs
    /// has none: not to be there is ordinary.
    pub(super) fn expected(&self, place: Place, batch: u32) -> Shape {
        match self.is_rare(place) {
            true => Shape::default(),
            false => self.when_called(place, batch),
        }
    }

    pub(super) fn is_rare(&self, place: Place) -> bool {
        self.places.get(&place).is_some_and(|of| of.rare)
    }

    /// What this function ordinarily takes, outside of runs, of the time that packets wait; and, where
    /// it is called before few runs, what it takes when it is.
    pub(super) fn outside(&self, function: FunctionId) -> (Shape, Option<Shape>) {
        let of = self.outside.get(&Place::Function(function));
        let called = of.map_or(Shape::default(), |of| of.sizes[0].1);
        match of.is_some_and(|of| of.rare) {
            true => (Shape::default(), Some(called)),
            false => (called, None),
        }
    }

    /// Of the runs with packets, those in or before which this occurs.
    pub(super) fn occurs(&self, place: Place) -> (u64, u64) {
        let of = self.places.get(&place).or(self.outside.get(&place));
        (of.map_or(0, |of| of.with_packets), self.with_packets)
    }

    /// The same as [`Ordinary::expected`] in the runs in which it occurs.
    pub(super) fn when_called(&self, place: Place, batch: u32) -> Shape {
        let Some(OrdinaryPlace { sizes, .. }) = self.places.get(&place) else {
            return Shape::default();
        };
        let n = f64::from(batch);
        let after = sizes.partition_point(|(size, _)| *size < n);
        match (after.checked_sub(1).map(|at| sizes[at]), sizes.get(after)) {
            (None, None) => Shape::default(),
            (None, Some((_, shape))) => *shape,
            (Some((low, a)), Some((high, b))) => {
                let part = (n - low) / (high - low).max(1e-9);
                Shape {
                    median: a.median + (b.median - a.median) * part,
                    spread: a.spread.max(b.spread),
                }
            }
            // Beyond all sizes that are known: on along the line, or in proportion when there is
            // none. Too much rather than too little: a large batch is not to look like a slow
            // function.
            (Some((high, b)), None) => {
                let (low, a) = sizes[0];
                let per_packet = match sizes.len() {
                    1 => b.median / high.max(1.0),
                    _ => (b.median - a.median) / (high - low).max(1e-9),
                };
                Shape {
                    median: b.median + per_packet.max(0.0) * (n - high),
                    spread: b.spread,
                }
            }
        }
    }

    /// What a run of an ordinary batch takes: each place that is ordinarily there.
    pub(super) fn typical_run(&self) -> f64 {
        let batch = self.batch.median.floor().max(1.0) as u32;
        let places = self.places.keys();
        places.map(|p| self.expected(*p, batch).median).sum()
    }

    pub(super) fn expected_run(&self, run: &Brief, batch: u32) -> f64 {
        let places = run.spent.iter().map(|s| s.place);
        places.map(|p| self.expected(p, batch).median).sum()
    }

    /// The share of all time that is spent there.
    pub(super) fn share(&self, place: Place) -> f64 {
        let of = [self.places.get(&place), self.outside.get(&place)];
        self.of_all(of.into_iter().flatten().map(|of| of.ticks).sum())
    }

    pub(super) fn pickup_share(&self) -> f64 {
        self.of_all(self.pickup_ticks)
    }

    pub(super) fn way_out_share(&self) -> f64 {
        self.of_all(self.way_out_ticks)
    }

    pub(super) fn places(&self) -> u64 {
        (self.places.len() + self.outside.len()) as u64 + 2
    }

    fn of_all(&self, ticks: i128) -> f64 {
        ticks as f64 / self.ticks.max(1) as f64
    }
}
