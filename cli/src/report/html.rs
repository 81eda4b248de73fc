//! The report as a page: one pass over the recording for all that is bounded, a second one for the
//! calls and packets that are shown one by one.
mod joined;

use super::joined::stamps_beside;
use super::{ReportArgs, packets};
use crate::output::{self, OWNER_ONLY};
use crate::slice::Opened;
use anyhow::{Context, bail};
use hopscope_analyze::{Analysis, Batch, Calls, Group, Index, Options, Outcome, Root, Window};
use hopscope_event::{Stamp, StampFlags, StreamIx, ThreadIx, Tsc};
use hopscope_report::{Budget, Detail, LateReport, Names, Overview, Page, Recording, Scale};
use hopscope_report::{Streams, TimeUnit, Windows, write_html};
use hopscope_trace::TraceReader;
use joined::Handled;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Where a page looks closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    Time(hopscope_event::Ns),
    Packet { stream: Option<u32>, seq: u64 },
}

/// `1.5s`, `20ms`; `packet:17`, or `packet:2/17` of stream 2.
pub fn parse_around(text: &str) -> Result<Around, String> {
    let Some(packet) = text.strip_prefix("packet:") else {
        let time = hopscope_analyze::parse_span_ns(text);
        return time
            .map(Around::Time)
            .map_err(|e| format!("{e}; or packet:NUMBER"));
    };
    let wrong = || format!("{packet:?} is no packet: packet:NUMBER or packet:STREAM/NUMBER");
    let (stream, seq) = match packet.split_once('/') {
        Some((stream, seq)) => (Some(stream.parse().map_err(|_| wrong())?), seq),
        None => (None, packet),
    };
    let seq = seq.parse().map_err(|_| wrong())?;
    Ok(Around::Packet { stream, seq })
}

struct Source<'a> {
    args: &'a ReportArgs,
    reader: &'a TraceReader,
    /// Where the packets are: here, or in the file beside.
    stamps: &'a TraceReader,
    threads: &'a Option<BTreeSet<ThreadIx>>,
    window: Window,
    index: Index,
}

impl Source<'_> {
    fn has_calls(&self) -> bool {
        self.reader.heads().any(|head| head.records > 0)
    }

    fn batches(&self, mut each: impl FnMut(&Batch<'_>)) -> anyhow::Result<()> {
        for batch in crate::runs::batches(self.reader) {
            let batch = batch.with_context(|| format!("reading {}", self.args.file.display()))?;
            if self
                .threads
                .as_ref()
                .is_none_or(|t| t.contains(&batch.thread))
            {
                each(&batch.batch());
            }
        }
        Ok(())
    }

    fn stamps(&self, mut each: impl FnMut(StreamIx, &Stamp)) -> anyhow::Result<()> {
        for batch in packets::batches(self.args, self.stamps) {
            let batch = batch?;
            let inside = |s: &&Stamp| self.window.contains(s.intended.0);
            batch
                .stamps
                .iter()
                .filter(inside)
                .for_each(|s| each(batch.stream, s));
        }
        Ok(())
    }
}

pub fn write(
    args: &ReportArgs,
    to: &Path,
    opened: &Opened,
    recording: &Recording<'_>,
    threads: &Option<BTreeSet<ThreadIx>>,
    window: Window,
) -> anyhow::Result<()> {
    let reader = &opened.reader;
    let other = stamps_beside(args, recording)?;
    let stamps = other.as_ref().unwrap_or(reader);
    let packets = packets::of(args, stamps, window)?;
    let mut recording = *recording;
    recording.streams = Streams {
        entries: &stamps.tables().streams,
        packets: &packets,
    };
    let recording = &recording;
    let source = Source {
        args,
        reader,
        stamps,
        threads,
        window,
        index: Index::new(recording.functions, recording.threads),
    };
    let mut overview = Overview::new(recording.meta.start.tsc);
    let (functions, modules) = whole(&source, recording, &mut overview)?;
    let focus = args
        .around
        .map(|around| place(&source, recording, around))
        .transpose()?;
    let mut notes = Vec::new();
    let handled = joined::handled(&source, recording, &mut notes)?;
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
        number: args.number,
    });
    let file = args
        .file
        .file_name()
        .unwrap_or(args.file.as_os_str())
        .to_string_lossy();
    let kernel = super::one_timeline::section(args, opened)?;
    let kernel = kernel.as_ref().map(|kernel| kernel.show(opened));
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
    let writing = || format!("writing {}", to.display());
    let (created, place) = output::create(to, OWNER_ONLY)?;
    let mut out = BufWriter::with_capacity(1 << 16, created);
    write_html(&mut out, &mut page).with_context(writing)?;
    out.flush().with_context(writing)?;
    let bytes = out.get_ref().metadata().with_context(writing)?.len();
    place.put()?;
    crate::status::say!(
        "{} ({:.1} MB); open it in a browser",
        to.display(),
        bytes as f64 / 1e6
    );
    Ok(())
}

/// Everything that is bounded.
fn whole(
    source: &Source<'_>,
    recording: &Recording<'_>,
    overview: &mut Overview,
) -> anyhow::Result<(Outcome, Outcome)> {
    let options = |group| Options {
        group,
        window: source.window,
        probe_cost: recording.meta.probe_cost,
        whole: source.threads.is_none() && source.window == Window::default(),
    };
    let mut functions = Analysis::new(source.index.clone(), options(Group::Function));
    let mut modules = Analysis::new(source.index.clone(), options(Group::Module));
    let mut calls = Calls::new(source.index.clone());
    source.batches(|batch| {
        functions.feed(batch);
        modules.feed(batch);
        calls.feed(batch, &mut |call| {
            if source.window.contains(call.entry.0) {
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
) -> anyhow::Result<(Detail, Option<Root>)> {
    let mut detail = Detail::new(windows);
    let mut calls = Calls::new(source.index.clone());
    source.batches(|batch| {
        calls.feed(batch, &mut |call| {
            if source.window.contains(call.entry.0) {
                detail.call(&call);
            }
        });
    })?;
    let root = joined::show(source, handled, &mut detail, notes)?;
    Ok((detail, root))
}

fn place(
    source: &Source<'_>,
    recording: &Recording<'_>,
    around: Around,
) -> anyhow::Result<(Tsc, Tsc)> {
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
        [] => bail!("no packet {seq} in what is looked at; --events lists all"),
        _ => {
            let streams: Vec<_> = found.iter().map(|(s, ..)| s.0.to_string()).collect();
            bail!(
                "several streams have a packet {seq}; say packet:STREAM/{seq}, STREAM of {}",
                streams.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::Ns;

    #[test]
    fn places() {
        let packet = |stream, seq| Ok(Around::Packet { stream, seq });
        assert_eq!(parse_around("packet:17"), packet(None, 17));
        assert_eq!(parse_around("packet:2/17"), packet(Some(2), 17));
        assert_eq!(parse_around("20ms"), Ok(Around::Time(Ns(20_000_000))));
        for wrong in ["packet:", "packet:x", "packet:1/", "soon"] {
            assert!(parse_around(wrong).is_err(), "{wrong}");
        }
    }
}
