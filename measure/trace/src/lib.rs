//! The `.hop` trace file: checksummed chunks, readable up to the last whole one after any crash.
#![deny(unsafe_code)]

pub mod codec;
mod error;
pub mod format;
#[allow(unsafe_code)]
mod map;
mod read;
mod write;

pub use error::TraceError;
pub use read::{Damage, OwnedBatch, Tables, TraceReader, fuzz_reader};
pub use write::{Batch, TraceWriter};
