//! Bounded aggregates over all threads of a recording.
use crate::balance::{Balance, Fate, Oddities, Orphan};
use crate::batch::Batch;
use crate::continuity::Continuity;
use crate::counts::{CallCounts, CounterKind};
use crate::mark::Mark;
use crate::pair::Pairer;
use crate::sink::{Call, Enter, Gap, Sink};
use crate::stats::{Inclusive, Stats};
use crate::tree::Tree;
use crate::{Correction, Index, Window};
use crate::{OffCpuIndex, OffCpuShare, OffCpuTimes};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionId, ProbeCost, ProcessIx, ThreadIx, Tsc};
use std::collections::{BTreeMap, HashMap};

/// Rows apart for each thread or process; what is beyond has one row for each function, of all threads.
/// A row's distributions take tens of kilobytes.
pub const ROWS_MAX: usize = 1 << 15;

/// What one row of statistics is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    #[default]
    Function,
    Module,
    /// Functions, apart for each thread.
    Thread,
    /// Functions, apart for each process.
    Process,
}

/// Parts that a group does not tell apart are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub process: Option<ProcessIx>,
    pub thread: Option<ThreadIx>,
    pub module: Option<ModuleIx>,
    pub function: Option<FunctionId>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct AnalysisOptions {
    pub group: Group,
    pub window: Window,
    pub probe_cost: Option<ProbeCost>,
    /// All threads, all of the time: what was measured of all calls together applies.
    pub whole: bool,
}

#[derive(Debug)]
pub struct Row {
    pub key: Key,
    pub stats: Stats,
}

#[derive(Debug)]
pub struct AnalysisResult {
    pub rows: Vec<Row>,
    pub tree: Tree,
    /// Calls in the window.
    pub balance: Balance,
    /// Of the selected threads as a whole, whatever the window.
    pub oddities: Oddities,
    pub threads: BTreeMap<ThreadIx, Oddities>,
    pub correction: Option<Correction>,
    /// Records of one thread that were overwritten between two visits of the recorder, at most.
    pub lost_at_once_max: u64,
}

/// Feed it each thread's records in ring order, threads in any interleaving.
#[derive(Debug)]
pub struct Analysis {
    threads: HashMap<ThreadIx, Thread>,
    lost_at_once_max: u64,
    aggregate: Aggregate,
}

#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) pairer: Pairer,
    continuity: Continuity,
}

impl Thread {
    /// What lies between the last batch and this one.
    pub(crate) fn continues(&mut self, batch: &Batch<'_>) -> Gap {
        self.continuity.continues(batch)
    }
}

#[derive(Debug)]
struct Aggregate {
    options: AnalysisOptions,
    correction: Option<Correction>,
    index: Index,
    tree: Tree,
    rows: Vec<Row>,
    row_of: HashMap<Key, u32>,
    rows_max: usize,
    /// Row of each function (dense) for the threads that share rows with the current one; `u32::MAX` is
    /// not looked up yet. One for all threads: functions times threads would be too much.
    current: Vec<u32>,
    /// Where `current` was written.
    looked_up: Vec<FunctionId>,
    current_of: (Option<ProcessIx>, Option<ThreadIx>),
    off_cpu: OffCpuTimes,
    thread: Option<ThreadIx>,
    /// Through this span `thread` ran without a break.
    ran: (u64, u64),
    balance: Balance,
}

impl Analysis {
    pub fn new(index: Index, options: AnalysisOptions) -> Analysis {
        Analysis {
            threads: HashMap::new(),
            lost_at_once_max: 0,
            aggregate: Aggregate {
                options,
                correction: options.probe_cost.map(Correction::new),
                current: vec![u32::MAX; index.functions()],
                index,
                tree: Tree::dropping(),
                rows: Vec::new(),
                row_of: HashMap::new(),
                rows_max: ROWS_MAX,
                looked_up: Vec::new(),
                current_of: (None, None),
                off_cpu: OffCpuTimes::default(),
                thread: None,
                ran: (0, 0),
                balance: Balance::default(),
            },
        }
    }

    /// When threads did not run; to be told before the records.
    pub fn off_cpu(&mut self, times: OffCpuTimes) {
        self.aggregate.off_cpu = times;
    }

    /// Takes the next records of a thread.
    pub fn feed(&mut self, batch: &Batch<'_>) {
        let thread = self.threads.entry(batch.thread).or_default();
        self.aggregate.turn_to(batch.thread);
        self.lost_at_once_max = self.lost_at_once_max.max(batch.lost);
        let gap = thread.continues(batch);
        thread.pairer.gap(gap, &mut self.aggregate);
        thread.pairer.feed_batch(batch, &mut self.aggregate);
    }

    pub fn finish(mut self) -> AnalysisResult {
        let mut threads = BTreeMap::new();
        for (ix, thread) in self.threads {
            self.aggregate.turn_to(ix);
            threads.insert(ix, thread.pairer.finish(&mut self.aggregate));
        }
        let mut oddities = Oddities::default();
        threads.values().for_each(|o| oddities += *o);
        let mut aggregate = self.aggregate;
        // Each record that is missing may have been a call.
        let calls = aggregate.balance.entries + oddities.lost + oddities.torn + oddities.missing;
        let whole = aggregate.options.whole;
        aggregate.rows.iter_mut().for_each(|r| r.stats.settle());
        aggregate.tree.settle();
        AnalysisResult {
            rows: aggregate.rows,
            tree: aggregate.tree,
            balance: aggregate.balance,
            oddities,
            threads,
            correction: aggregate
                .correction
                .map(|c| if whole { c.of_all(calls) } else { c }),
            lost_at_once_max: self.lost_at_once_max,
        }
    }
}

