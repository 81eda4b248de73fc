//! From records to what each function did in the last interval and since the start.
use super::names::{Name, Names};
use hopscope_analyze::StackOwners;
use hopscope_analyze::{Calls, Correction, Distribution, Index, OwnedBatch, PlacedCall, Quantile};
use hopscope_event::table::ModuleEntry;
use hopscope_event::{FunctionEntry, ThreadEntry, Tsc};
use hopscope_probe::recorder::Sink;
use hopscope_probe::recorder::rows::NewRows;
use hopscope_trace::TraceError;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Bounded by the number of functions, and by what one visit of all rings brings.
#[derive(Debug)]
pub struct Live {
    calls: Calls,
    /// Records wait here until all rings were visited since: other threads may have run on the same stacks.
    owners: StackOwners,
    correction: Option<Correction>,
    now: Vec<Tally>,
    whole: Vec<Tally>,
    names: Names,
    lost: u64,
    torn: u64,
    records: u64,
    threads: u64,
}

#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    own_ticks: i128,
    inclusive: Distribution,
}

/// What one function did. Times are ticks, corrected where the probe's cost is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    pub calls: u64,
    pub own_ticks: i128,
    pub p50: Quantile,
    pub p99: Quantile,
    pub max: Quantile,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers {
            calls: 0,
            own_ticks: 0,
            p50: Quantile::Empty,
            p99: Quantile::Empty,
            max: Quantile::Empty,
        }
    }
}

/// Of one interval, and of all since the start; functions in the order of the plan.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub now: Vec<Numbers>,
    pub whole: Vec<Numbers>,
    pub span_s: f64,
    pub since_start_s: f64,
    /// In this interval.
    pub records: u64,
    pub lost: u64,
    pub lost_whole: u64,
    pub torn_whole: u64,
    pub moved_whole: u64,
    pub calls_unmeasured: u64,
    pub threads: u64,
    pub slowdown_percent: Option<f64>,
    /// Of the functions, in their order.
    pub names: Arc<Vec<Name>>,
}

impl Snapshot {
    /// Empty where none have.
    pub fn moved_text(&self) -> String {
        match self.moved_whole {
            0 => String::new(),
            moved => format!(", {moved} calls moved between threads"),
        }
    }
}

impl Live {
    pub fn new(correction: Option<Correction>) -> Live {
        Live {
            calls: Calls::new(Index::default()),
            owners: StackOwners::default(),
            correction,
            now: Vec::new(),
            whole: Vec::new(),
            names: Names::default(),
            lost: 0,
            torn: 0,
            records: 0,
            threads: 0,
        }
    }

    /// Functions whose records may come from now on.
    pub fn add(&mut self, modules: &[ModuleEntry], functions: &[FunctionEntry]) {
        self.names.add(modules, functions);
        self.calls.add(functions);
        let functions = self.names.all().len();
        self.now.resize_with(functions, Tally::default);
        self.whole.resize_with(functions, Tally::default);
    }

    /// What happened since the last one; a new interval begins. Losses are counted up by the
    /// caller's own counters.
    pub fn snapshot(&mut self) -> Snapshot {
        for (now, whole) in self.now.iter().zip(&mut self.whole) {
            whole.calls += now.calls;
            whole.own_ticks += now.own_ticks;
            whole.inclusive.add(&now.inclusive);
        }
        let snapshot = Snapshot {
            now: self.now.iter().map(Tally::numbers).collect(),
            whole: self.whole.iter().map(Tally::numbers).collect(),
            records: std::mem::take(&mut self.records),
            lost_whole: self.lost,
            torn_whole: self.torn,
            moved_whole: self.calls.calls_moved(),
            threads: self.threads,
            names: self.names.all().clone(),
            ..Snapshot::default()
        };
        let used = self.now.iter_mut().filter(|t| t.calls > 0);
        used.for_each(|t| *t = Tally::default());
        snapshot
    }

    /// All that was recorded before this stamp has come.
    pub fn visited(&mut self, until: Tsc) {
        self.owners.taken_until(until);
        self.pass_on();
    }

    fn pass_on(&mut self) {
        let (now, correction) = (&mut self.now, self.correction.as_ref());
        while let Some(batch) = self.owners.ready() {
            self.calls.feed(&batch.batch(), &mut |call| {
                if let Some(tally) = now.get_mut(call.function.0 as usize) {
                    tally.add(&call, correction);
                }
            });
        }
    }
}

