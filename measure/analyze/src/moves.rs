//! Stacks that several threads of a process run on in turn (coroutines that move).
//!
//! An end that has no entry on its own thread belongs to the call that another thread of the process entered at
//! the same place of a stack, last and earlier: with it the whole stack goes over. That is exact as long as
//! records come in the order of their time where stacks are shared, which [`crate::InOrder`] sees to. Places are
//! the low halves of stack pointers: two stacks 4 GiB apart are one.
use crate::pair::{Fed, Pairer};
use crate::sink::{Gap, Home, Sink};
use crate::stacks::Frame;
use crate::{Index, OwnedBatch};
use hopscope_event::{ProcessIx, Record, ThreadIx};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Stacks are told apart by the part of memory in which their outermost call lies.
const PART_LOG2: u32 = 14;

/// Which stacks have moved, and which threads are whose.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    processes: HashMap<Option<ProcessIx>, OfProcess>,
    /// Who reads the records has found stacks on which several threads were.
    told: bool,
}

#[derive(Debug, Default)]
struct OfProcess {
    /// Those that may have calls open.
    threads: BTreeSet<ThreadIx>,
    moved: HashSet<u32>,
    /// Who entered a call there last.
    entered_by: HashMap<u32, ThreadIx>,
}

/// The threads of an analysis, each with its sink.
pub(crate) trait Host {
    fn act(&mut self, thread: ThreadIx, act: &mut dyn FnMut(&mut Pairer, &mut dyn Sink));

    /// Calls that were open on one thread are open on another from now on.
    fn rehome(&mut self, _frames: &mut [Frame], _from: ThreadIx, _to: ThreadIx) {}
}

impl Moves {
    /// Before each batch that was put in order.
    pub(crate) fn told(&mut self, batch: &OwnedBatch) {
        self.told |= batch.settled.is_some();
    }

    /// A thread that may be new has records. True where stacks of its process may move.
    pub(crate) fn thread(&mut self, index: &Index, thread: ThreadIx) -> bool {
        let process = self.processes.entry(index.process(thread)).or_default();
        process.threads.insert(thread);
        self.told || !process.moved.is_empty()
    }

    /// After records that other threads have to know of.
    pub(crate) fn settle(
        &mut self,
        host: &mut impl Host,
        index: &Index,
        thread: ThreadIx,
        record: Record,
        fed: Fed,
    ) {
        let process = self.processes.entry(index.process(thread)).or_default();
        match fed {
            Fed::Done => {}
            Fed::NoEntry => process.end(host, thread, record),
            Fed::Entered => process.entered(host, thread, record),
        }
    }

    /// Records of a thread are lost, up to the one stamped `until`: what it did with stacks that move is not known.
    pub(crate) fn gap(
        &mut self,
        host: &mut impl Host,
        index: &Index,
        thread: ThreadIx,
        gap: Gap,
        until: Option<u64>,
    ) {
        if gap.lost == 0 && gap.torn == 0 && !gap.discontinuous {
            return;
        }
        if let Some(until) = until {
            host.act(thread, &mut |pairer, _| pairer.known_from(until));
        }
        let process = self.processes.entry(index.process(thread)).or_default();
        if process.moved.is_empty() {
            return;
        }
        let moved = &process.moved;
        process.others(thread, |other| {
            let shared = |base: u32| moved.contains(&(base >> PART_LOG2));
            host.act(other, &mut |pairer, mut sink| {
                pairer.lose_shared(shared, &mut sink)
            });
        });
    }
}

impl OfProcess {
    fn others(&self, thread: ThreadIx, each: impl FnMut(ThreadIx)) {
        let others = self.threads.iter().copied().filter(|t| *t != thread);
        others.for_each(each);
    }

    fn entered(&mut self, host: &mut impl Host, thread: ThreadIx, record: Record) {
        let (rsp, tsc) = (record.rsp_lo32(), record.tsc);
        let mut run_over = |other| {
            host.act(other, &mut |pairer, mut sink| {
                pairer.run_over(rsp, tsc, &mut sink);
            });
        };
        match self.entered_by.insert(rsp >> PART_LOG2, thread) {
            Some(before) if before == thread => {}
            Some(before) => run_over(before),
            None => self.others(thread, run_over),
        }
    }

    fn end(&mut self, host: &mut impl Host, thread: ThreadIx, record: Record) {
        let (function, rsp) = (record.function(), record.rsp_lo32());
        let mut since = 0;
        if self.threads.len() > 1 {
            host.act(thread, &mut |pairer, _| since = pairer.known_since());
        }
        let mut last: Option<(u64, ThreadIx)> = None;
        let mut idle = Vec::new();
        self.others(thread, |other| {
            host.act(other, &mut |pairer, _| {
                if pairer.is_idle() {
                    return idle.push(other);
                }
                let entered = pairer.holds(function, rsp);
                let entered = entered.filter(|entry| (since..record.tsc).contains(entry));
                last = last.max(entered.map(|entry| (entry, other)));
            });
        });
        for other in idle {
            self.threads.remove(&other);
        }
        let Some((entry, from)) = last else {
            return host.act(thread, &mut |pairer, mut sink| {
                pairer.no_entry(record, &mut sink)
            });
        };
        let mut frames = Vec::new();
        host.act(from, &mut |pairer, _| {
            frames = pairer.lend(function, rsp, entry)
        });
        for frame in &mut frames {
            let mut mark = frame.mark();
            mark.home = mark.home.or(Home::of(from));
            frame.remark(mark);
        }
        host.rehome(&mut frames, from, thread);
        if let Some(base) = frames.first().map(|f| f.rsp) {
            self.moved.insert(base >> PART_LOG2);
        }
        for one in &self.threads {
            host.act(*one, &mut |pairer, _| pairer.share_stacks());
        }
        host.act(thread, &mut |pairer, mut sink| {
            pairer.share_stacks();
            pairer.take_over(std::mem::take(&mut frames), record, &mut sink);
        });
    }
}