impl Aggregate {
    fn turn_to(&mut self, thread: ThreadIx) {
        if self.thread != Some(thread) {
            (self.thread, self.ran) = (Some(thread), (0, 0));
            if self
                .off_cpu
                .thread(thread)
                .is_none_or(OffCpuIndex::is_empty)
            {
                self.ran = (0, u64::MAX);
            }
        }
        let of = match self.options.group {
            Group::Function | Group::Module => return,
            Group::Process => (self.index.process(thread), None),
            Group::Thread => (self.index.process(thread), Some(thread)),
        };
        if of == self.current_of {
            return;
        }
        for function in self.looked_up.drain(..) {
            self.current[function.0 as usize] = u32::MAX;
        }
        self.current_of = of;
    }

    #[inline]
    fn row(&mut self, function: FunctionId) -> &mut Row {
        let mut at = self.current[function.0 as usize];
        if at == u32::MAX {
            at = self.look_up_row(function);
        }
        &mut self.rows[at as usize]
    }

    #[cold]
    fn look_up_row(&mut self, function: FunctionId) -> u32 {
        let module = self.index.module(function);
        let by_module = self.options.group == Group::Module;
        let mut key = Key {
            process: self.current_of.0,
            thread: self.current_of.1,
            module,
            function: (!by_module).then_some(function),
        };
        if self.rows.len() >= self.rows_max && !self.row_of.contains_key(&key) {
            (key.process, key.thread) = (None, None);
        }
        let rows = &mut self.rows;
        let at = *self.row_of.entry(key).or_insert_with(|| {
            let stats = Stats::default();
            rows.push(Row { key, stats });
            rows.len() as u32 - 1
        });
        self.current[function.0 as usize] = at;
        self.looked_up.push(function);
        at
    }

    /// `None`: the thread ran all the time.
    #[inline]
    fn off_cpu_of(&mut self, call: &Call) -> Option<OffCpuShare> {
        let end = call.entry.wrapping_add(call.inclusive as u64);
        match self.ran.0 <= call.entry && end <= self.ran.1 {
            true => None,
            false => self.look_up(call.entry, end),
        }
    }

    #[cold]
    fn look_up(&mut self, start: u64, end: u64) -> Option<OffCpuShare> {
        let index = self.off_cpu.thread(self.thread?)?;
        self.ran = index.ran_around(end);
        Some(index.within(Tsc(start), Tsc(end)))
    }

    fn is_outermost(&self, mark: Mark) -> bool {
        match self.options.group {
            Group::Module => !mark.within_module,
            _ => !mark.recursive,
        }
    }

    fn in_window(&self, tsc: u64) -> bool {
        self.options.window.contains(tsc)
    }

    fn count(&mut self, function: FunctionId, change: impl Fn(&mut Balance)) {
        change(&mut self.balance);
        change(&mut self.row(function).stats.balance);
    }
}

impl Sink for Aggregate {
    fn enter(&mut self, enter: Enter<'_>) -> Mark {
        let counted = self.in_window(enter.tsc);
        if counted {
            self.count(enter.function, |b| b.entries += 1);
        }
        self.tree.enter(&enter, &self.index, counted)
    }

    fn call(&mut self, call: &Call) {
        self.tree.left(call.mark);
        if !self.in_window(call.entry) {
            return;
        }
        self.count(call.function, |b| match call.tail {
            true => b.tail_exits += 1,
            false => b.exits += 1,
        });
        if call.inclusive < 0 {
            return;
        }
        self.tree.call(call);
        let outermost = self.is_outermost(call.mark);
        let inclusive = match self.options.group {
            Group::Module => Inclusive::Outermost,
            _ => Inclusive::EveryCall,
        };
        let correction = self.correction;
        let off_cpu = self.off_cpu_of(call);
        let stats = &mut self.row(call.function).stats;
        if let Some(off_cpu) = off_cpu
            && outermost
        {
            stats.off_cpu.add(off_cpu);
        }
        stats.add(call, outermost, inclusive, correction.as_ref());
    }

    fn counts(&mut self, call: &Call, counts: &CallCounts) {
        if self.in_window(call.entry) {
            let outermost = self.is_outermost(call.mark);
            self.row(call.function).stats.counted(counts, outermost);
        }
    }

    fn counter(&self, number: u8) -> Option<CounterKind> {
        self.index.counter(number)
    }

    fn fate(&mut self, function: FunctionId, mark: Mark, entry: u64, fate: Fate) {
        self.tree.left(mark);
        if self.in_window(entry) {
            self.count(function, |b| b.add_fate(fate));
        }
    }

    fn orphan(&mut self, function: FunctionId, tsc: u64, orphan: Orphan) {
        if self.in_window(tsc) {
            self.count(function, |b| b.add_orphan(orphan));
        }
    }

    fn known(&self, function: FunctionId) -> bool {
        self.index.module(function).is_some()
    }
}

#[cfg(test)]
mod tests;
