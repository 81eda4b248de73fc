//! What happens in a server, as it happens, for a file that shows it beside packets: each event with its beginning, its
//! end, and how many it was about.
//!
//! They are records as probes write them (`measure/event/src/record.rs`): a server is a process, each of its logs one of its
//! threads, and events are calls of functions with one captured value. So every report and every page that shows calls
//! shows these.
use hopscope_event::clock::read::read_tsc;
use hopscope_event::value::number;
use hopscope_event::{CapturePlace, Content, FunctionId, Record, RecordKind, ThreadIx, Value};
use std::sync::mpsc::SyncSender;

mod file;

pub use file::{EventFile, EventFileError, EventWriter, Origin, Written, create};

/// Records of one log on their way to the file.
struct EventBuffer {
    thread: ThreadIx,
    first_index: u64,
    lost_before: u64,
    records: Vec<Record>,
}

const BATCH: usize = 4096;

/// Makes the logs of one server.
#[derive(Clone)]
pub struct Events {
    first_thread: u32,
    full: SyncSender<EventBuffer>,
}

impl Events {
    #[must_use]
    pub fn log(&self, n: usize) -> EventLog {
        EventLog(Some(Log {
            thread: ThreadIx(self.first_thread + n as u32),
            full: self.full.clone(),
            records: Vec::with_capacity(BATCH),
            depth: 0,
            handed_over: 0,
            lost: 0,
        }))
    }
}

/// What happens at one place, in order, if anybody keeps it. Nothing here waits: what the disk does not keep up with
/// is counted as lost.
#[derive(Default)]
pub struct EventLog(Option<Log>);

impl EventLog {
    /// Whether somebody keeps them.
    #[must_use]
    pub fn are_kept(&self) -> bool {
        self.0.is_some()
    }

    pub fn begin(&mut self, what: impl Into<FunctionId>) {
        if let Some(log) = &mut self.0 {
            log.begin(what.into());
        }
    }

    /// With how many. Of none, and with nothing that happened meanwhile, it is as if it had not begun.
    pub fn end(&mut self, what: impl Into<FunctionId>, n: u64) {
        let what = what.into();
        match &mut self.0 {
            Some(log) if n == 0 && log.has_just_begun(what) => log.never_mind(),
            Some(log) => log.end(what, n),
            None => {}
        }
    }

    /// With how many, also of none.
    pub fn end_of_any(&mut self, what: impl Into<FunctionId>, n: u64) {
        if let Some(log) = &mut self.0 {
            log.end(what.into(), n);
        }
    }
}

struct Log {
    thread: ThreadIx,
    full: SyncSender<EventBuffer>,
    records: Vec<Record>,
    /// What has begun and not ended.
    depth: u32,
    handed_over: u64,
    lost: u64,
}

impl Log {
    fn begin(&mut self, what: FunctionId) {
        self.record(what, RecordKind::Entry);
        self.depth += 1;
    }

    fn end(&mut self, what: FunctionId, n: u64) {
        let value = Value {
            capture: number(CapturePlace::Return, 0),
            element: 0,
            content: Content::Value(n),
        };
        self.records.push(value.record(what));
        self.depth = self.depth.saturating_sub(1);
        self.record(what, RecordKind::Exit);
        // Between two of what happens, never within.
        if self.depth == 0 && self.records.len() >= BATCH - 8 {
            self.hand_over(false);
        }
    }

    fn never_mind(&mut self) {
        self.records.pop();
        self.depth = self.depth.saturating_sub(1);
    }

    fn has_just_begun(&self, what: FunctionId) -> bool {
        let begun =
            |record: &Record| record.function() == what && record.kind() == Some(RecordKind::Entry);
        self.records.last().is_some_and(begun)
    }

    fn record(&mut self, what: FunctionId, kind: RecordKind) {
        // As a stack would have it: deeper is lower.
        let stack = 0x7fff_0000 - self.depth * 64;
        let record = Record::new(read_tsc().0, what, kind, stack);
        self.records.push(record);
    }

    fn hand_over(&mut self, wait: bool) {
        let records = std::mem::replace(&mut self.records, Vec::with_capacity(BATCH));
        let count = records.len() as u64;
        let batch = EventBuffer {
            thread: self.thread,
            first_index: self.handed_over,
            lost_before: self.lost,
            records,
        };
        self.handed_over += count;
        let taken = if wait {
            self.full.send(batch).is_ok()
        } else {
            self.full.try_send(batch).is_ok()
        };
        self.lost = if taken { 0 } else { self.lost + count };
    }
}

impl Drop for Log {
    /// At the end there is time to wait.
    fn drop(&mut self) {
        if !self.records.is_empty() || self.lost > 0 {
            self.hand_over(true);
        }
    }
}

#[cfg(test)]
mod tests;
