//! A recording in the formats of other tools. Each writer takes rows or calls one by one and
//! writes to an `impl Write`; memory does not grow with the recording. What the recording lacks
//! (losses, gaps, calls without an end) is in every format: as rows, events or metadata.
mod calls;
mod counters;
mod csv;
mod facts;
mod folded;
mod functions;
mod hdr;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
pub mod perfetto;
mod runs;
mod slices;
mod stamps;
mod table;
mod values;

pub use calls::{CALLS, CallRows, calls_schema};
pub use csv::CsvRows;
pub use facts::{Fact, Facts};
pub use folded::{FoldedValue, write_folded};
pub use functions::{FUNCTIONS, functions_schema, write_functions};
pub use hdr::{HdrLog, HdrTables};
pub use json::JsonRows;
#[cfg(feature = "parquet")]
pub use parquet::ParquetRows;
pub use perfetto::Perfetto;
pub use runs::{RUNS, RunRows, slowest};
pub use slices::{SLICES, SLICES_OF_EVENTS, SliceRows};
pub use stamps::{PACKETS, PacketRows};
pub use table::{Column, ColumnType, OwnedColumn, Rows, Schema, Value};
pub use values::{VALUES, ValueRows};
