//! The contract between everything that writes a measurement and everything that reads one:
//! records, the ring layout shared with the measured process, clock conversion and the tables
//! that give records a meaning. Layouts are asserted at compile time.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod callee;
pub mod clock;
pub mod cost;
pub mod counter;
mod flags;
pub mod kept;
pub mod layout;
pub mod off_cpu;
pub mod record;
pub mod ring;
pub mod slice;
pub mod stamp;
mod sums;
pub mod table;
pub mod text;
pub mod value;

pub use clock::{ClockSync, Ns, RawSync, Tsc, TscFrequency};
pub use cost::{CostCheckEntry, FusedCost, InPlaceCost, MemoryBoundCost, ProbeCost};
pub use counter::{Count, CounterCost, CounterEntry, CounterEvent, CounterReading};
pub use kept::{
    BeginsLate, BudgetEntry, EndsEarly, FlightEntry, LeftOutEntry, ThinEntry, TriggerEntry,
};
pub use off_cpu::{OffCpu, OffCpuEntry};
pub use record::{FunctionId, Record, RecordKind};
pub use stamp::{Stamp, StampCounts, StampFlags, StreamEntry, StreamIx};
pub use table::{
    CaptureEntry, CaptureMethod, CapturePlace, FunctionEntry, ModuleEntry, ProcessEntry, ProcessIx,
    RecordingMeta, Refusal, Summary, ThreadEntry, ThreadIx,
};
pub use text::Printable;
pub use value::{Content, Value};
