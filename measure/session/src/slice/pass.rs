//! What becomes of each packet, live or read: chosen, counted, shown or written.
use super::choice::PacketChoice;
use crate::error::Result;
use hopscope_analyze::slice::{SliceStats, Slicer};
use hopscope_event::slice::{SliceEntry, SliceSummary, Sliced};
use hopscope_read::slice_file::SliceFile;
use hopscope_report::slice::{
    SliceClosing, SlicePrinter, SliceSource, write_slice_closing, write_slice_closing_json,
    write_slice_json,
};
use std::io::{self, Write};

/// Where packets go.
pub enum To {
    Text(SlicePrinter),
    Json,
    File(SliceFile),
    /// Counted only.
    Nowhere,
}

pub struct Pass {
    slicer: Slicer,
    stats: SliceStats,
    choice: PacketChoice,
    to: To,
    /// Packets that came, chosen or not.
    came: u64,
    is_quiet: bool,
}

impl Pass {
    pub fn new(entry: &SliceEntry, choice: PacketChoice, to: To) -> Pass {
        Pass {
            slicer: Slicer::new(entry),
            stats: SliceStats::default(),
            choice,
            to,
            came: 0,
            is_quiet: false,
        }
    }

    /// Nothing of each packet, only what is said at the end.
    pub fn quiet(&mut self) {
        self.is_quiet = true;
    }

    /// Packets that were chosen.
    pub fn taken(&self) -> u64 {
        self.stats.packets
    }

    pub fn choice(&self) -> &PacketChoice {
        &self.choice
    }

    pub fn file(&mut self) -> Option<&mut SliceFile> {
        match &mut self.to {
            To::File(file) => Some(file),
            _ => None,
        }
    }

    /// # Errors
    /// Those of `out`, or of the file.
    pub fn packet(
        &mut self,
        out: &mut impl Write,
        source: &SliceSource<'_>,
        packet: &Sliced,
    ) -> Result<()> {
        self.came += 1;
        let slices = self.slicer.slice(&packet.record);
        if !self.choice.wants(packet, &slices.whole) {
            return Ok(());
        }
        self.stats.add(&slices);
        let sliced = source.sliced(packet, &slices, &self.slicer);
        match &mut self.to {
            To::Text(printer) => printer.packet(out, sliced)?,
            To::Nowhere => {}
            To::Json if self.is_quiet => {}
            To::Json => write_slice_json(out, sliced)?,
            To::File(file) => file.packet(sliced)?,
        }
        Ok(())
    }

    /// Statistics and counters. `read`: of a file, and what of it is lost.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn close(
        &self,
        out: &mut impl Write,
        source: SliceSource<'_>,
        read: Option<Option<&str>>,
        summary: Option<&SliceSummary>,
    ) -> io::Result<()> {
        match self.to {
            To::Json => self.close_json(out, source, read, summary),
            _ => write_slice_closing(out, &self.closing(source, read, summary)),
        }
    }

    /// The same for programs, wherever packets went.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn close_json(
        &self,
        out: &mut impl Write,
        source: SliceSource<'_>,
        read: Option<Option<&str>>,
        summary: Option<&SliceSummary>,
    ) -> io::Result<()> {
        write_slice_closing_json(out, &self.closing(source, read, summary))
    }

    fn closing<'a>(
        &'a self,
        source: SliceSource<'a>,
        read: Option<Option<&'a str>>,
        summary: Option<&'a SliceSummary>,
    ) -> SliceClosing<'a> {
        SliceClosing {
            source,
            slicer: &self.slicer,
            stats: &self.stats,
            read: read.map(|_| self.came),
            damage: read.flatten(),
            summary,
        }
    }

    /// What cannot be shown or written any more is counted only.
    pub fn give_up(&mut self) -> Option<SliceFile> {
        match std::mem::replace(&mut self.to, To::Nowhere) {
            To::File(file) => Some(file),
            _ => None,
        }
    }

    pub fn into_file(self) -> Option<SliceFile> {
        match self.to {
            To::File(file) => Some(file),
            _ => None,
        }
    }
}
