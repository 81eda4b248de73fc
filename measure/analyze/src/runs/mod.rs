//! Runs of all threads, in the order of their ends, in bounded memory.
mod build;
mod counts;
mod losses;
mod merge;
mod open;
mod outside;

pub use counts::RunCounts;
pub use merge::WAITING_CALLS_MAX;
pub use open::CALLS_MAX;

use crate::analysis::Thread;
use crate::batch::Batch;
use crate::join::Loss;
use crate::run::{Root, Run};
use crate::{Correction, Index, OffCpuTimes, Window};
use build::Builder;
use hopscope_event::{ProbeCost, ThreadIx};
use losses::Losses;
use merge::Merge;
use open::Building;
use std::collections::HashMap;

#[derive(Debug, Clone)]
pub struct RunOptions {
    pub root: Root,
    /// Runs that begin in it are given out.
    pub window: Window,
    pub probe_cost: Option<ProbeCost>,
}

/// Feed it batches as they lie in the file; take runs out with [`Runs::ready`] after each.
///
/// Order: by end. A run waits until no earlier one can come. The recorder visits all rings in
/// turn, so once a ring comes up again, every ring has been visited since the visit before, and
/// all that is older than the newest record of the round before that is in the file. Two things
/// can break the order, and both are counted in [`RunCounts::out_of_order`]: a run whose end
/// becomes known late (left by longjmp; a pass of a loop that then waits), and memory: no more
/// than [`WAITING_CALLS_MAX`] calls are held back.
#[derive(Debug)]
pub struct Runs {
    index: Index,
    root: Root,
    window: Window,
    correction: Option<Correction>,
    threads: HashMap<ThreadIx, OfThread>,
    losses: Losses,
    off_cpu: OffCpuTimes,
    shared: Shared,
}

#[derive(Debug, Default)]
struct OfThread {
    thread: Thread,
    building: Building,
}

#[derive(Debug, Default)]
struct Shared {
    merge: Merge,
    counts: RunCounts,
    /// Emptied runs, to be filled again.
    spare: Vec<Run>,
}

impl Runs {
    pub fn new(index: Index, options: RunOptions) -> Runs {
        Runs {
            index,
            root: options.root,
            window: options.window,
            correction: options.probe_cost.map(Correction::new),
            threads: HashMap::new(),
            losses: Losses::default(),
            off_cpu: OffCpuTimes::default(),
            shared: Shared::default(),
        }
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    /// What was found so far; complete after [`Runs::finish`].
    pub fn counts(&self) -> &RunCounts {
        &self.shared.counts
    }

    /// Where records are missing; complete after [`Runs::finish`].
    pub fn losses(&self) -> &[Loss] {
        self.losses.found()
    }

    /// When threads did not run; to be told before the records.
    pub fn off_cpu(&mut self, times: OffCpuTimes) {
        self.off_cpu = times;
    }

    /// Takes the next records of a thread.
    pub fn feed(&mut self, batch: &Batch<'_>) {
        self.shared.merge.visit(batch);
        let of = self.threads.entry(batch.thread).or_default();
        let gap = of.thread.continues(batch);
        let pairer = &mut of.thread.pairer;
        let mut builder = Builder {
            thread: batch.thread,
            choice: self.root.choice,
            window: self.window,
            correction: self.correction.as_ref(),
            index: &self.index,
            building: &mut of.building,
            off_cpu: self.off_cpu.thread(batch.thread),
            shared: &mut self.shared,
        };
        if gap.lost > 0 || gap.torn > 0 || gap.discontinuous {
            self.losses.begin(batch.thread);
            builder.before_gap();
            pairer.gap(gap, &mut builder);
            builder.after_gap();
        } else {
            pairer.gap(gap, &mut builder);
        }
        pairer.feed_batch(batch, &mut builder);
        self.losses.seen(batch);
    }

    /// No batch comes any more: what is open ends as incomplete, and all runs are ready.
    pub fn finish(&mut self) {
        let mut threads: Vec<_> = self.threads.drain().collect();
        threads.sort_by_key(|(ix, _)| *ix);
        for (ix, mut of) in threads {
            let mut builder = Builder {
                thread: ix,
                choice: self.root.choice,
                window: self.window,
                correction: self.correction.as_ref(),
                index: &self.index,
                building: &mut of.building,
                off_cpu: self.off_cpu.thread(ix),
                shared: &mut self.shared,
            };
            let oddities = of.thread.pairer.finish(&mut builder);
            builder.at_end();
            self.shared.counts.oddities += oddities;
        }
        self.shared.merge.no_more();
        self.losses.finish();
    }

    /// The next run, by end, when no earlier one can come.
    #[inline]
    pub fn ready(&mut self) -> Option<Run> {
        let Shared { merge, counts, .. } = &mut self.shared;
        merge.ready(counts)
    }

    /// Gives a run's memory back; saves an allocation for each run.
    pub fn recycle(&mut self, run: Run) {
        self.shared.recycle(run);
    }
}

impl Shared {
    fn recycle(&mut self, mut run: Run) {
        // Few and small: what is kept is not to become what fills the memory.
        if self.spare.len() < 256 && run.calls.capacity() + run.values.capacity() <= 4096 {
            run.calls.clear();
            run.values.clear();
            run.outside.clear();
            self.spare.push(run);
        }
    }
}
