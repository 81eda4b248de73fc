//! A pcapng file with a trace inside, frames in the order of time.
use super::Out;
use super::in_order::InOrder;
use super::private::Numbers;
use crate::error::Result;
use hopscope_event::slice::{SliceSummary, Sliced};
use hopscope_event::{ClockSync, Summary};
use hopscope_netio::capture::{FrameLink, InterfaceCounts, PcapngWriter};
use hopscope_report::slice::SliceSource;
use hopscope_trace::TraceWriter;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// As long as a packet may lie unread without giving its slot away.
const WINDOW_NS: u64 = 2_000_000_000;
/// With the bytes of each, 40 MB.
const HELD_MAX: usize = 16_384;
/// Of packets that met no device.
const NO_INTERFACE: &str = "none";
/// Of a frame, besides its bytes and its comment, until one was written.
const OVERHEAD: u64 = 230;

pub(super) struct Capture<W: Write> {
    writer: PcapngWriter<Out<W>>,
    /// Writes the parts of the trace, which are then taken from its room.
    trace: TraceWriter<Vec<u8>>,
    interfaces: BTreeMap<(String, FrameLink), u32>,
    last_ns: u64,
    numbers: Numbers,
    /// Packets end in another order than they begin, and every tool takes frames to be in the order of time.
    held: InOrder<Held>,
    /// Of the frames that are held, and what another frame had besides.
    held_bytes: u64,
    overhead: u64,
    /// What the frames of the first interface begin with, and how many begin with something else.
    link: Option<FrameLink>,
    of_other_link: u64,
}

/// A packet that waits for earlier ones.
struct Held {
    interface: String,
    realtime_ns: u64,
    packet: Sliced,
    comment: String,
    /// Of the file, nearly.
    bytes: u64,
}

impl<W: Write> Capture<W> {
    /// `trace` has written what goes before all packets.
    pub(super) fn new(out: Out<W>, trace: TraceWriter<Vec<u8>>) -> io::Result<Capture<W>> {
        Ok(Capture {
            writer: PcapngWriter::new(out)?,
            trace,
            interfaces: BTreeMap::new(),
            last_ns: 0,
            numbers: Numbers::default(),
            held: InOrder::new(WINDOW_NS, HELD_MAX),
            held_bytes: 0,
            overhead: OVERHEAD,
            link: None,
            of_other_link: 0,
        })
    }

