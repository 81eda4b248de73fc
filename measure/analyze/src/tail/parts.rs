//! The latency of one packet, cut into stretches of the time line that add up to it.
use super::brief::{Brief, Place};
use super::history::History;
use crate::run::RunIx;
use hopscope_event::{Stamp, Tsc};

/// What a packet did, or waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartOf {
    /// From the intended time to leaving: the generator's own lateness.
    Generator,
    /// On its way to the network function, or waiting there while no run was under way.
    Before,
    /// While an earlier run of the thread that took it was under way.
    Queueing(RunIx),
    /// In its run, the share of the other packets of the batch.
    BatchMates,
    /// In its run, its own share.
    Own(Place),
    /// While the thread that took it was preempted, in a run or between runs.
    Preempted,
    /// In its run, while the thread waited for something.
    Waiting,
    /// From the end of its run to its arrival.
    WayOut,
}

/// Ticks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub part: PartOf,
    pub ticks: i64,
}

/// A latency in parts: `segments` add up to `latency_ticks`, always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// From the intended time to arrival.
    pub latency_ticks: i64,
    pub segments: Vec<Segment>,
    /// The history did not reach back to when it was sent: earlier runs than the first one named
    /// are in `Before`.
    pub history_cut: bool,
}

/// What cannot be split: a packet that never arrived, or that arrived before its run began (then
/// it is not its run).
pub(super) fn split(stamp: &Stamp, run: &Brief, batch: u32, history: &History) -> Option<Parts> {
    let received = stamp.received?;
    let intended = stamp.intended.min(stamp.sent);
    if received <= run.start || received < stamp.sent {
        return None;
    }
    let mut cut = Cut {
        at: intended,
        segments: Vec::with_capacity(16),
        run,
        history,
    };
    cut.to(stamp.sent, PartOf::Generator, false);
    let cut_off = cut.wait(stamp.sent);
    cut.work(received, batch);
    cut.to(received, PartOf::WayOut, false);
    Some(Parts {
        latency_ticks: received - intended,
        segments: cut.segments,
        history_cut: cut_off,
    })
}

struct Cut<'a> {
    at: Tsc,
    segments: Vec<Segment>,
    run: &'a Brief,
    history: &'a History,
}

impl Cut<'_> {
    fn add(&mut self, part: PartOf, ticks: i64) {
        if ticks == 0 {
            return;
        }
        match self.segments.iter_mut().find(|s| s.part == part) {
            Some(segment) => segment.ticks += ticks,
            None => self.segments.push(Segment { part, ticks }),
        }
    }

    /// What lies between here and `to` is `part`, but for preemption when that can be told.
    fn to(&mut self, to: Tsc, part: PartOf, thread: bool) {
        if to <= self.at {
            return;
        }
        let off = match thread {
            true => self
                .history
                .off
                .preempted_ticks(self.run.thread, self.at, to),
            false => 0,
        };
        let ticks = to - self.at;
        self.add(PartOf::Preempted, off);
        self.add(part, ticks - off);
        self.at = to;
    }

    /// Up to the begin of its run. True when what was before is no longer known.
    fn wait(&mut self, sent: Tsc) -> bool {
        let mut behind: Vec<&Brief> = Vec::new();
        let mut earliest = self.run;
        let mut cut = false;
        while earliest.start > sent {
            match self.history.before(earliest) {
                Some(before) if before.end > sent => {
                    behind.push(before);
                    earliest = before;
                }
                Some(_) => break,
                None => {
                    cut = earliest.ix.0 > 0 && !behind.is_empty();
                    break;
                }
            }
        }
        for run in behind.iter().rev() {
            self.to(run.start.min(self.run.start), PartOf::Before, true);
            self.to(run.end.min(self.run.start), PartOf::Queueing(run.ix), true);
        }
        self.to(self.run.start, PartOf::Before, true);
        cut
    }

    /// Its run, as far as it was still there.
    fn work(&mut self, received: Tsc, batch: u32) {
        let mut own: Vec<(Place, i64)> = Vec::with_capacity(16);
        for span in &self.run.spans {
            let to = span.end.min(received);
            if to <= self.at {
                continue;
            }
            let (mut waiting, mut preempted) = (0, 0);
            for off in self.history.off.within(self.run.thread, self.at, to) {
                match off.preempted {
                    true => preempted += off.back - off.out,
                    false => waiting += off.back - off.out,
                }
            }
            let ticks = to - self.at - waiting - preempted;
            match own.iter_mut().find(|(place, _)| *place == span.place) {
                Some((_, sum)) => *sum += ticks,
                None => own.push((span.place, ticks)),
            }
            self.add(PartOf::Preempted, preempted);
            self.add(PartOf::Waiting, waiting);
            self.at = to;
        }
        for (place, ticks) in own {
            let its = ticks / i64::from(batch.max(1));
            self.add(PartOf::Own(place), its);
            self.add(PartOf::BatchMates, ticks - its);
        }
    }
}

impl PartOf {
    /// Name for programs; one for all runs and functions of a kind.
    pub fn name(self) -> &'static str {
        match self {
            PartOf::Generator => "generator",
            PartOf::Before => "before_nf",
            PartOf::Queueing(_) => "queueing",
            PartOf::BatchMates => "batch_mates",
            PartOf::Own(_) => "own_work",
            PartOf::Preempted => "preempted",
            PartOf::Waiting => "waiting",
            PartOf::WayOut => "way_out",
        }
    }
}
