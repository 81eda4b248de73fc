//! A row for each run: one pass of the data path over a batch.
use super::table::columns;
use super::{Facts, Rows, Schema, Value};
use crate::recording::Names;
use crate::timeline::Timeline;
use hopscope_analyze::Run;
use hopscope_event::FunctionId;
use std::io;

/// By their ends.
pub static RUNS: Schema = Schema {
    name: "runs",
    columns: columns! {
        "row" Text "run; note",
        "run" U64 "number of the run, by end",
        "thread" U64 "row of the thread in the recording",
        "pid" I64 "process id",
        "tid" I64 "thread id",
        "root" Text "function that the run begins with",
        "start_realtime_ns" Instant "begin, CLOCK_REALTIME",
        "start_ns" I64 "the same since the start of the recording",
        "length_ns" F64 "from begin to end, as measured",
        "off_cpu_ns" F64 "part in which the thread did not run; 0 where switches were not recorded",
        "complete" U64 "0: not known whole: records lost in it, no exit seen, or too many calls",
        "calls" U64 "measured calls in it",
        "packets" U64 "generated packets that it handled, also such that were lost then; absent where packets were not matched",
        "slowest_function" Text "function that most of its time went to",
        "slowest_function_own_ns" F64 "its own time in the run, without the probes' cost where that is known",
        "start_tsc" U64 "begin, in ticks of the time-stamp counter",
        "length_tsc" I64 "length_ns in ticks",
        "note" Text "what else must be known",
    },
    more: Vec::new(),
};

const COLUMNS: usize = 18;
const _: () = assert!(RUNS.columns.len() == COLUMNS);

/// The functions of a run by their own time in it, largest first, at most `most` of them.
pub fn slowest(run: &Run, most: usize) -> Vec<(FunctionId, i64)> {
    let mut own: Vec<(FunctionId, i64)> = Vec::new();
    for call in &run.calls {
        match own.iter_mut().find(|(f, _)| *f == call.function) {
            Some((_, ticks)) => *ticks += call.own_corrected,
            None => own.push((call.function, call.own_corrected)),
        }
    }
    own.sort_by_key(|(f, ticks)| (std::cmp::Reverse(*ticks), *f));
    own.truncate(most);
    own
}

pub struct RunRows<'a, R> {
    names: &'a Names<'a>,
    timeline: &'a Timeline,
    rows: R,
}

impl<'a, R: Rows> RunRows<'a, R> {
    pub fn new(names: &'a Names<'a>, timeline: &'a Timeline, rows: R) -> RunRows<'a, R> {
        RunRows {
            names,
            timeline,
            rows,
        }
    }

    /// `packets`: how many it handled, where that was looked for.
    ///
    /// # Errors
    /// Those of the output.
    pub fn run(&mut self, run: &Run, packets: Option<u64>) -> io::Result<()> {
        let ns = |ticks| self.timeline.tenths_ns(ticks);
        let thread = self.names.thread_entry(run.thread);
        let process = thread.and_then(|t| self.names.process_entry(t.process));
        let mut values = [Value::None; COLUMNS];
        values[0] = "run".into();
        values[1] = run.ix.0.into();
        values[2] = run.thread.0.into();
        values[3] = process.map(|p| p.pid).into();
        values[4] = thread.map(|t| t.tid).into();
        values[5] = self.names.raw_function(run.root).into();
        values[6] = self.timeline.realtime_ns(run.start).into();
        values[7] = self.timeline.since_start_ns(run.start).into();
        values[8] = ns(run.ticks()).into();
        values[9] = ns(run.off_cpu_ticks as i64).into();
        values[10] = u64::from(run.complete).into();
        values[11] = (run.calls.len() as u64 + run.calls_left_out).into();
        values[12] = packets.into();
        if let Some((function, ticks)) = slowest(run, 1).first() {
            values[13] = self.names.raw_function(*function).into();
            values[14] = ns(*ticks).into();
        }
        values[15] = run.start.0.into();
        values[16] = run.ticks().into();
        self.rows.row(&values)
    }

    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, facts: &Facts) -> io::Result<()> {
        self.rows.finish(facts)
    }
}
