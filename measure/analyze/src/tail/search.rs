//! The second pass: each late packet taken apart, and followed back.
use super::baseline::{Ordinary, captured};
use super::blame::{Blame, slow_stretch};
use super::brief::{Brief, Place};
use super::cause::Evidence;
use super::chance::poisson_at_least;
use super::events::{Event, Events, Late};
use super::flows::Flows;
use super::history::{History, RUNS_KEPT};
use super::parts::{Parts, split};
use super::walk::{Walk, walk};
use crate::packet::{Match, NoMatch, Packet};
use crate::run::{Run, RunIx};
use hopscope_event::{StampFlags, TscFrequency};
use std::collections::{BTreeMap, VecDeque};

/// Late packets that wait until the runs around them are known.
const PENDING_MAX: usize = 1 << 19;
/// One cause is named for a packet when it is this share of all that exceeds the ordinary …
const SHARE_MIN: f64 = 0.35;
/// … and of what its latency is beyond the median.
const OF_LATENCY_MIN: f64 = 0.2;
/// What a function takes each time is no farther from its own median than this; beyond it something
/// interrupted it.
const ITS_OWN_Z: f64 = 4.0;

/// Which packets are late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Above this percentile of the latencies of the recording.
    Percentile(f64),
    /// Longer than so many nanoseconds.
    Ns(u64),
}

impl Threshold {
    pub fn ticks(self, ordinary: &Ordinary, frequency: TscFrequency) -> u64 {
        match self {
            Threshold::Percentile(p) => ordinary.latency.value_at_quantile(p / 100.0),
            Threshold::Ns(ns) => frequency.ticks(hopscope_event::Ns(ns)),
        }
    }
}

/// Packets examined. `late` = `attributed` + `too_late` + `not_its_run` + those in `no_run`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TailCounts {
    pub packets: u64,
    pub never_came_back: u64,
    /// Packets above the threshold.
    pub late: u64,
    pub attributed: u64,
    /// Of these, matched by order among several runs.
    pub ambiguous: u64,
    /// Without a run, by reason.
    pub no_run: BTreeMap<NoMatch, u64>,
    /// Their run had left the history when they came.
    pub too_late: u64,
    /// They arrived before the run began that they were matched with.
    pub not_its_run: u64,
    /// Examined before all packets around them were known.
    pub looked_at_early: u64,
    /// Flows of which it is not known whether a function is slow for them.
    pub flows_not_followed: u64,
}

#[derive(Debug)]
pub struct Tail {
    pub(super) ordinary: Ordinary,
    pub(super) threshold_ticks: u64,
    history: History,
    pending: VecDeque<Packet>,
    pub(super) events: Events,
    pub(super) flows: Flows,
    pub(super) counts: TailCounts,
    pub(super) latency_ticks: i128,
    pub(super) parts: PartSums,
    /// Packets without a dominant part, and their latency.
    pub(super) nothing: Nothing,
}

/// Sums over the late packets, by kind of part.
pub(super) type PartSums = BTreeMap<&'static str, i128>;

#[derive(Debug, Default)]
pub(super) struct Nothing {
    pub(super) packets: u64,
    pub(super) latency: i128,
    pub(super) example: Option<Late>,
}

impl Tail {
    pub fn new(mut ordinary: Ordinary, threshold_ticks: u64) -> Tail {
        let off = std::mem::take(&mut ordinary.off);
        Tail {
            ordinary,
            threshold_ticks,
            history: History::new(off),
            pending: VecDeque::new(),
            events: Events::default(),
            flows: Flows::default(),
            counts: TailCounts::default(),
            latency_ticks: 0,
            parts: PartSums::new(),
            nothing: Nothing::default(),
        }
    }

    pub fn run(&mut self, run: &Run) {
        self.history.run(run, captured(run, self.ordinary.capture));
        if !self.history.is_full() {
            return;
        }
        // A packet is looked at with as many runs after it as before it, if there are.
        let runs = self.history.all().count() as u64;
        let oldest = self.history.all().next().map_or(0, |r| r.ix.0);
        self.look_at_until(RunIx(oldest + runs / 2));
        for _ in 0..runs / 4 {
            self.forget_oldest();
        }
    }

    pub fn packet(&mut self, packet: &Packet) {
        self.history.packet(packet);
        if packet.stamp.flags.contains(StampFlags::DUPLICATE) {
            return;
        }
        self.counts.packets += 1;
        let Some(latency) = packet.stamp.latency_ticks() else {
            self.counts.never_came_back += 1;
            return;
        };
        if latency <= self.threshold_ticks as i64 {
            return;
        }
        self.counts.late += 1;
        if let Match::None(why) = packet.matched {
            *self.counts.no_run.entry(why).or_default() += 1;
            return;
        }
        if self.pending.len() >= PENDING_MAX {
            let half: Vec<Packet> = self.pending.drain(..PENDING_MAX / 2).collect();
            self.counts.looked_at_early += half.len() as u64;
            half.iter().for_each(|p| self.look_at(p));
        }
        self.pending.push_back(*packet);
    }

