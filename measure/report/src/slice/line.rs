//! One line a packet.
use super::flows::Flows;
use super::{SliceSource, SliceView, dump, head, text};
use hopscope_analyze::slice::{PacketSlices, Slicer};
use hopscope_event::slice::Sliced;
use std::io::{self, Write};

pub(super) fn write(
    out: &mut impl Write,
    source: &SliceSource<'_>,
    view: SliceView,
    flows: &mut Flows,
    packet: &Sliced,
    slices: &PacketSlices,
    slicer: &Slicer,
) -> io::Result<()> {
    head(out, source, view, flows, packet)?;
    let times = text::slices(source, &packet.record, slices, slicer);
    writeln!(out, " | {times}")
}

/// Everything before the slices.
pub(super) fn head(
    out: &mut impl Write,
    source: &SliceSource<'_>,
    view: SliceView,
    flows: &mut Flows,
    packet: &Sliced,
) -> io::Result<()> {
    let record = &packet.record;
    write!(out, "{} ", of_day(source.time.realtime_ns(record.t0_ns)))?;
    match (
        source.interface(record.tx_netns, record.tx_ifindex),
        source.interface(record.rx_netns, record.rx_ifindex),
    ) {
        (Some(from), Some(to)) => write!(out, "{from} > {to} ")?,
        (Some(from), None) => write!(out, "{from} > ")?,
        (None, Some(to)) => write!(out, "> {to} ")?,
        (None, None) => {}
    }
    if view.link {
        write!(out, "{}, ", dump::link(packet.bytes.as_ref()))?;
    }
    write!(out, "{}", head::of(packet, view.quiet, flows))
}

/// Time of day, UTC.
fn of_day(realtime_ns: u64) -> String {
    let (seconds, ns) = (realtime_ns / 1_000_000_000, realtime_ns % 1_000_000_000);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{h:02}:{m:02}:{s:02}.{ns:09}")
}
