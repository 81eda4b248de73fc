//! The last runs with their packets: what both passes look at. Bounded.
use super::brief::{Brief, FLOWS_OF_RUN};
use super::off_cpu::OffCpuSpans;
use crate::packet::Packet;
use crate::run::{Run, RunIx};
use hopscope_event::{OffCpu, StampFlags, StreamIx, ThreadIx, Tsc};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// So many runs are remembered at a time.
pub const RUNS_KEPT: usize = 1 << 16;
/// And so many stretches of calls in them (16 bytes each).
pub const SPANS_KEPT: usize = 1 << 22;
/// Flows whose last packet is remembered.
const FLOWS_KEPT: usize = 1 << 18;
/// Arrivals are counted in bins of 2^12 ticks.
const ARRIVAL_LOG: u32 = 12;

#[derive(Debug, Default)]
pub(super) struct History {
    runs: VecDeque<Brief>,
    /// Number of the first run in `runs`.
    first: u64,
    spans: usize,
    threads: HashMap<ThreadIx, VecDeque<u64>>,
    ends: HashMap<ThreadIx, Tsc>,
    pub(super) off: OffCpuSpans,
    arrivals: BTreeMap<u64, u32>,
    /// By flow: how many packets had come when its last one did.
    last_of_flow: HashMap<(StreamIx, u32), u64>,
    /// Originals, whatever became of them.
    pub(super) packets: u64,
    pub(super) flows_forgotten: u64,
    /// Packets whose run had already left the history.
    pub(super) too_late: u64,
    pub(super) from: Option<Tsc>,
    pub(super) to: Option<Tsc>,
}

impl History {
    pub(super) fn new(off: OffCpuSpans) -> History {
        History {
            off,
            ..History::default()
        }
    }

    pub(super) fn off_cpu(&mut self, thread: ThreadIx, spans: impl IntoIterator<Item = OffCpu>) {
        self.off.extend(thread, spans);
    }

    /// Takes a run; when that [`History::is_full`], the oldest are to be forgotten.
    pub(super) fn run(&mut self, run: &Run, captured: Option<u32>) {
        let mut brief = Brief::of(run, captured, &self.off);
        brief.previous_end = self.ends.insert(brief.thread, brief.end);
        if self.runs.is_empty() {
            self.first = brief.ix.0;
        }
        self.spans += brief.spans.len();
        let of = self.threads.entry(brief.thread).or_default();
        of.push_back(brief.ix.0);
        self.runs.push_back(brief);
    }

    pub(super) fn is_full(&self) -> bool {
        self.runs.len() > RUNS_KEPT || self.spans > SPANS_KEPT
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Brief> {
        self.runs.iter()
    }

    /// The oldest run, and the arrivals before it, are forgotten.
    pub(super) fn forget_oldest(&mut self) -> Option<Brief> {
        let brief = self.runs.pop_front()?;
        self.first = brief.ix.0 + 1;
        self.spans -= brief.spans.len();
        if let Some(of) = self.threads.get_mut(&brief.thread) {
            of.pop_front();
        }
        // Arrivals of a second and more ago are of no run that is still here; fewer splits.
        let keep = brief.start.0.saturating_sub(1 << 32) >> ARRIVAL_LOG;
        if brief.ix.0.is_multiple_of(1024) {
            self.arrivals = self.arrivals.split_off(&keep);
        }
        Some(brief)
    }

    pub(super) fn packet(&mut self, packet: &Packet) {
        let stamp = &packet.stamp;
        if stamp.flags.contains(StampFlags::DUPLICATE) {
            return;
        }
        self.packets += 1;
        self.from = Some(self.from.map_or(stamp.sent, |f| f.min(stamp.sent)));
        self.to = Some(self.to.map_or(stamp.sent, |t| t.max(stamp.sent)));
        *self
            .arrivals
            .entry(stamp.sent.0 >> ARRIVAL_LOG)
            .or_default() += 1;
        let flow = (packet.stream, stamp.flow);
        let ago = self.flow_came(flow);
        let Some(RunIx(ix)) = packet.run else { return };
        let at = ix.checked_sub(self.first).map(|at| at as usize);
        let Some(run) = at.and_then(|at| self.runs.get_mut(at)) else {
            self.too_late += 1;
            return;
        };
        run.packets += 1;
        run.first_sent = Some(run.first_sent.map_or(stamp.sent, |f| f.min(stamp.sent)));
        if let Some(ago) = ago {
            run.reuse_log += (ago as f64).log2() + 1.0;
            run.reused += 1;
        }
        if !run.flows.contains(&flow) {
            match run.flows.len() < FLOWS_OF_RUN {
                true => run.flows.push(flow),
                false => run.more_flows = true,
            }
        }
    }

    /// How many packets ago this flow had its last one.
    fn flow_came(&mut self, flow: (StreamIx, u32)) -> Option<u64> {
        let now = self.packets;
        if let Some(last) = self.last_of_flow.get_mut(&flow) {
            return Some(now - std::mem::replace(last, now));
        }
        match self.last_of_flow.len() < FLOWS_KEPT {
            true => _ = self.last_of_flow.insert(flow, now),
            false => self.flows_forgotten += 1,
        }
        None
    }

    pub(super) fn get(&self, ix: RunIx) -> Option<&Brief> {
        let at = ix.0.checked_sub(self.first)?;
        self.runs.get(at as usize)
    }

    /// The run before on the same thread; `None` too when it is forgotten.
    pub(super) fn before(&self, run: &Brief) -> Option<&Brief> {
        let of = self.threads.get(&run.thread)?;
        let at = of.binary_search(&run.ix.0).ok()?;
        self.get(RunIx(*of.get(at.checked_sub(1)?)?))
    }

    /// The `each` runs of its thread before and after, without itself.
    pub(super) fn around(&self, run: &Brief, each: usize) -> impl Iterator<Item = &Brief> {
        let of = self.threads.get(&run.thread);
        let at = of.and_then(|of| Some((of, of.binary_search(&run.ix.0).ok()?)));
        let (of, at) = at.map_or((None, 0), |(of, at)| (Some(of), at));
        let own = run.ix.0;
        let near = of.into_iter().flat_map(move |of| {
            let to = (at + each + 1).min(of.len());
            of.range(at.saturating_sub(each)..to)
        });
        let near = near.filter(move |ix| **ix != own);
        near.filter_map(|ix| self.get(RunIx(*ix)))
    }

    /// Packets sent in the bins that `from..=to` touches, and how long these bins are.
    pub(super) fn arrivals(&self, from: Tsc, to: Tsc) -> (u64, i64) {
        let (first, last) = (from.0 >> ARRIVAL_LOG, to.0.max(from.0) >> ARRIVAL_LOG);
        let count = self
            .arrivals
            .range(first..=last)
            .map(|(_, n)| u64::from(*n));
        (count.sum(), ((last - first + 1) << ARRIVAL_LOG) as i64)
    }
}
