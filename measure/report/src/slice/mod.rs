//! Sliced packets: a line each in tcpdump's manner, tables, JSON, and statistics at the end.
mod adjacent_calls;
mod cost;
mod dump;
mod flows;
mod head;
mod json;
mod line;
mod origin;
mod summary;
mod table;
pub(crate) mod text;

#[cfg(test)]
mod tests;

pub(crate) use adjacent_calls::SHOWN;
pub use adjacent_calls::{OneTimeline, write_one_timeline, write_sides, write_sides_json};
pub use json::write_slice_json;
pub use origin::{SliceOrigin, duty_text, write_slice_origin};
pub use summary::{SliceClosing, write_slice_closing, write_slice_closing_json};
pub use text::slice_comment;

use dump::Dump;
use flows::Flows;
use hopscope_analyze::slice::{PacketSlices, RealTime, Slicer};
use hopscope_event::slice::{SliceEntry, SliceEvent, Sliced};
use line::Times;
use std::io::{self, Write};

/// What is shown of each packet; tcpdump's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SliceView {
    /// `-v`: a table of each packet's slices.
    pub table: bool,
    /// `-e`: the link's header.
    pub link: bool,
    /// `-S`: sequence numbers as they are; also wherever packets are not shown in the order of time.
    pub absolute: bool,
    /// How many of `-t`: which time a line begins with.
    pub time: u8,
    /// `-q`: less of the protocol.
    pub quiet: bool,
    /// `-x`, `-xx`: bytes, with the link's header when 2.
    pub hex: u8,
    /// `-X`, `-XX`.
    pub hex_ascii: u8,
    /// `-A`, `-AA`.
    pub ascii: u8,
}

/// What every packet of a recording has in common.
#[derive(Clone, Copy)]
pub struct SliceSource<'a> {
    pub entry: &'a SliceEntry,
    pub time: &'a RealTime,
}

/// A packet with its slices, and what names them.
#[derive(Clone, Copy)]
pub struct SlicedPacket<'a> {
    pub source: SliceSource<'a>,
    pub packet: &'a Sliced,
    pub slices: &'a PacketSlices,
    pub slicer: &'a Slicer,
}

impl<'a> SliceSource<'a> {
    pub fn sliced(
        self,
        packet: &'a Sliced,
        slices: &'a PacketSlices,
        slicer: &'a Slicer,
    ) -> SlicedPacket<'a> {
        SlicedPacket {
            source: self,
            packet,
            slices,
            slicer,
        }
    }

    /// Its name, or its number where that is all that is known; `None`: the packet met no interface.
    pub fn interface(&self, netns: u32, ifindex: u32) -> Option<String> {
        if ifindex == 0 {
            return None;
        }
        let mut known = self.entry.interfaces.iter();
        let name = known.find(|i| (i.netns, i.ifindex) == (netns, ifindex));
        Some(name.map_or(format!("if{ifindex}"), |i| crate::printable(&i.name)))
    }

    pub(crate) fn drop_reason(&self, reason: u16) -> String {
        let name = self.entry.drop_reasons.get(usize::from(reason));
        match name.filter(|name| !name.is_empty()) {
            Some(name) => crate::printable(name),
            None => format!("reason {reason}"),
        }
    }

    /// `ns`, or what was counted.
    pub(super) fn unit(&self) -> &str {
        match &self.entry.event {
            SliceEvent::Time => "ns",
            SliceEvent::Counter(name) => name,
        }
    }

    /// Of the numbers of a line.
    pub(crate) fn line_unit(&self) -> &str {
        text::unit(self)
    }

    pub(crate) fn is_time(&self) -> bool {
        self.entry.event == SliceEvent::Time
    }
}

/// Writes packets for people. What is known of time and interfaces may grow from one to the next.
pub struct SlicePrinter {
    view: SliceView,
    flows: Flows,
    times: Times,
}

impl SlicePrinter {
    pub fn new(view: SliceView) -> SlicePrinter {
        SlicePrinter {
            view,
            flows: Flows::new(view.absolute),
            times: Times::default(),
        }
    }

    /// # Errors
    /// Those of `out`.
    pub fn packet(&mut self, out: &mut impl Write, sliced: SlicedPacket<'_>) -> io::Result<()> {
        let (SlicedPacket { source, packet, .. }, view) = (sliced, self.view);
        self.times.write(out, &source, view.time, packet)?;
        line::head(out, &source, view, &mut self.flows, packet)?;
        writeln!(out, " | {}", text::slice_comment(sliced))?;
        if view.table {
            table::write(out, sliced)?;
        }
        let Some(bytes) = &packet.bytes else {
            return Ok(());
        };
        for (count, dump) in [
            (view.hex, Dump::Hex),
            (view.hex_ascii, Dump::HexAscii),
            (view.ascii, Dump::Ascii),
        ] {
            if count > 0 {
                dump::write(out, bytes, dump, count > 1)?;
            }
        }
        Ok(())
    }
}

/// When and what a packet was, without its slices.
pub(crate) fn line_of(source: &SliceSource<'_>, packet: &Sliced) -> String {
    let mut out = Vec::new();
    let time = Times::default().write(&mut out, source, 0, packet);
    let done = line::head(
        &mut out,
        source,
        SliceView::default(),
        &mut Flows::new(true),
        packet,
    );
    debug_assert!(time.and(done).is_ok(), "a vector takes all that is written");
    String::from_utf8_lossy(&out).into_owned()
}
