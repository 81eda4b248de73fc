//! The report as one page for a browser: offline, in one file, with nothing in it from elsewhere.
//!
//! Tables and charts are there without a script; the timeline and the flame graph are drawn by the
//! page's own. The content security policy of the page allows exactly that script and that style.
mod assets;
mod charts;
mod column;
mod detail;
mod flame;
mod head;
mod one_timeline;
mod overview;
mod sha256;
mod slices;
mod svg;
mod tables;
mod tails;
mod text;
mod waterfall;
mod windows;

pub use detail::Detail;
pub use one_timeline::PacketSection;
pub use overview::Overview;
pub use slices::{SlicePage, write_slice_html};
pub use windows::{Budget, Windows};

use crate::counters;
use crate::losses;
use crate::recording::{Names, Recording};
use crate::tail::LateReport;
use crate::units::{Scale, TimeUnit};
use hopscope_analyze::{AnalysisResult, Root};
use hopscope_event::{CounterEntry, Tsc};
use std::io::{self, Write};
use text::Text;

/// Everything that a page shows.
pub struct Page<'a> {
    /// Name of the recording's file.
    pub file: &'a str,
    pub recording: &'a Recording<'a>,
    pub functions: &'a AnalysisResult,
    pub modules: &'a AnalysisResult,
    pub overview: &'a Overview,
    pub detail: &'a mut Detail,
    /// What makes a run; `None` when runs were not looked for, or nothing can be one.
    pub root: Option<&'a Root>,
    /// Why packets were late; `None` when that was not looked for.
    pub late: Option<&'a LateReport<'a>>,
    /// The kernel's path of packets, where it was recorded too.
    pub kernel: Option<&'a PacketSection<'a>>,
    /// Why there are no runs, or what is ambiguous about them, in words.
    pub notes: &'a [String],
    /// What the page opens at, when something was asked for.
    pub focus: Option<(Tsc, Tsc)>,
}

/// # Errors
/// Those of `out`.
pub fn write_html(out: &mut impl Write, page: &mut Page<'_>) -> io::Result<()> {
    let recording = page.recording;
    let names = Names::new(recording);
    let scale = Scale::new(TimeUnit::Ns, recording.meta.tsc_frequency);
    let script = assets::script();
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        sha256::base64_of(&script),
        sha256::base64_of(assets::STYLE)
    );
    write!(
        out,
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"{policy}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=color-scheme content=\"light dark\">\n<title>hopscope: {}</title>\n\
         <style>{}</style></head>\n<body>\n",
        Text(page.file),
        assets::STYLE
    )?;
    head::write(out, page, &names, &scale)?;
    timeline(out, page)?;
    if let Some(late) = page.late {
        tails::write(out, late)?;
    }
    if !recording.streams.packets.is_empty() {
        packets(out, page, &scale)?;
    }
    if let Some(kernel) = page.kernel {
        one_timeline::write(out, &names, kernel)?;
    }
    if !recording.is_of_packets_only() {
        functions(out, page, &names, &scale)?;
    }
    let data = head::data(page, &names);
    writeln!(
        out,
        "<script type=application/json id=data>{}</script>\n<script type=module>{script}</script>\n\
         </body></html>",
        text::json(&data)
    )
}

/// Filled by the script.
fn timeline(out: &mut impl Write, page: &Page<'_>) -> io::Result<()> {
    if page.overview.calls + page.overview.packets == 0 {
        return writeln!(out, "<p>No call and no packet is recorded.");
    }
    writeln!(
        out,
        "<section id=timeline><h2>Timeline</h2>\
         <noscript><p>The timeline and the flame graph need JavaScript; all tables do not.</noscript>\
         <div id=tools></div><canvas id=map tabindex=0 aria-label=\"the whole recording\"></canvas>\
         <div id=stage><canvas id=lanes tabindex=0 \
         aria-label=\"calls and packets over time\"></canvas><div id=tip hidden></div></div>\
         <div id=facts aria-live=polite></div>\
         <div id=legend></div></section>"
    )
}

fn packets(out: &mut impl Write, page: &Page<'_>, scale: &Scale) -> io::Result<()> {
    let frequency = page.recording.meta.tsc_frequency;
    writeln!(out, "<section id=packets><h2>Packets</h2>")?;
    tables::streams(out, page.recording, scale)?;
    writeln!(out, "<div class=charts>")?;
    for packets in page.recording.streams.packets {
        let title = format!(
            "latency of stream {}: packets by their time",
            packets.stream.0
        );
        writeln!(
            out,
            "{}",
            charts::histogram(&title, &packets.latency, frequency)
        )?;
    }
    writeln!(
        out,
        "{}{}</div></section>",
        charts::latency(page.overview, frequency),
        charts::rate(page.overview, frequency)
    )
}

fn functions(
    out: &mut impl Write,
    page: &Page<'_>,
    names: &Names<'_>,
    scale: &Scale,
) -> io::Result<()> {
    let corrected = match page.functions.correction {
        Some(_) => "corrected for the probes' own cost",
        None => "as measured: the probes' cost is not known",
    };
    writeln!(
        out,
        "<section><h2>Modules</h2><p>Times are {corrected}. Total: calls into the module from \
         outside; self: its own code.</p>"
    )?;
    let counters = page.recording.counters;
    counted(out, counters)?;
    tables::rows(
        out,
        names,
        page.modules,
        scale,
        counters,
        tables::Rows::Modules,
    )?;
    writeln!(
        out,
        "</section><section><h2>Functions</h2><p>Times are {corrected}. Percentiles are of the \
         total time of each call.</p>"
    )?;
    counted(out, counters)?;
    tables::rows(
        out,
        names,
        page.functions,
        scale,
        counters,
        tables::Rows::Functions,
    )?;
    tables::histograms(out, page.recording, names, page.functions)?;
    if page.recording.streams.packets.is_empty() {
        let chart = charts::rate(page.overview, page.recording.meta.tsc_frequency);
        writeln!(out, "<div class=charts>{chart}</div>")?;
    }
    writeln!(
        out,
        "</section><section id=flame><h2>Flame graph</h2><p>Width is total time, as measured; \
         callees lie below their caller. Click to look closer, Escape to come back.</p>\
         <div id=flames></div></section>"
    )?;
    let mut said = Vec::new();
    losses::write(&mut said, page.recording, names, page.functions)?;
    let said = String::from_utf8_lossy(&said);
    writeln!(
        out,
        "<section><h2>What the numbers do not contain</h2><pre>{}</pre></section>",
        TextLines(said.trim())
    )
}

/// What the columns of counters hold.
fn counted(out: &mut impl Write, counters: &[CounterEntry]) -> io::Result<()> {
    match counters {
        [] => Ok(()),
        _ => writeln!(out, "<p>Counts: {}.", counters::PER_CALL),
    }
}

/// Text whose line breaks are its own.
struct TextLines<'a>(&'a str);

impl std::fmt::Display for TextLines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .lines()
            .try_for_each(|line| writeln!(f, "{}", Text(line)))
    }
}
