//! Writing packets: as a `.hop` trace, or as pcapng with the same trace inside.
use super::in_order::InOrder;
use super::pcapng::Numbers;
use crate::output;
use hopscope_analyze::slice::{PacketSlices, Slicer};
use hopscope_event::slice::{SliceEntry, SliceSummary, Sliced};
use hopscope_event::{ClockSync, RecordingMeta, Summary};
use hopscope_netio::capture::{FrameLink, InterfaceCounts, PcapngWriter};
use hopscope_report::printable;
use hopscope_report::slice::{SliceSource, slice_comment};
use hopscope_trace::TraceWriter;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Packets of one chunk.
const BATCH: usize = 256;
/// As long as a packet may lie unread without giving its slot away.
const WINDOW_NS: u64 = 2_000_000_000;
/// With the bytes of each, 40 MB.
const HELD_MAX: usize = 16_384;
/// Of packets that met no device.
const NO_INTERFACE: &str = "none";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Hop,
    Pcapng,
}

/// Counts what goes through it.
struct Out<W: Write> {
    inner: BufWriter<W>,
    bytes: u64,
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

struct Capture<W: Write> {
    writer: PcapngWriter<Out<W>>,
    /// Writes the parts of the trace, which are then taken from its room.
    trace: TraceWriter<Vec<u8>>,
    interfaces: BTreeMap<(String, FrameLink), u32>,
    last_ns: u64,
    numbers: Numbers,
    /// Packets end in another order than they begin, and every tool takes frames to be in the order of time.
    held: InOrder<Held>,
}

/// A packet that waits for earlier ones.
struct Held {
    interface: String,
    realtime_ns: u64,
    packet: Sliced,
    comment: String,
}

impl<W: Write> Capture<W> {
    /// Moves what the trace has written into the file.
    fn put(&mut self) -> io::Result<()> {
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

    fn packet(
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
            comment,
        };
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
        Ok(interface)
    }

    fn frame(&mut self, held: Held) -> io::Result<()> {
        let Held {
            interface: name,
            realtime_ns: at,
            packet,
            comment,
        } = &held;
        let record = &packet.record;
        let (bytes, wire_len, link) = match &packet.bytes {
            Some(b) if b.link_len > 0 => (&b.bytes[..], b.original_len, FrameLink::Ethernet),
            Some(b) => (&b.bytes[..], b.original_len, FrameLink::Network),
            None => (&[][..], record.ip_len, FrameLink::Network),
        };
        let interface = self.interface(name.clone(), link)?;
        self.last_ns = self.last_ns.max(*at);
        let private = self.numbers.packet(packet, bytes);
        let wire_len = wire_len as usize;
        self.writer
            .frame_with(interface, *at, bytes, wire_len, Some(comment), &private)
    }
}

enum Inner<W: Write> {
    Hop {
        writer: TraceWriter<Out<W>>,
        rows: Vec<Sliced>,
    },
    Pcapng(Box<Capture<W>>),
}

pub struct SliceFile<W: Write = Box<dyn Write>> {
    inner: Inner<W>,
}

impl SliceFile {
    /// `-` is stdout.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn create(
        path: &Path,
        format: Format,
        mode: u32,
        meta: &RecordingMeta,
        entry: &SliceEntry,
    ) -> anyhow::Result<SliceFile> {
        let out: Box<dyn Write> = match path.as_os_str() == "-" {
            true => Box::new(io::stdout()),
            // Captures are looked at while they grow.
            false => Box::new(output::create_in_place(path, mode)?),
        };
        SliceFile::new(out, format, meta, entry)
    }
}

