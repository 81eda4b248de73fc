//! A row for each captured value, and for each that is absent.
use super::table::columns;
use super::{Facts, Rows, Schema, Value};
use crate::recording::Names;
use crate::timeline::Timeline;
use hopscope_analyze::trail::{Begun, End, Observer};
use hopscope_event::{Content, Value as Captured};
use std::io;

/// In the order in which each thread captured them.
pub static VALUES: Schema = Schema {
    name: "values",
    columns: columns! {
        "row" Text "value; note",
        "call" U64 "number of the call that it belongs to, as in the table of calls",
        "thread" U64 "row of the thread in the recording",
        "tid" I64 "thread id",
        "module" Text "path of the file that the function is in",
        "function" Text "demangled name",
        "function_id" U64 "row of the function in the recording",
        "capture" Text "as the user wrote it, an array without its bounds",
        "element" U64 "index in a captured array; 0 otherwise",
        "value" Integer "as captured, -2^63 to 2^64 - 1; absent where it was not read",
        "value_bits" U64 "its 64 bits as an unsigned number; a signed value is extended by its sign",
        "absent" Text "why there is no value: unreadable, left_out, unknown",
        "left_out_elements" U64 "of left_out: elements of the array that are not recorded, from this one on",
        "entry_realtime_ns" Instant "begin of its call, CLOCK_REALTIME",
        "start_ns" I64 "the same since the start of the recording",
        "entry_tsc" U64 "the same in ticks of the time-stamp counter",
        "note" Text "what else must be known",
    },
    more: Vec::new(),
};

const COLUMNS: usize = 17;
const _: () = assert!(VALUES.columns.len() == COLUMNS);

/// An observer of calls that makes rows of what they captured.
pub struct ValueRows<'a, R> {
    names: &'a Names<'a>,
    timeline: &'a Timeline,
    rows: R,
    failed: Option<io::Error>,
}

impl<'a, R: Rows> ValueRows<'a, R> {
    pub fn new(names: &'a Names<'a>, timeline: &'a Timeline, rows: R) -> ValueRows<'a, R> {
        ValueRows {
            names,
            timeline,
            rows,
            failed: None,
        }
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
}

impl<R: Rows> Observer for ValueRows<'_, R> {
    fn ended(&mut self, _: &Begun, _: &End) {}

    fn value(&mut self, call: &Begun, captured: &Captured) {
        let capture = self.names.capture(call.function, captured.capture);
        let thread = self.names.thread_entry(call.thread);
        let mut values = [Value::None; COLUMNS];
        values[0] = "value".into();
        values[1] = call.call.into();
        values[2] = call.thread.0.into();
        values[3] = thread.map(|t| t.tid).into();
        values[4] = self.names.raw_module_of(call.function).into();
        values[5] = self.names.raw_function(call.function).into();
        values[6] = call.function.0.into();
        values[7] = capture.map(|c| c.name.as_str()).into();
        values[8] = u64::from(captured.element).into();
        match captured.content {
            Content::Value(bits) => {
                values[9] = if capture.is_some_and(|c| c.signed) {
                    Value::I64(bits as i64)
                } else {
                    Value::U64(bits)
                };
                values[10] = bits.into();
            }
            Content::Unreadable => values[11] = "unreadable".into(),
            Content::LeftOut { elements } => {
                values[11] = "left_out".into();
                values[12] = elements.into();
            }
            Content::NotCounting => values[11] = "not_counting".into(),
            Content::NotOpened => values[11] = "not_opened".into(),
            Content::Unknown(_) => values[11] = "unknown".into(),
        }
        values[13] = self.timeline.realtime_ns(call.entry).into();
        values[14] = self.timeline.since_start_ns(call.entry).into();
        values[15] = call.entry.0.into();
        if self.failed.is_none() {
            self.failed = self.rows.row(&values).err();
        }
    }
}