    pub(super) fn clock(&mut self, sync: ClockSync) -> Result<()> {
        self.trace.clock(sync)?;
        self.put()?;
        self.held.now(sync.monotonic_ns);
        Ok(self.write_due()?)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Written, and to be written of what is held.
    pub(super) fn bytes(&mut self) -> u64 {
        self.writer.get_mut().bytes + self.held_bytes
    }

    /// Moves what the trace has written into the file, once it has an interface: editcap and mergecap take a section
    /// for one without packets where another block comes first, and tcpdump reads a file only where all
    /// interfaces have the link of the first one, which is known with the first frame.
    fn put(&mut self) -> io::Result<()> {
        if self.interfaces.is_empty() {
            return Ok(());
        }
        let part = std::mem::take(self.trace.get_mut());
        self.writer.private(&self.numbers.block(&part))
    }

    /// The kernel's counts are not by device: the first one has them.
    fn statistics(&mut self, sliced: &SliceSummary) -> io::Result<()> {
        if self.interfaces.is_empty() {
            return Ok(());
        }
        let counts = InterfaceCounts {
            received: sliced.counters.received(),
            dropped: sliced.counters.lost(),
        };
        self.writer.statistics(0, self.last_ns, counts)
    }

    pub(super) fn packet(
        &mut self,
        source: &SliceSource<'_>,
        packet: &Sliced,
        comment: String,
    ) -> io::Result<()> {
        let record = &packet.record;
        let (netns, ifindex) = match record.tx_ifindex {
            0 => (record.rx_netns, record.rx_ifindex),
            tx => (record.tx_netns, tx),
        };
        let name = source.interface(netns, ifindex);
        let held = Held {
            interface: name.unwrap_or_else(|| NO_INTERFACE.to_owned()),
            realtime_ns: source.time.realtime_ns(record.t0_ns),
            packet: packet.clone(),
            bytes: self.overhead + frame_bytes(packet, &comment),
            comment,
        };
        self.held_bytes += held.bytes;
        self.held.push(record.t0_ns, held);
        self.write_due()
    }

    fn write_due(&mut self) -> io::Result<()> {
        while let Some(held) = self.held.pop_due() {
            self.frame(held)?;
        }
        Ok(())
    }

    fn write_all(&mut self) -> io::Result<()> {
        while let Some(held) = self.held.pop() {
            self.frame(held)?;
        }
        Ok(())
    }

    fn interface(&mut self, name: String, link: FrameLink) -> io::Result<u32> {
        if let Some(interface) = self.interfaces.get(&(name.clone(), link)) {
            return Ok(*interface);
        }
        let interface = self.writer.interface_of(&name, link)?;
        self.interfaces.insert((name, link), interface);
        if self.link.is_none() {
            self.link = Some(link);
            self.put()?;
        }
        Ok(interface)
    }

    fn frame(&mut self, held: Held) -> io::Result<()> {
        let before = self.writer.get_mut().bytes;
        let Held {
            interface: name,
            realtime_ns: at,
            packet,
            comment,
            bytes: _,
        } = &held;
        let record = &packet.record;
        let (bytes, wire_len, link) = match &packet.bytes {
            Some(b) if b.link_len > 0 => (&b.bytes[..], b.original_len, FrameLink::Ethernet),
            Some(b) => (&b.bytes[..], b.original_len, FrameLink::Network),
            // Nothing is there to begin with anything.
            None => {
                let link = self.link.unwrap_or(FrameLink::Ethernet);
                (&[][..], record.ip_len, link)
            }
        };
        let interface = self.interface(name.clone(), link)?;
        self.of_other_link += u64::from(self.link != Some(link));
        self.last_ns = self.last_ns.max(*at);
        let private = self.numbers.packet(packet, bytes);
        let wire_len = wire_len as usize;
        self.writer
            .frame_with(interface, *at, bytes, wire_len, Some(comment), &private)?;
        self.held_bytes -= held.bytes;
        let written = self.writer.get_mut().bytes - before;
        self.overhead = written.saturating_sub(frame_bytes(packet, comment));
        Ok(())
    }

    /// `sliced`, `summary`: as [`super::SliceFile::finish`].
    pub(super) fn finish(
        mut self,
        sliced: Option<&SliceSummary>,
        summary: Option<&Summary>,
    ) -> Result<()> {
        self.write_all()?;
        if self.interfaces.is_empty() {
            self.interface(NO_INTERFACE.to_owned(), FrameLink::Ethernet)?;
        }
        let late = self.held.late();
        if late > 0 {
            log::warn!(
                "{late} frames come after later ones: their packets took more than {} s; reordercap sorts them",
                WINDOW_NS / 1_000_000_000
            );
        }
        if self.of_other_link > 0 {
            log::warn!(
                "{} frames have another link header than the first, or none: Wireshark reads the file, tcpdump does not",
                self.of_other_link
            );
        }
        if let Some(sliced) = sliced {
            self.trace.slice_summary(sliced)?;
            self.put()?;
            self.statistics(sliced)?;
        }
        let Capture {
            mut writer,
            trace,
            mut numbers,
            ..
        } = self;
        if let Some(summary) = summary {
            writer.private(&numbers.block(&trace.finish(summary)?))?;
        }
        writer.finish()?;
        Ok(())
    }
}

fn frame_bytes(packet: &Sliced, comment: &str) -> u64 {
    let frame = packet.bytes.as_ref().map_or(0, |b| b.bytes.len());
    (frame + comment.len()) as u64
}
