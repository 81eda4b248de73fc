//! What a report can be told, apart from the part of the recording that it is about.
use hopscope_analyze::tail::Threshold;
use hopscope_event::Ns;
use hopscope_report::{Sort, TimeUnit};
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct ReportOptions {
    /// The recording, for messages.
    pub file: PathBuf,
    /// What begins a run: `FUNCTION`, `loop`, `loop:FUNCTION`; `None`: to be suggested.
    pub root: Option<String>,
    /// Another recording, with the generated packets.
    pub packets: Option<PathBuf>,
    /// Captured values that are packets' numbers; `None`: those whose name says so.
    pub packet_id: Option<String>,
    /// `FUNCTION,FUNCTION`: a packet without stamps is between these.
    pub between: Option<String>,
    /// Which packets are late, and how the user wrote it.
    pub tail: Option<(Threshold, String)>,
    /// Rows of the lists.
    pub number: Option<usize>,
    pub sort: Option<Sort>,
    pub time: TimeUnit,
    pub json: bool,
    /// Packets are shown by flow.
    pub by_flow: bool,
    /// Where a page looks closely.
    pub around: Option<Around>,
}

/// A moment of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// After the start.
    Time(Ns),
    /// A generated packet; `stream` may be left out where only one has such a number.
    Packet { stream: Option<u32>, seq: u64 },
}
