//! Recordings of the kernel's path: alone, or beside calls.
use super::{By, ReportArgs};
use crate::output::{self, OWNER_ONLY};
use crate::slice::{Choice, Opened, Pass, To};
use anyhow::Context;
use hopscope_analyze::slice::{PacketSlices, RealTime, SliceStats, Slicer};
use hopscope_event::slice::{SliceEntry, Sliced};
use hopscope_report::slice::{
    SliceClosing, SliceOrigin, SlicePrinter, SliceSource, SliceView, write_slice_json,
    write_slice_origin,
};
use hopscope_report::{SlicePage, write_slice_html};
use hopscope_trace::TraceReader;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Nothing else was recorded.
pub(super) fn only(reader: &TraceReader) -> bool {
    let tables = reader.tables();
    tables.slice.is_some() && tables.functions.is_empty() && tables.streams.is_empty()
}

/// What part of the recording is looked at.
pub(super) struct Part<'a> {
    opened: &'a Opened,
    entry: &'a SliceEntry,
    pub(super) time: RealTime,
    from_ns: u64,
    to_ns: u64,
}

impl<'a> Part<'a> {
    pub(super) fn of(args: &ReportArgs, opened: &'a Opened, entry: &'a SliceEntry) -> Part<'a> {
        let tables = opened.reader.tables();
        let start = tables.meta.start.monotonic_ns;
        Part {
            opened,
            entry,
            time: RealTime::new(tables.meta.start, &tables.clocks),
            from_ns: args.from.map_or(0, |ns| start.saturating_add(ns.0)),
            to_ns: args.to.map_or(u64::MAX, |ns| start.saturating_add(ns.0)),
        }
    }

    pub(super) fn source(&self) -> SliceSource<'_> {
        SliceSource {
            entry: self.entry,
            time: &self.time,
        }
    }

    pub(super) fn each(
        &self,
        mut visit: impl FnMut(&Sliced) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for batch in self.opened.reader.slices() {
            for packet in &batch? {
                if (self.from_ns..self.to_ns).contains(&packet.record.t0_ns) {
                    visit(packet)?;
                }
            }
        }
        Ok(())
    }

    fn statistics(&self, out: &mut impl Write, json: bool) -> anyhow::Result<()> {
        let source = self.source();
        let to = if json { To::Json } else { To::Nowhere };
        let mut pass = Pass::new(self.entry, Choice::default(), to);
        pass.quiet();
        self.each(|packet| pass.packet(out, &source, packet))?;
        let damage = self.opened.damage();
        let summary = self.opened.reader.tables().slice_summary.as_ref();
        Ok(pass.close(out, source, Some(damage.as_deref()), summary)?)
    }
}

