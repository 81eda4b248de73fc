//! A recording in the formats of other tools.
mod handled;
mod hdr;
mod pcapng;
mod slices;
mod source;
mod write;

use hopscope_event::Ns;
use std::path::PathBuf;

pub use write::write;

#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The recording, for messages.
    pub file: PathBuf,
    pub format: Format,
    /// What a row is, of formats that have rows; `None`: what the recording has.
    pub what: Option<What>,
    /// Another recording, with the generated packets.
    pub packets: Option<PathBuf>,
    /// What begins a run; `None`: to be suggested.
    pub root: Option<String>,
    /// Captured values that are packets' numbers; `None`: those whose name says so.
    pub packet_id: Option<String>,
    /// Of percentile tables: this one alone.
    pub tag: Option<String>,
    /// Folded stacks have numbers of calls instead of nanoseconds.
    pub count: bool,
    /// Of an interval log; `None`: one second.
    pub interval: Option<Ns>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Folded,
    Csv,
    Json,
    Parquet,
    Perfetto,
    Pcapng,
    /// HdrHistogram's interval log.
    Hdr,
    /// HdrHistogram's percentile tables.
    Hgrm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Calls,
    Functions,
    Packets,
    Runs,
    Values,
    Slices,
}
