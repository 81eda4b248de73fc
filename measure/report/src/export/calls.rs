//! A row for each call, for each end without a begin and for each gap.
use super::counters;
use super::table::columns;
use super::{Facts, Rows, Schema, Value};
use crate::recording::Names;
use crate::timeline::Timeline;
use hopscope_analyze::CallCounts;
use hopscope_analyze::balance::{Fate, Orphan};
use hopscope_analyze::pair::Gap;
use hopscope_analyze::trail::{Begun, End, Observer};
use hopscope_event::{CounterEntry, FunctionId, ThreadIx, Tsc};
use std::io;

/// Rows come by end, thread by thread as recorded; `call` numbers them by begin.
pub static CALLS: Schema = Schema {
    name: "calls",
    columns: columns! {
        "row" Text "call; end: an end whose begin is not recorded; gap: records are missing; note",
        "call" U64 "number of the call, by begin",
        "parent_call" U64 "number of the innermost open call of the same stack",
        "depth" U64 "open calls around it on its stack",
        "stack" U64 "which of the stacks on which the thread had open calls",
        "thread" U64 "row of the thread in the recording",
        "pid" I64 "process id",
        "tid" I64 "thread id; 0 if the thread exited before it could be read",
        "module" Text "path of the file that the function is in",
        "function" Text "demangled name",
        "function_id" U64 "row of the function in the recording",
        "caller" Text "function of parent_call",
        "fate" Text "exit, tail_exit, or why the end is not known: open_at_end, declared_lost, cut_by_loss, unwound, moved; of an end: open_at_start, cut_by_loss, moved",
        "callers_unknown" U64 "1: records before the call were lost, so callers may be missing",
        "entry_realtime_ns" Instant "begin (of an end or gap: its own time), CLOCK_REALTIME",
        "start_ns" I64 "the same since the start of the recording",
        "total_raw_ns" F64 "from entry to exit, as measured",
        "own_raw_ns" F64 "total_raw_ns without the measured calls made by it",
        "total_corrected_ns" F64 "total_raw_ns with the median probe cost taken out; absent where it is not known",
        "own_corrected_ns" F64 "own_raw_ns with the median probe cost taken out; absent where it is not known",
        "entry_tsc" U64 "entry stamp, in ticks of the time-stamp counter",
        "total_raw_tsc" I64 "total_raw_ns in ticks",
        "own_raw_tsc" I64 "own_raw_ns in ticks",
        "callees" U64 "measured calls made by it",
        "descendants" U64 "measured calls made by it and by those in turn",
        "tail_of" U64 "number of the call that left by a jump to this one",
        "lost_records" U64 "of a gap: overwritten before they were read",
        "torn_records" U64 "of a gap: reserved and never stored, before or among those that follow",
        "missing_records" U64 "of a gap: in a damaged part of the file",
        "note" Text "what else must be known",
    },
    more: Vec::new(),
};

/// With columns for these counters.
pub fn calls_schema(of: &[CounterEntry]) -> Schema {
    counters::with_calls(&CALLS, of)
}

const COLUMNS: usize = 30;
const _: () = assert!(CALLS.columns.len() == COLUMNS);

pub(crate) fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::OpenAtEnd => "open_at_end",
        Fate::Escaped => "declared_lost",
        Fate::Cut => "cut_by_loss",
        Fate::Unwound => "unwound",
        Fate::Moved => "moved",
    }
}

pub(crate) fn orphan_name(orphan: Orphan) -> &'static str {
    match orphan {
        Orphan::OpenAtStart => "open_at_start",
        Orphan::Cut => "cut_by_loss",
        Orphan::Moved => "moved",
    }
}

/// An observer of calls that makes rows of them.
pub struct CallRows<'a, R> {
    names: &'a Names<'a>,
    timeline: &'a Timeline,
    rows: R,
    counters: &'a [CounterEntry],
    /// Of the call that ends next.
    counts: Option<CallCounts>,
    failed: Option<io::Error>,
}