    /// End of runs and packets: examines all that wait.
    pub(super) fn look_at_rest(&mut self) {
        for packet in std::mem::take(&mut self.pending) {
            self.look_at(&packet);
        }
        while self.forget_oldest() {}
        self.counts.flows_not_followed = self.flows.not_followed;
    }

    fn forget_oldest(&mut self) -> bool {
        let oldest = self.history.forget_oldest();
        oldest.is_some_and(|run| {
            self.flows.add(&run, &self.ordinary);
            true
        })
    }

    fn look_at_until(&mut self, until: RunIx) {
        let mut kept = VecDeque::with_capacity(self.pending.len());
        for packet in std::mem::take(&mut self.pending) {
            match packet.run.is_none_or(|ix| ix < until) {
                true => self.look_at(&packet),
                false => kept.push_back(packet),
            }
        }
        self.pending = kept;
    }

    fn look_at(&mut self, packet: &Packet) {
        let Some(run) = packet.run.and_then(|ix| self.history.get(ix)) else {
            self.counts.too_late += 1;
            return;
        };
        let stamp = &packet.stamp;
        let batch = self.ordinary.batch_of(run);
        let Some(parts) = split(stamp, run, batch, &self.history) else {
            self.counts.not_its_run += 1;
            return;
        };
        self.counts.attributed += 1;
        if let Match::Order { ambiguous_among } = packet.matched {
            self.counts.ambiguous += u64::from(ambiguous_among > 1);
        }
        self.latency_ticks += i128::from(parts.latency_ticks);
        for segment in &parts.segments {
            *self.parts.entry(segment.part.name()).or_default() += i128::from(segment.ticks);
        }
        let walk = walk(stamp, run, &self.history, &self.ordinary);
        let latency = parts.latency_ticks;
        match self.event(packet, run, &walk, parts) {
            Ok(event) => self.events.add(*event),
            Err(late) => {
                self.nothing.packets += 1;
                self.nothing.latency += i128::from(latency);
                let known = self
                    .nothing
                    .example
                    .as_ref()
                    .map_or(0, |l| l.parts.latency_ticks);
                if latency > known {
                    self.nothing.example = Some(*late);
                }
            }
        }
    }

    /// The event that explains most of what exceeds the ordinary; none when nothing does.
    fn event(
        &self,
        packet: &Packet,
        run: &Brief,
        walk: &Walk<'_>,
        parts: Parts,
    ) -> Result<Box<Event>, Box<Late>> {
        let latency = parts.latency_ticks;
        let mut late = Late {
            packet: *packet,
            parts,
            links: walk.links.clone(),
            more_links: walk.more_links,
            explained_ticks: 0,
        };
        let over = latency - self.ordinary.latency.value_at_quantile(0.5) as i64;
        let all: i64 = walk.blamed.iter().map(|(_, ticks)| ticks).sum();
        let mut kinds: BTreeMap<_, i64> = BTreeMap::new();
        for (blame, ticks) in &walk.blamed {
            *kinds.entry(blame.kind()).or_default() += ticks;
        }
        let Some((kind, sum)) = kinds.into_iter().max_by_key(|(_, ticks)| *ticks) else {
            return Err(Box::new(late));
        };
        if (sum as f64) < all as f64 * SHARE_MIN || (sum as f64) < over as f64 * OF_LATENCY_MIN {
            return Err(Box::new(late));
        }
        let mut of_kind = walk.blamed.iter().filter(|(b, _)| b.kind() == kind);
        let blame = match kind.0 {
            // A busy period is one event, whichever of its runs were waited for.
            4 => of_kind.map(|(b, _)| *b).min(),
            _ => of_kind.by_ref().max_by_key(|(_, t)| *t).map(|(b, _)| *b),
        };
        let Some(blame) = blame else {
            return Err(Box::new(late));
        };
        late.explained_ticks = sum.min(latency);
        Ok(Box::new(self.with_evidence(blame, run, walk, late)))
    }

    fn holds_up(&self, ticks: i64, z: f64) -> bool {
        z < ITS_OWN_Z && ticks as f64 > self.ordinary.typical_run()
    }

    fn rare(&self, run: RunIx, place: Place, ticks: i64, in_run: bool) -> Evidence {
        let (runs, of) = self.ordinary.occurs(place);
        Evidence::Rare {
            run,
            ticks,
            in_run,
            runs,
            of,
        }
    }

