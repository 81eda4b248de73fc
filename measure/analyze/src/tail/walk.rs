//! From a packet back to what delayed it.
//!
//! A packet that waited behind a run is charged with what made that run end late: its own excess
//! first, up to what the packet waited; then, as far as that run had itself begun late (its oldest
//! packet waited too), with what made *it* begin late, and so on. What is left over is the ordinary
//! work of the runs ahead. So an excess never counts for more than the delay it still caused.
use super::baseline::Ordinary;
use super::blame::{Blame, excess};
use super::brief::{Brief, Place};
use super::cause::Link;
use super::history::History;
use hopscope_event::{Stamp, Tsc};

/// Runs that one packet is followed through.
const STEPS_MAX: usize = 4096;
/// Links that are kept of a chain.
const LINKS_KEPT: usize = 16;

pub(super) struct Walk<'a> {
    pub(super) history: &'a History,
    pub(super) ordinary: &'a Ordinary,
    pub(super) blamed: Vec<(Blame, i64)>,
    pub(super) links: Vec<Link>,
    /// Links that were not kept.
    pub(super) more_links: u32,
    /// When the first packet of the chain was sent.
    pub(super) earliest: Tsc,
}

/// All that exceeds the ordinary in a packet's latency.
pub(super) fn walk<'a>(
    stamp: &Stamp,
    run: &Brief,
    history: &'a History,
    ordinary: &'a Ordinary,
) -> Walk<'a> {
    let mut walk = Walk {
        history,
        ordinary,
        blamed: Vec::with_capacity(8),
        links: Vec::new(),
        more_links: 0,
        earliest: stamp.sent,
    };
    let late = stamp.sent - stamp.intended;
    walk.blame(Blame::Generator, late);
    walk.wait(run, stamp.sent, true);
    walk.own_run(run);
    if let Some(received) = stamp.received {
        let out = received - run.end;
        walk.blame(Blame::WayOut(run.ix), out - ordinary.way_out.median as i64);
    }
    walk
}

impl Walk<'_> {
    fn blame(&mut self, blame: Blame, ticks: i64) {
        if ticks <= 0 {
            return;
        }
        match self.blamed.iter_mut().find(|(b, _)| *b == blame) {
            Some((_, sum)) => *sum += ticks,
            None => self.blamed.push((blame, ticks)),
        }
    }

    fn link(&mut self, link: Link) {
        match self.links.len() < LINKS_KEPT {
            true => self.links.push(link),
            false => self.more_links += 1,
        }
    }

    /// What delayed the begin of `run` for a packet sent at `from`.
    fn wait(&mut self, run: &Brief, from: Tsc, told: bool) {
        let (mut at, mut from) = (run, from);
        let mut need = run.start - from;
        for _ in 0..STEPS_MAX {
            if need <= 0 {
                return;
            }
            self.earliest = self.earliest.min(from);
            let before = self.history.before(at);
            let idle_from = before.map_or(from, |b| b.end.max(from)).min(at.start);
            need -= self.idle(at, idle_from, need);
            let Some(before) = before else {
                if at.previous_end.is_some_and(|end| end > from) {
                    self.blame(Blame::HistoryCut, need);
                }
                return;
            };
            let waited = (before.end - before.start.max(from)).min(need);
            if before.end <= from || waited <= 0 {
                return;
            }
            if told {
                self.link(Link::WaitedBehind {
                    run: before.ix,
                    packets: self.ordinary.batch_of(before),
                    ticks: waited,
                });
            }
            for (blame, ticks) in excess(before, self.history, self.ordinary) {
                let takes = ticks.min(need);
                self.blame(blame, takes);
                need -= takes;
            }
            let its_first = before.first_sent.unwrap_or(before.start).min(before.start);
            let carried = need.min(before.start - its_first);
            self.blame(Blame::Ordinary(before.ix), need - carried);
            (at, from, need) = (before, its_first, carried);
        }
        self.blame(Blame::HistoryCut, need);
    }

    /// The time before a run in which nothing was under way; what of it counts as delay is blamed.
    fn idle(&mut self, run: &Brief, from: Tsc, need: i64) -> i64 {
        let idle = (run.start - from).max(0);
        let off = self
            .history
            .off
            .preempted_ticks(run.thread, from, run.start);
        self.blame(Blame::PreemptedBefore(run.ix), off.min(need));
        let left = need - off.min(need);
        let held = self.held(run, from).min(left);
        self.blame(Blame::Held(run.ix), held);
        let over = idle - off - held - self.ordinary.pickup.median as i64;
        let over = over.clamp(0, left - held);
        let slept = self.history.off.slept_ticks(run.thread, from, run.start);
        let late = over.min((slept - held).max(0));
        self.blame(Blame::WokenLate(run.ix), late);
        let mut rest = over - late;
        for (function, ticks) in run.outside_since(from) {
            let (ordinary, _) = self.ordinary.outside(function);
            let its = (ticks - ordinary.median as i64).clamp(0, rest);
            self.blame(Blame::Outside(run.ix, Place::Function(function)), its);
            rest -= its;
        }
        self.blame(Blame::Gathered(run.ix), rest);
        idle.min(need)
    }

    /// How long after `from` its thread slept with packets of this run there, beyond what it
    /// ordinarily takes to notice them.
    fn held(&self, run: &Brief, from: Tsc) -> i64 {
        let first = run.first_sent.unwrap_or(from).min(from);
        let waiting = run.previous_end.map_or(first, |end| end.max(first));
        let soon = self.ordinary.pickup.median as i64;
        let off = &self.history.off;
        let slept = off.slept_again(run.thread, waiting, soon, from, run.start);
        (slept - soon).max(0)
    }

    /// The packet's own run: its excess, and that its batch was larger than others.
    fn own_run(&mut self, run: &Brief) {
        for (blame, ticks) in excess(run, self.history, self.ordinary) {
            self.blame(blame, ticks);
        }
        let (batch, typical) = (self.ordinary.batch_of(run), self.ordinary.batch.median);
        let typical = typical.floor().max(1.0) as u32;
        if batch <= typical {
            return;
        }
        let expected = |batch| self.ordinary.expected_run(run, batch) as i64;
        let mates = expected(batch) - expected(typical);
        if mates <= 0 {
            return;
        }
        self.link(Link::InBatch {
            run: run.ix,
            packets: batch,
        });
        let reason = self.why_so_large(run, batch);
        self.blame(reason, mates);
    }

    /// A batch is large because its run began late, or because packets came thick.
    fn why_so_large(&self, run: &Brief, batch: u32) -> Blame {
        let first = run.first_sent.unwrap_or(run.start).min(run.start);
        let late = (run.start - first) as f64;
        if late * self.ordinary.packets_per_tick < f64::from(batch) / 2.0 {
            return Blame::Ordinary(run.ix);
        }
        let mut oldest = Walk {
            blamed: Vec::with_capacity(8),
            links: Vec::new(),
            ..*self
        };
        oldest.wait(run, first, false);
        let most = oldest.blamed.iter().max_by_key(|(_, ticks)| *ticks);
        most.map_or(Blame::Ordinary(run.ix), |(blame, _)| *blame)
    }
}