impl<W: Write> SliceFile<W> {
    /// # Errors
    /// Those of `out`.
    pub fn new(
        out: W,
        format: Format,
        meta: &RecordingMeta,
        entry: &SliceEntry,
    ) -> anyhow::Result<SliceFile<W>> {
        let out = Out {
            inner: BufWriter::new(out),
            bytes: 0,
        };
        let inner = match format {
            Format::Hop => {
                let mut writer = TraceWriter::new(out, meta)?;
                writer.slice(entry)?;
                Inner::Hop {
                    writer,
                    rows: Vec::new(),
                }
            }
            Format::Pcapng => {
                let mut trace = TraceWriter::new(Vec::new(), meta)?;
                trace.slice(entry)?;
                let mut capture = Capture {
                    writer: PcapngWriter::new(out)?,
                    trace,
                    interfaces: BTreeMap::new(),
                    last_ns: 0,
                    numbers: Numbers::default(),
                    held: InOrder::new(WINDOW_NS, HELD_MAX),
                };
                // editcap and mergecap take a section for one without packets where another block comes first.
                let first = entry.interfaces.first();
                let first = first.map_or(NO_INTERFACE, |interface| &interface.name);
                capture.interface(printable(first), FrameLink::Network)?;
                capture.put()?;
                Inner::Pcapng(Box::new(capture))
            }
        };
        Ok(SliceFile { inner })
    }

    pub fn clock(&mut self, sync: ClockSync) -> anyhow::Result<()> {
        self.rows()?;
        match &mut self.inner {
            Inner::Hop { writer, .. } => writer.clock(sync)?,
            Inner::Pcapng(capture) => {
                capture.trace.clock(sync)?;
                capture.put()?;
                capture.held.now(sync.monotonic_ns);
                capture.write_due()?;
            }
        }
        Ok(())
    }

    pub fn packet(
        &mut self,
        source: &SliceSource<'_>,
        packet: &Sliced,
        slices: &PacketSlices,
        slicer: &Slicer,
    ) -> anyhow::Result<()> {
        match &mut self.inner {
            Inner::Hop { rows, .. } => {
                rows.push(packet.clone());
                if rows.len() >= BATCH {
                    self.rows()?;
                }
            }
            Inner::Pcapng(capture) => {
                let comment = slice_comment(source, &packet.record, slices, slicer);
                capture.packet(source, packet, comment)?;
            }
        }
        Ok(())
    }

    fn rows(&mut self) -> anyhow::Result<()> {
        if let Inner::Hop { writer, rows } = &mut self.inner {
            writer.slices(rows)?;
            rows.clear();
        }
        Ok(())
    }

    /// Everything so far is in the file, but for frames that wait for earlier ones.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.rows()?;
        match &mut self.inner {
            Inner::Hop { writer, .. } => writer.flush()?,
            Inner::Pcapng(capture) => capture.writer.flush()?,
        }
        Ok(())
    }

    /// What the file has, and packets that wait to be written not counted.
    pub fn bytes_written(&mut self) -> u64 {
        match &mut self.inner {
            Inner::Hop { writer, .. } => writer.get_mut().bytes,
            Inner::Pcapng(capture) => capture.writer.get_mut().bytes,
        }
    }

    /// `None` where it is not known: the file then says that it did not end in order.
    pub fn finish(
        mut self,
        sliced: Option<&SliceSummary>,
        summary: Option<&Summary>,
    ) -> anyhow::Result<()> {
        self.rows()?;
        match self.inner {
            Inner::Hop { mut writer, .. } => {
                if let Some(sliced) = sliced {
                    writer.slice_summary(sliced)?;
                }
                match summary {
                    Some(summary) => drop(writer.finish(summary)?),
                    None => writer.flush()?,
                }
            }
            Inner::Pcapng(mut capture) => {
                capture.write_all()?;
                let late = capture.held.late();
                if late > 0 {
                    log::warn!(
                        "{late} frames come after later ones: their packets took more than {} s; reordercap sorts them",
                        WINDOW_NS / 1_000_000_000
                    );
                }
                if let Some(sliced) = sliced {
                    capture.trace.slice_summary(sliced)?;
                    capture.put()?;
                    capture.statistics(sliced)?;
                }
                let Capture {
                    mut writer,
                    trace,
                    mut numbers,
                    ..
                } = *capture;
                if let Some(summary) = summary {
                    writer.private(&numbers.block(&trace.finish(summary)?))?;
                }
                writer.finish()?;
            }
        }
        Ok(())
    }
}
