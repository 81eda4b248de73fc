//! One line a packet.
use super::flows::Flows;
use super::{SliceSource, SliceView, dump, head};
use crate::printable_text::utc;
use hopscope_event::slice::Sliced;
use std::io::{self, Write};

/// Everything before the slices.
pub(super) fn head(
    out: &mut impl Write,
    source: &SliceSource<'_>,
    view: SliceView,
    flows: &mut Flows,
    packet: &Sliced,
) -> io::Result<()> {
    let record = &packet.record;
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

/// What a line begins with, in tcpdump's ways.
#[derive(Default)]
pub(super) struct Times {
    first_ns: Option<u64>,
    last_ns: Option<u64>,
}

impl Times {
    pub(super) fn write(
        &mut self,
        out: &mut impl Write,
        source: &SliceSource<'_>,
        way: u8,
        packet: &Sliced,
    ) -> io::Result<()> {
        let now_ns = source.time.realtime_ns(packet.record.t0_ns);
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        let last_ns = self.last_ns.replace(now_ns).unwrap_or(now_ns);
        match way {
            0 => write!(out, "{} ", of_day(now_ns)),
            1 => Ok(()),
            2 => write!(out, "{}.{:09} ", now_ns / SECOND, now_ns % SECOND),
            3 => write!(out, "{} ", since(last_ns, now_ns)),
            4 => write!(out, "{} {} ", date(now_ns), of_day(now_ns)),
            _ => write!(out, "{} ", since(first_ns, now_ns)),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Packets are shown in the order in which they end: one may have begun before the last.
fn since(before_ns: u64, now_ns: u64) -> String {
    let sign = if now_ns < before_ns { "-" } else { "" };
    format!("{sign}{}", of_day(now_ns.abs_diff(before_ns)))
}

/// Year, month and day, UTC.
fn date(realtime_ns: u64) -> String {
    let text = utc(realtime_ns);
    text.get(..10).unwrap_or(&text).to_owned()
}

/// Time of day, UTC.
fn of_day(realtime_ns: u64) -> String {
    let (seconds, ns) = (realtime_ns / 1_000_000_000, realtime_ns % 1_000_000_000);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{h:02}:{m:02}:{s:02}.{ns:09}")
}
