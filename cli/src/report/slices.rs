//! Recordings of the kernel's path: alone, or beside calls.
use super::{By, ReportArgs};
use crate::output::{self, OWNER_ONLY};
use crate::slice::{PacketChoice, Pass, To};
use anyhow::Context;
use hopscope_read::slices::{SlicedPackets, write_page, write_slowest};
use hopscope_read::{Opened, Selection};
use hopscope_report::slice::{SliceOrigin, SlicePrinter, SliceView, write_slice_origin};
use hopscope_trace::TraceReader;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

/// Nothing else was recorded.
pub(super) fn only(reader: &TraceReader) -> bool {
    let tables = reader.tables();
    tables.slice.is_some() && tables.functions.is_empty() && tables.streams.is_empty()
}

fn statistics(packets: &SlicedPackets<'_>, out: &mut impl Write, json: bool) -> anyhow::Result<()> {
    let source = packets.source();
    let to = if json { To::Json } else { To::Nowhere };
    let mut pass = Pass::new(packets.entry, PacketChoice::default(), to);
    pass.quiet();
    packets.each(|packet| pass.packet(out, &source, packet))?;
    let opened = &packets.selection.opened;
    let summary = opened.reader.tables().slice_summary.as_ref();
    Ok(pass.close(out, source, Some(opened.damage().as_deref()), summary)?)
}

pub(super) fn run(args: &ReportArgs, opened: Opened) -> anyhow::Result<ExitCode> {
    let selection = Selection::new(&args.file, opened, args.part_of_time())?;
    let tables = selection.tables();
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
    let packets = SlicedPackets::of(&selection, entry);
    if let Some(to) = &args.html {
        let (file, place) = output::create(to, OWNER_ONLY)?;
        let mut out = BufWriter::new(file);
        write_page(&packets, &mut out, &args.file, args.number.unwrap_or(100))?;
        out.flush().with_context(|| to.display().to_string())?;
        place.put()?;
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
        (true, _) => events(&packets, &mut out, args.json)?,
        (false, By::Packet) => {
            write_slowest(&packets, &mut out, args.number.unwrap_or(10), args.json)?
        }
        (false, _) => statistics(&packets, &mut out, args.json)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// After the statistics of calls.
pub(super) fn write_beside(
    out: &mut impl Write,
    args: &ReportArgs,
    selection: &Selection,
) -> anyhow::Result<()> {
    let plain = args.tail.is_none() && !args.events && matches!(args.by, By::Function);
    let Some(entry) = selection.tables().slice.as_ref().filter(|_| plain) else {
        return Ok(());
    };
    if !args.json {
        writeln!(out, "\nthe kernel's path of packets")?;
    }
    statistics(&SlicedPackets::of(selection, entry), out, args.json)
}

fn events(packets: &SlicedPackets<'_>, out: &mut impl Write, json: bool) -> anyhow::Result<()> {
    let to = if json {
        To::Json
    } else {
        To::Text(SlicePrinter::new(SliceView::default()))
    };
    let source = packets.source();
    let mut pass = Pass::new(packets.entry, PacketChoice::default(), to);
    Ok(packets.each(|packet| pass.packet(out, &source, packet))?)
}
