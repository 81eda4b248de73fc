//! Writing packets: as a `.hop` trace, or as pcapng with the same trace inside ([`capture`]).
mod capture;
mod in_order;
pub(crate) mod private;

#[cfg(test)]
mod tests;

use crate::error::Result;
use capture::Capture;
use hopscope_event::slice::{SliceEntry, SliceSummary, Sliced};
use hopscope_event::{ClockSync, RecordingMeta, Summary};
use hopscope_report::slice::{SlicedPacket, slice_comment};
use hopscope_trace::TraceWriter;
use std::io::{self, BufWriter, Write};

/// Packets of one chunk.
const BATCH: usize = 256;

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

enum Inner<W: Write> {
    Hop {
        writer: TraceWriter<Out<W>>,
        rows: Vec<Sliced>,
    },
    Pcapng(Box<Capture<W>>),
}

pub struct SliceFile<W: Write = Box<dyn Write>> {
    inner: Inner<W>,
    /// Given to it, written or not.
    packets: u64,
}

impl<W: Write> SliceFile<W> {
    /// # Errors
    /// Those of `out`.
    pub fn new(
        out: W,
        format: Format,
        meta: &RecordingMeta,
        entry: &SliceEntry,
    ) -> Result<SliceFile<W>> {
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
                Inner::Pcapng(Box::new(Capture::new(out, trace)?))
            }
        };
        Ok(SliceFile { inner, packets: 0 })
    }

    /// # Errors
    /// Those of `out`.
    pub fn clock(&mut self, sync: ClockSync) -> Result<()> {
        self.rows()?;
        match &mut self.inner {
            Inner::Hop { writer, .. } => writer.clock(sync)?,
            Inner::Pcapng(capture) => capture.clock(sync)?,
        }
        Ok(())
    }

    /// # Errors
    /// Those of `out`.
    pub fn packet(&mut self, sliced: SlicedPacket<'_>) -> Result<()> {
        self.packets += 1;
        match &mut self.inner {
            Inner::Hop { rows, .. } => {
                rows.push(sliced.packet.clone());
                if rows.len() >= BATCH {
                    self.rows()?;
                }
            }
            Inner::Pcapng(capture) => {
                capture.packet(&sliced.source, sliced.packet, slice_comment(sliced))?;
            }
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<()> {
        if let Inner::Hop { writer, rows } = &mut self.inner {
            writer.slices(rows)?;
            rows.clear();
        }
        Ok(())
    }

    /// Everything so far is in the file, but for frames that wait for earlier ones.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn flush(&mut self) -> Result<()> {
        self.rows()?;
        match &mut self.inner {
            Inner::Hop { writer, .. } => writer.flush()?,
            Inner::Pcapng(capture) => capture.flush()?,
        }
        Ok(())
    }

    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// What the file has, and nearly what frames that wait for earlier ones will take of it.
    pub fn bytes(&mut self) -> u64 {
        match &mut self.inner {
            Inner::Hop { writer, .. } => writer.get_mut().bytes,
            Inner::Pcapng(capture) => capture.bytes(),
        }
    }

    /// `None` where it is not known: the file then says that it did not end in order.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(
        mut self,
        sliced: Option<&SliceSummary>,
        summary: Option<&Summary>,
    ) -> Result<()> {
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
            Inner::Pcapng(capture) => capture.finish(sliced, summary)?,
        }
        Ok(())
    }
}
