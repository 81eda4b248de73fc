//! The report as a page: one pass over the recording for all that is bounded, a second one for the
//! calls and packets that are shown one by one.
mod handled;

use crate::error::{Result, refuse};
use crate::one_timeline::packets::section;
use crate::options::{Around, ReportOptions};
use crate::selection::Selection;
use crate::stamps;
use handled::Handled;
use hopscope_analyze::{Analysis, AnalysisResult, Calls, Group, Root};
use hopscope_event::{Stamp, StampFlags, StreamIx, Tsc};
use hopscope_report::{Budget, Detail, LateReport, Names, Overview, Page, Recording, Scale};
use hopscope_report::{Streams, TimeUnit, Windows, write_html};
use hopscope_trace::TraceReader;
use std::io::Write;

struct Source<'a> {
    options: &'a ReportOptions,
    selection: &'a Selection,
    /// Where the packets are: here, or in the file beside.
    stamps: &'a TraceReader,
}

impl Source<'_> {
    fn stamps(&self, mut each: impl FnMut(StreamIx, &Stamp)) -> Result<()> {
        stamps::each(self.selection, self.stamps, |stream, stamp| {
            each(stream, stamp);
            Ok(())
        })
    }
}

/// # Errors
/// What cannot be read or written.
pub fn write(
    out: &mut impl Write,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
) -> Result<()> {
    let other = stamps::of_options(options, recording.meta)?;
    let stamps = other.as_ref().unwrap_or(selection.reader());
    let packets = stamps::statistics(selection, stamps)?;
    let mut recording = *recording;
    recording.streams = Streams {
        entries: &stamps.tables().streams,
        packets: &packets,
    };
    let recording = &recording;
    let source = Source {
        options,
        selection,
        stamps,
    };
    let mut overview = Overview::new(recording.meta.start.tsc);
    let (functions, modules) = whole(&source, &mut overview)?;
    let focus = options
        .around
        .map(|around| place(&source, recording, around))
        .transpose()?;
    let mut notes = Vec::new();
    let handled = handled::handled(&source, recording, &mut notes)?;
    let examples = handled.as_ref().map_or(Vec::new(), |h| h.places());
    let windows = match focus {
        Some(at) => Windows::around(&overview, at, Budget::AROUND),
        None => Windows::choose(&overview, &examples, Budget::WHOLE),
    };
    let (mut detail, root) = closely(&source, handled.as_ref(), windows, &mut notes)?;
    let names = Names::new(recording);
    let late = handled.as_ref().map(|h| LateReport {
        names: &names,
        scale: Scale::new(TimeUnit::Ns, recording.meta.tsc_frequency),
        root: &h.root,
        between: None,
        tail: &h.late.report,
        joined: &h.joined.counts,
        asked: &h.asked,
        off_cpu: &h.late.off_cpu,
        number: options.number,
    });
    let file = options
        .file
        .file_name()
        .unwrap_or(options.file.as_os_str())
        .to_string_lossy();
    let kernel = section(options, selection)?;
    let kernel = kernel.as_ref().map(|kernel| kernel.show(selection));
    let mut page = Page {
        file: &file,
        recording,
        functions: &functions,
        modules: &modules,
        overview: &overview,
        detail: &mut detail,
        root: root.as_ref(),
        late: late.as_ref(),
        kernel: kernel.as_ref(),
        notes: &notes,
        focus,
    };
    Ok(write_html(out, &mut page)?)
}

/// Everything that is bounded.
fn whole(source: &Source<'_>, overview: &mut Overview) -> Result<(AnalysisResult, AnalysisResult)> {
    let selection = source.selection;
    let analysis = |group| Analysis::new(selection.index(), selection.options(group));
    let (mut functions, mut modules) = (analysis(Group::Function), analysis(Group::Module));
    let mut calls = Calls::new(selection.index());
    selection.each_batch(|batch| {
        functions.feed(batch);
        modules.feed(batch);
        calls.feed(batch, &mut |call| {
            if selection.window.contains(call.entry.0) {
                overview.call(&call);
            }
        });
    })?;
    source.stamps(|stream, stamp| overview.packet(stream, stamp))?;
    Ok((functions.finish(), modules.finish()))
}

fn closely(
    source: &Source<'_>,
    handled: Option<&Handled>,
    windows: Windows,
    notes: &mut Vec<String>,
) -> Result<(Detail, Option<Root>)> {
    let mut detail = Detail::new(windows);
    let selection = source.selection;
    let mut calls = Calls::new(selection.index());
    selection.each_batch(|batch| {
        calls.feed(batch, &mut |call| {
            if selection.window.contains(call.entry.0) {
                detail.call(&call);
            }
        });
    })?;
    let root = handled::show(source, handled, &mut detail, notes)?;
    Ok((detail, root))
}

fn place(source: &Source<'_>, recording: &Recording<'_>, around: Around) -> Result<(Tsc, Tsc)> {
    let (wanted, seq) = match around {
        Around::Time(ns) => {
            let at = recording.meta.start.tsc + recording.meta.tsc_frequency.ticks(ns);
            return Ok((at, at));
        }
        Around::Packet { stream, seq } => (stream, seq),
    };
    let mut found = Vec::new();
    source.stamps(|stream, stamp| {
        let again = stamp.flags.contains(StampFlags::DUPLICATE);
        if stamp.seq == seq && !again && wanted.is_none_or(|ix| ix == stream.0) {
            let begin = stamp.intended.min(stamp.sent);
            found.push((stream, begin, stamp.received.unwrap_or(stamp.sent)));
        }
    })?;
    match found[..] {
        [(_, begin, end)] => Ok((begin, end)),
        [] => refuse!("no packet {seq} in the selected part; --events lists all"),
        _ => {
            let streams: Vec<_> = found.iter().map(|(s, ..)| s.0.to_string()).collect();
            refuse!(
                "several streams have a packet {seq}; use packet:STREAM/{seq}, STREAM of {}",
                streams.join(", ")
            )
        }
    }
}
