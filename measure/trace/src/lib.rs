//! The `.hop` trace file: checksummed chunks, readable up to the last whole one after any crash.
#![forbid(unsafe_code)]

mod ahead;
mod batch;
mod chunks;
pub mod codec;
mod error;
pub mod format;
pub mod host;
mod read;
pub mod slices;
mod source;
pub mod stamps;
pub mod switches;
mod tables;
mod varint;
mod write;

pub use ahead::Ahead;
pub use batch::{BatchHead, OwnedBatch};
pub use error::TraceError;
pub use read::{TraceReader, fuzz_reader};
pub use slices::SlicesHead;
pub use stamps::{OwnedStamps, StampsHead};
pub use switches::{OwnedSwitches, SwitchesHead};
pub use tables::{Damage, Tables};
pub use write::{RecordBatch, Stamps, Switches, TraceWriter};