pub(super) fn run(args: &ReportArgs, opened: &Opened) -> anyhow::Result<ExitCode> {
    let tables = opened.reader.tables();
    let Some(entry) = &tables.slice else {
        return Ok(ExitCode::SUCCESS);
    };
    for (asked, what) in [
        (args.tail.is_some(), "--tail"),
        (args.between.is_some(), "--between"),
        (args.root.is_some(), "--root"),
        (args.packets.is_some(), "--packets"),
        (args.packet_id.is_some(), "--packet-id"),
        (args.sort.is_some(), "--sort"),
        (args.depth.is_some(), "--depth"),
        (args.min_share > 0, "--min-share"),
        (!args.thread.is_empty(), "--thread"),
        (
            !matches!(args.by, By::Function | By::Packet),
            "--by of calls",
        ),
    ] {
        anyhow::ensure!(
            !asked,
            "{what} asks for calls of functions, and {} holds slices of the kernel's path only",
            args.file.display()
        );
    }
    anyhow::ensure!(
        args.number.is_none() || matches!(args.by, By::Packet) || args.html.is_some(),
        "-n goes with --by packet and --html where slices only were recorded"
    );
    let part = Part::of(args, opened, entry);
    if let Some(to) = &args.html {
        html(&part, args, to)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    if !args.json {
        let origin = SliceOrigin {
            meta: &tables.meta,
            entry,
            summary: tables.summary.as_ref(),
        };
        write_slice_origin(&mut out, &origin)?;
    }
    match (args.events, args.by) {
        (true, _) => events(&part, &mut out, args.json)?,
        (false, By::Packet) => write_slowest(&part, &mut out, args)?,
        (false, _) => part.statistics(&mut out, args.json)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// After the statistics of calls.
pub(super) fn write_beside(
    out: &mut impl Write,
    args: &ReportArgs,
    opened: &Opened,
) -> anyhow::Result<()> {
    let plain = args.tail.is_none() && !args.events && matches!(args.by, By::Function);
    let Some(entry) = opened.reader.tables().slice.as_ref().filter(|_| plain) else {
        return Ok(());
    };
    if !args.json {
        writeln!(out, "\nthe kernel's path of packets")?;
    }
    Part::of(args, opened, entry).statistics(out, args.json)
}

fn events(part: &Part<'_>, out: &mut impl Write, json: bool) -> anyhow::Result<()> {
    let to = match json {
        true => To::Json,
        false => To::Text(SlicePrinter::new(SliceView::default())),
    };
    let source = part.source();
    let mut pass = Pass::new(part.entry, Choice::default(), to);
    part.each(|packet| pass.packet(out, &source, packet))
}

/// The slowest packets, slowest first.
pub(super) fn slowest(
    part: &Part<'_>,
    slicer: &mut Slicer,
    keep: usize,
) -> anyhow::Result<Vec<(Sliced, PacketSlices)>> {
    let mut kept = Slowest::new(keep);
    part.each(|packet| {
        let slices = slicer.slice(&packet.record);
        kept.add(packet, &slices);
        Ok(())
    })?;
    Ok(kept.finish())
}

/// With a table of each.
fn write_slowest(part: &Part<'_>, out: &mut impl Write, args: &ReportArgs) -> anyhow::Result<()> {
    let source = part.source();
    let mut slicer = Slicer::new(part.entry);
    let kept = slowest(part, &mut slicer, args.number.unwrap_or(10))?;
    let view = SliceView {
        table: true,
        absolute: true,
        ..SliceView::default()
    };
    let mut printer = SlicePrinter::new(view);
    for (packet, slices) in &kept {
        match args.json {
            true => write_slice_json(out, &source, packet, slices, &slicer)?,
            false => printer.packet(out, &source, packet, slices, &slicer)?,
        }
    }
    Ok(())
}

/// Packets of a page, besides the slowest.
const FIRST: usize = 100;

fn html(part: &Part<'_>, args: &ReportArgs, to: &Path) -> anyhow::Result<()> {
    let tables = part.opened.reader.tables();
    let mut slicer = Slicer::new(part.entry);
    let mut stats = SliceStats::default();
    let mut slowest = Slowest::new(args.number.unwrap_or(100));
    let mut first = Vec::new();
    part.each(|packet| {
        let slices = slicer.slice(&packet.record);
        stats.add(&slices);
        slowest.add(packet, &slices);
        if first.len() < FIRST {
            first.push((packet.clone(), slices));
        }
        Ok(())
    })?;
    let damage = part.opened.damage();
    let page = SlicePage {
        file: &args.file.display().to_string(),
        origin: SliceOrigin {
            meta: &tables.meta,
            entry: part.entry,
            summary: tables.summary.as_ref(),
        },
        closing: SliceClosing {
            source: part.source(),
            slicer: &slicer,
            stats: &stats,
            read: Some(stats.packets),
            damage: damage.as_deref(),
            summary: tables.slice_summary.as_ref(),
        },
        packets: &[
            ("The slowest packets", slowest.finish()),
            ("The first packets", first),
        ],
    };
    let (file, place) = output::create(to, OWNER_ONLY)?;
    let mut out = BufWriter::new(file);
    write_slice_html(&mut out, &page)?;
    out.flush().with_context(|| to.display().to_string())?;
    place.put()
}

/// Of any number of packets, those that took longest.
struct Slowest {
    keep: usize,
    kept: Vec<(Sliced, PacketSlices)>,
}

impl Slowest {
    fn new(keep: usize) -> Slowest {
        Slowest {
            keep,
            kept: Vec::new(),
        }
    }

    fn add(&mut self, packet: &Sliced, slices: &PacketSlices) {
        self.kept.push((packet.clone(), slices.clone()));
        // Seldom enough that sorting costs little a packet.
        if self.kept.len() >= 2 * self.keep.max(64) {
            by_time(&mut self.kept, self.keep);
        }
    }

    fn finish(mut self) -> Vec<(Sliced, PacketSlices)> {
        by_time(&mut self.kept, self.keep);
        self.kept
    }
}

fn by_time(kept: &mut Vec<(Sliced, PacketSlices)>, keep: usize) {
    kept.sort_by_key(|(packet, slices)| (std::cmp::Reverse(slices.whole.best()), packet.record.id));
    kept.truncate(keep);
}
