//! What happens at the ends of queues, as it happens, for a file that shows it beside packets: each kick, drain
//! and call with its beginning, its end, and how many it was about.
//!
//! They are records as probes write them (`measure/event/src/record.rs`): an end of the queues is a process, a
//! queue one of its threads, and what happens there are calls of functions with one captured value. So every
//! report and every page that shows calls shows these.
use hopscope_event::value::number;
use hopscope_event::{CapturePlace, Content, FunctionId, Kind, Record, ThreadIx, Value};
use hopscope_netio::clock::tsc_now;
use std::sync::mpsc::SyncSender;

mod file;
mod merge;

pub use file::{EventFile, EventFileError, EventWriter, Written, create};
pub use merge::{MergeError, merge};

/// Which end of the queues: its number as a process, and the first of its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The device's.
    Back,
    /// The driver's.
    Front,
}

impl End {
    /// More queues than a device has here: both ends of all of them have numbers of their own.
    const QUEUES_MAX: u32 = 1 << 16;

    pub fn process(self) -> u32 {
        self as u32
    }

    fn thread(self, queue: usize) -> ThreadIx {
        ThreadIx(self as u32 * End::QUEUES_MAX + queue as u32)
    }
}

/// What happens at an end. The number that goes with it is in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum What {
    /// The front end writes to the kick eventfd (1).
    Kick,
    /// The back end reads it (kicks since it last did).
    Kicked,
    /// The back end handles what is there (chains given back).
    Drain,
    /// The back end writes to the call eventfd (1).
    Call,
    /// The front end reads it (calls since it last did).
    Called,
    /// The front end takes back what was used (entries).
    Reclaim,
}

impl What {
    pub const ALL: [What; 6] = [
        What::Kick,
        What::Kicked,
        What::Drain,
        What::Call,
        What::Called,
        What::Reclaim,
    ];

    pub fn name(self) -> &'static str {
        match self {
            What::Kick => "kick",
            What::Kicked => "kicked",
            What::Drain => "drain",
            What::Call => "call",
            What::Called => "called",
            What::Reclaim => "reclaim",
        }
    }

    /// Of the number.
    pub fn counts(self) -> &'static str {
        match self {
            What::Kick | What::Kicked => "kicks",
            What::Drain => "chains",
            What::Call | What::Called => "calls",
            What::Reclaim => "entries",
        }
    }

    fn function(self) -> FunctionId {
        FunctionId(self as u32)
    }
}

/// Records of one queue on their way to the file.
struct EventBuffer {
    thread: ThreadIx,
    first_index: u64,
    lost_before: u64,
    records: Vec<Record>,
}

const BATCH: usize = 4096;

/// Makes a log for each queue of one end.
#[derive(Clone)]
pub struct Events {
    end: End,
    full: SyncSender<EventBuffer>,
}

impl Events {
    pub fn queue(&self, queue: usize) -> QueueEvents {
        QueueEvents(Some(Log {
            thread: self.end.thread(queue),
            full: self.full.clone(),
            records: Vec::with_capacity(BATCH),
            depth: 0,
            handed_over: 0,
            lost: 0,
        }))
    }
}

/// What happens at one queue, in order, if anybody keeps it. Nothing here waits: what the disk does not keep up with
/// is counted as lost.
#[derive(Default)]
pub struct QueueEvents(Option<Log>);

impl QueueEvents {
    /// Whether somebody keeps them.
    pub fn are_kept(&self) -> bool {
        self.0.is_some()
    }

    pub fn begin(&mut self, what: What) {
        if let Some(log) = &mut self.0 {
            log.begin(what);
        }
    }

    /// With how many. Of none, and with nothing that happened meanwhile, it is as if it had not begun.
    pub fn end(&mut self, what: What, n: u64) {
        match &mut self.0 {
            Some(log) if n == 0 && log.has_just_begun(what) => log.never_mind(),
            Some(log) => log.end(what, n),
            None => {}
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
    fn begin(&mut self, what: What) {
        self.record(what, Kind::Entry);
        self.depth += 1;
    }

    fn end(&mut self, what: What, n: u64) {
        let value = Value {
            capture: number(CapturePlace::Return, 0),
            element: 0,
            content: Content::Value(n),
        };
        self.records.push(value.record(what.function()));
        self.depth = self.depth.saturating_sub(1);
        self.record(what, Kind::Exit);
        // Between two of what happens, never within.
        if self.depth == 0 && self.records.len() >= BATCH - 8 {
            self.hand_over(false);
        }
    }

    fn never_mind(&mut self) {
        self.records.pop();
        self.depth = self.depth.saturating_sub(1);
    }

    fn has_just_begun(&self, what: What) -> bool {
        let begun = |record: &Record| {
            record.function() == what.function() && record.kind() == Some(Kind::Entry)
        };
        self.records.last().is_some_and(begun)
    }

    fn record(&mut self, what: What, kind: Kind) {
        // As a stack would have it: deeper is lower.
        let stack = 0x7fff_0000 - self.depth * 64;
        let record = Record::new(tsc_now().0, what.function(), kind, stack);
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