impl<'a, R: Rows> CallRows<'a, R> {
    pub fn new(names: &'a Names<'a>, timeline: &'a Timeline, rows: R) -> CallRows<'a, R> {
        CallRows {
            names,
            timeline,
            rows,
            counters: &[],
            counts: None,
            failed: None,
        }
    }

    /// Rows are those of [`super::calls_schema`].
    #[must_use]
    pub fn with_counters(mut self, counters: &'a [CounterEntry]) -> CallRows<'a, R> {
        self.counters = counters;
        self
    }

    /// # Errors
    /// The first error of the output; after it nothing is written.
    pub fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, facts: &Facts) -> io::Result<()> {
        self.check()?;
        self.rows.finish(facts)
    }

    fn ns(&self, ticks: i64) -> f64 {
        self.timeline.tenths_ns(ticks)
    }

    fn write(&mut self, values: &[Value<'_>; COLUMNS]) {
        let counts = self.counts.take().unwrap_or_default();
        if self.failed.is_some() {
            return;
        }
        if self.counters.is_empty() {
            self.failed = self.rows.row(values).err();
            return;
        }
        let (before, note) = values.split_at(COLUMNS - 1);
        let mut values = before.to_vec();
        for counter in self.counters {
            let count = counts.get(usize::from(counter.number));
            counters::of_call(&mut values, counter, count.and_then(Option::as_ref));
        }
        values.extend(note);
        self.failed = self.rows.row(&values).err();
    }

    /// What every row has, from `pid` on to `function_id`, and the instant.
    fn place(
        &self,
        values: &mut [Value<'a>; COLUMNS],
        thread: ThreadIx,
        function: Option<FunctionId>,
        at: Option<Tsc>,
    ) {
        values[5] = thread.0.into();
        let entry = self.names.thread_entry(thread);
        let process = entry.and_then(|t| self.names.process_entry(t.process));
        values[6] = process.map(|p| p.pid).into();
        values[7] = entry.map(|t| t.tid).into();
        if let Some(function) = function {
            values[8] = self.names.raw_module_of(function).into();
            values[9] = self.names.raw_function(function).into();
            values[10] = function.0.into();
        }
        if let Some(at) = at {
            values[14] = self.timeline.realtime_ns(at).into();
            values[15] = self.timeline.since_start_ns(at).into();
            values[20] = at.0.into();
        }
    }
}

impl<R: Rows> Observer for CallRows<'_, R> {
    fn counts(&mut self, _: &Begun, counts: &CallCounts) {
        self.counts = Some(*counts);
    }

    fn ended(&mut self, call: &Begun, end: &End) {
        let mut values = [Value::None; COLUMNS];
        values[0] = "call".into();
        values[1] = call.call.into();
        values[2] = call.parent.into();
        values[3] = call.depth.into();
        values[4] = call.stack.into();
        self.place(
            &mut values,
            call.thread,
            Some(call.function),
            Some(call.entry),
        );
        values[11] = call.caller.and_then(|f| self.names.raw_function(f)).into();
        values[13] = u64::from(call.after_gap).into();
        values[25] = call.tail_of.into();
        match end {
            End::Unknown(fate) => values[12] = fate_name(*fate).into(),
            End::Exit(times) => {
                values[12] = if times.tail { "tail_exit" } else { "exit" }.into();
                values[16] = self.ns(times.total).into();
                values[17] = self.ns(times.own).into();
                values[18] = times.total_corrected.map(|t| self.ns(t)).into();
                values[19] = times.own_corrected.map(|t| self.ns(t)).into();
                values[21] = times.total.into();
                values[22] = times.own.into();
                values[23] = times.callees.into();
                values[24] = times.descendants.into();
            }
        }
        self.write(&values);
    }

    fn orphan(&mut self, thread: ThreadIx, function: FunctionId, at: Tsc, orphan: Orphan) {
        let mut values = [Value::None; COLUMNS];
        values[0] = "end".into();
        self.place(&mut values, thread, Some(function), Some(at));
        values[12] = orphan_name(orphan).into();
        self.write(&values);
    }

    fn gap(&mut self, thread: ThreadIx, after: Option<Tsc>, before: Option<Tsc>, gap: Gap) {
        let mut values = [Value::None; COLUMNS];
        values[0] = "gap".into();
        self.place(&mut values, thread, None, after.or(before));
        if let (Some(after), Some(before)) = (after, before) {
            values[16] = self.ns(before - after).into();
            values[21] = (before - after).into();
        }
        values[26] = gap.lost.into();
        values[27] = gap.torn.into();
        values[28] = gap.missing.into();
        self.write(&values);
    }
}
