//! What a recording says, for people (text) and for programs (JSON, one object a line). Each
//! writer takes a [`Recording`] and an [`hopscope_analyze::AnalysisResult`] and writes to an `impl Write`.
#![forbid(unsafe_code)]

mod choices;
mod counters;
mod diff;
mod events;
pub mod export;
mod header;
mod html;
mod joined;
mod json;
mod json_line;
mod losses;
mod order;
mod packets;
mod printable_text;
mod recording;
mod runs;
pub mod slice;
mod table;
mod tail;
mod tail_text;
mod timeline;
mod tree;
mod units;
mod values;

pub use choices::write_choices;
pub use counters::write as write_counters;
pub use diff::{DiffHead, DiffRow, sort_diff, write_diff, write_diff_json};
pub use events::{Event, EventWriter};
pub use header::{write_machine, write_notes};
pub use html::{Budget, Detail, Overview, PacketSection, Page, Windows, write_html};
pub use html::{SlicePage, write_slice_html};
pub use joined::{Between, PacketReport, write_flows, write_flows_json};
pub use joined::{write_packets, write_packets_json};
pub use json::{write_header_json, write_json};
pub use order::Sort;
pub use packets::PacketWriter;
pub use printable_text::{printable, utc};
pub use recording::{Names, Recording, Streams};
pub use runs::{RunReport, write_runs, write_runs_json};
pub use tail::{LateReport, write_tail, write_tail_json};
pub use timeline::Timeline;
pub use tree::PathLimits;
pub use units::{Scale, TimeUnit};

use hopscope_analyze::{AnalysisResult, Group};
use std::io::{self, Write};

/// What the report is laid out by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Rows(Group),
    Tree,
}

/// Choices that concern the layout only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub layout: Layout,
    pub sort: Sort,
    pub time: TimeUnit,
    /// Of rows, for people: also as measured, and ranges.
    pub in_detail: bool,
    /// Of a tree.
    pub paths: PathLimits,
}

/// Where the numbers come from, for people: begins every report.
pub fn write_header(
    out: &mut impl Write,
    recording: &Recording<'_>,
    time: TimeUnit,
) -> io::Result<()> {
    header::write(
        out,
        recording,
        &Scale::new(time, recording.meta.tsc_frequency),
    )
}

/// The report for people.
pub fn write_text(
    out: &mut impl Write,
    recording: &Recording<'_>,
    outcome: &AnalysisResult,
    view: View,
) -> io::Result<()> {
    let names = Names::new(recording);
    let scale = Scale::new(view.time, recording.meta.tsc_frequency);
    header::write(out, recording, &scale)?;
    packets::write(out, recording, &scale)?;
    if recording.is_of_packets_only() {
        return Ok(());
    }
    match view.layout {
        Layout::Rows(group) => {
            let shown = table::Shown {
                group,
                sort: view.sort,
                off_cpu: recording.has_off_cpu(),
                in_detail: view.in_detail,
                counters: recording.counters,
            };
            table::write(out, &names, outcome, &scale, shown)?;
        }
        Layout::Tree => tree::write(out, &names, outcome, &scale, view.sort, view.paths)?,
    }
    losses::write(out, recording, &names, outcome)
}