impl Tally {
    fn add(&mut self, call: &PlacedCall, correction: Option<&Correction>) {
        self.calls += 1;
        // The clock ran backwards: that it was called is all that is known.
        if call.ticks < 0 {
            return;
        }
        let own = call.ticks - call.callee_ticks;
        let (own, all) = match correction {
            Some(c) => (
                c.own(own, call.fused, call.callees),
                c.inclusive(call.ticks, call.fused, call.descendants),
            ),
            None => (own, call.ticks),
        };
        self.own_ticks += i128::from(own);
        self.inclusive.record(all);
    }

    fn numbers(&self) -> Numbers {
        Numbers {
            calls: self.calls,
            own_ticks: self.own_ticks,
            p50: self.inclusive.quantile(500),
            p99: self.inclusive.quantile(990),
            max: self.inclusive.max(),
        }
    }
}

/// The recorder writes into it while the session reads from it, in one thread.
#[derive(Clone)]
pub struct Shared(pub Rc<RefCell<Live>>);

impl Sink for Shared {
    fn rows(&mut self, new: &NewRows) -> Result<(), TraceError> {
        self.0.borrow_mut().add(&new.modules, &new.functions);
        Ok(())
    }

    fn thread(&mut self, entry: &ThreadEntry) -> Result<(), TraceError> {
        let mut live = self.0.borrow_mut();
        live.threads += 1;
        live.owners.thread(entry.ix, entry.process);
        Ok(())
    }

    fn records(&mut self, batch: hopscope_trace::RecordBatch<'_>) -> Result<(), TraceError> {
        let live = &mut *self.0.borrow_mut();
        live.lost += batch.lost_before;
        live.torn += batch.torn_before;
        live.records += batch.records.len() as u64;
        let records = batch.records.to_vec();
        let batch = OwnedBatch {
            lost: batch.lost_before,
            torn: batch.torn_before,
            ..OwnedBatch::new(batch.thread, batch.first_index, records)
        };
        live.owners.take(batch, false);
        live.pass_on();
        Ok(())
    }

    fn visited(&mut self, began: Tsc) -> Result<(), TraceError> {
        self.0.borrow_mut().visited(began);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::table::ModuleIx;
    use hopscope_event::{FunctionEntry, FunctionId, Record, RecordKind, ThreadIx};

    fn live() -> Shared {
        let function = |id| FunctionEntry {
            id: FunctionId(id),
            module: ModuleIx(0),
            name: format!("f{id}"),
            svma: 0,
            size: 1,
            file: None,
            line: None,
        };
        let mut live = Live::new(None);
        live.add(&[], &[function(0)]);
        live.add(&[], &[function(1)]);
        Shared(Rc::new(RefCell::new(live)))
    }

    fn feed(live: &mut Shared, first_index: u64, lost_before: u64, records: &[Record]) {
        let batch = hopscope_trace::RecordBatch {
            thread: ThreadIx(0),
            first_index,
            lost_before,
            torn_before: 0,
            records,
        };
        live.records(batch).expect("a sink in memory takes all");
    }

    #[test]
    fn an_interval_holds_what_came_in_it_and_the_whole_all() {
        let mut live = live();
        let at =
            |tsc, f, kind, depth: u32| Record::new(tsc, FunctionId(f), kind, 0x7000 - depth * 64);
        let calls = [
            at(100, 0, RecordKind::Entry, 0),
            at(110, 1, RecordKind::Entry, 1),
            at(140, 1, RecordKind::Exit, 1),
            at(200, 0, RecordKind::Exit, 0),
        ];
        feed(&mut live, 0, 0, &calls);
        let first = live.0.borrow_mut().snapshot();
        assert_eq!((first.now[0].calls, first.now[0].own_ticks), (1, 70));
        assert_eq!((first.now[1].calls, first.now[1].own_ticks), (1, 30));
        assert_eq!(first.now[0].max, Quantile::Ticks(100));
        feed(&mut live, 4 + 7, 7, &calls);
        feed(&mut live, 15, 0, &[]);
        let second = live.0.borrow_mut().snapshot();
        assert_eq!((second.now[0].calls, second.whole[0].calls), (1, 2));
        assert_eq!((second.lost_whole, second.records), (7, 4));
        let third = live.0.borrow_mut().snapshot();
        assert_eq!((third.now[0].calls, third.whole[0].calls), (0, 2));
        assert_eq!(third.now[0].p50, Quantile::Empty);
    }
}