    fn with_evidence(&self, blame: Blame, run: &Brief, walk: &Walk<'_>, late: Late) -> Event {
        let ordinary = &self.ordinary;
        let stamp = late.packet.stamp;
        let mut event = Event {
            blame,
            packets: 1,
            explained: i128::from(late.explained_ticks),
            latency: i128::from(late.parts.latency_ticks),
            z: 0.0,
            chance_ln: 0.0,
            evidence: Evidence::None,
            flows: Vec::new(),
            large_batch: false,
            holds_up: false,
            at: stamp.sent,
            example: late,
        };
        let known = |ix| self.history.get(ix);
        match blame {
            Blame::Slow(ix, place) => {
                let Some(root) = known(ix) else { return event };
                let when_called = ordinary.when_called(place, ordinary.batch_of(root));
                let spent = root.spent.binary_search_by_key(&place, |s| s.place);
                let ticks = spent.map_or(0, |at| root.spent[at].ticks);
                event.z = when_called.z(ticks as f64);
                event.flows.clone_from(&root.flows);
                event.at = root.start;
                event.evidence = Evidence::Slow {
                    run: ix,
                    ticks,
                    ordinary_ticks: when_called.median as i64,
                };
                if ordinary.is_rare(place) {
                    event.holds_up = self.holds_up(ticks, event.z);
                    event.evidence = self.rare(ix, place, ticks, true);
                }
            }
            Blame::Outside(ix, place) => {
                let (Some(root), Place::Function(function)) = (known(ix), place) else {
                    return event;
                };
                let first = root.first_sent.unwrap_or(root.start);
                let from = root.previous_end.map_or(first, |end| end.max(first));
                let its = root.outside_since(from).into_iter();
                let ticks = its.filter(|(f, _)| *f == function).map(|(_, t)| t).sum();
                let (expected, when_rare) = ordinary.outside(function);
                event.z = when_rare.unwrap_or(expected).z(ticks as f64);
                event.holds_up = when_rare.is_some() && self.holds_up(ticks, event.z);
                event.evidence = self.rare(ix, place, ticks, false);
                event.at = root.start;
            }
            Blame::Slower(ix) => {
                let Some(root) = known(ix) else { return event };
                if let Some(stretch) = slow_stretch(root, &self.history, ordinary) {
                    event.evidence = Evidence::Slower {
                        run: ix,
                        ratio: stretch.ratio,
                        reuse: stretch.reuse,
                        ordinary_reuse: (ordinary.reuse_log - 1.0).exp2(),
                    };
                }
                event.at = root.start;
            }
            Blame::PreemptedIn(ix) | Blame::PreemptedBefore(ix) => {
                let in_run = blame == Blame::PreemptedIn(ix);
                let Some(root) = known(ix) else { return event };
                let from = root.first_sent.unwrap_or(root.start).min(root.start);
                let before = self
                    .history
                    .off
                    .preempted_ticks(root.thread, from, root.start);
                event.evidence = Evidence::OffCpu {
                    run: ix,
                    ticks: if in_run { root.preempted } else { before },
                    in_run,
                };
                event.at = root.start;
            }
            Blame::Gathered(ix) | Blame::Held(ix) | Blame::WokenLate(ix) => {
                let Some(root) = known(ix) else { return event };
                let batch = ordinary.batch_of(root);
                let first = root.first_sent.unwrap_or(root.start);
                let idle_from = root.previous_end.map_or(first, |end| end.max(first));
                let gathered = (root.start - idle_from).max(0);
                event.z = ordinary.pickup.z(gathered as f64);
                let typical = ordinary.batch.median.max(1.0);
                event.large_batch =
                    f64::from(batch) >= typical * 3.0 && f64::from(batch) > ordinary.batch_p90;
                event.evidence = Evidence::Batch {
                    run: ix,
                    packets: batch,
                    ordinary: typical.floor() as u32,
                    gathered_ticks: gathered,
                };
                event.at = root.start;
            }
            Blame::Ordinary(_) if !ordinary.arrivals_known => {}
            Blame::Ordinary(_) => {
                let last = stamp.sent.max(walk.earliest);
                let first = run
                    .first_sent
                    .map_or(walk.earliest, |f| f.min(walk.earliest));
                let (packets, within_ticks) = self.history.arrivals(first, last);
                let expected = ordinary.packets_per_tick * within_ticks as f64;
                // The stretch begins with a packet: that one is no surprise.
                event.chance_ln = poisson_at_least(packets.saturating_sub(1), expected);
                event.evidence = Evidence::Arrivals {
                    packets,
                    within_ticks,
                    expected,
                };
            }
            Blame::WayOut(_) => {
                let out = stamp.received.map_or(0, |received| received - run.end);
                event.z = ordinary.way_out.z(out as f64);
                event.evidence = Evidence::Part {
                    ticks: out,
                    ordinary_ticks: ordinary.way_out.median as i64,
                };
            }
            Blame::Generator => {
                event.evidence = Evidence::Part {
                    ticks: stamp.sent - stamp.intended,
                    ordinary_ticks: 0,
                };
            }
            Blame::NotWhole(_) | Blame::HistoryCut => {}
        }
        event
    }
}

const _: () = assert!(RUNS_KEPT >= 1024);
