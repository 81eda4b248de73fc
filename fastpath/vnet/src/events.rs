//! What happens at the ends of queues, as it happens, for a file that shows it beside packets: each kick, drain
//! and call with its beginning, its end, and how many it was about.
//!
//! They are records as probes write them (`measure/event/src/record.rs`): an end of the queues is a process, a
//! queue one of its threads, and what happens there are calls of functions with one captured value. So every
//! report and every page that shows calls shows these.
use hopscope_event::{FunctionId, RecordingMeta};
use hopscope_serving::events::{EventFile, EventFileError, Events, Origin};
use std::path::Path;

mod merge;

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

    fn first_thread(self) -> u32 {
        self as u32 * End::QUEUES_MAX
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
}

impl From<What> for FunctionId {
    fn from(what: What) -> FunctionId {
        FunctionId(what as u32)
    }
}

/// Begins a `.hop` file for one end of `queues` queues; `name` says of which queue a number is.
///
/// # Errors
/// The file cannot be made or written.
pub fn create(
    path: &Path,
    meta: &RecordingMeta,
    end: End,
    queues: usize,
    name: &dyn Fn(usize) -> String,
) -> Result<(Events, EventFile), EventFileError> {
    let origin = Origin {
        process: end.process(),
        comm: match end {
            End::Back => "back end",
            End::Front => "front end",
        },
        module: "vnet",
        functions: &What::ALL.map(|what| (what.name(), what.counts())),
        first_thread: end.first_thread(),
        threads: (0..queues).map(name).collect(),
        note: "what happened at the ends of queues, told by hopscope vnet itself",
    };
    hopscope_serving::events::create(path, meta, &origin)
}
