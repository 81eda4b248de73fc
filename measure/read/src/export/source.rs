//! The selected part of a recording, with the packets of another file where they are in one.
use super::ExportOptions;
use crate::error::{Result, require};
use crate::runs::RunSource;
use crate::selection::Selection;
use crate::stamps;
use hopscope_analyze::Packets;
use hopscope_analyze::trail::Observer;
use hopscope_report::export::Facts;
use hopscope_report::{Recording, Streams};
use hopscope_trace::{OwnedStamps, TraceReader};

pub(super) struct Source<'a> {
    pub(super) selection: &'a Selection,
    /// With the packets, when they are in another file.
    beside: Option<TraceReader>,
    root: Option<&'a str>,
    pub(super) packet_id: Option<&'a str>,
}

impl<'a> Source<'a> {
    pub(super) fn open(options: &'a ExportOptions, selection: &'a Selection) -> Result<Source<'a>> {
        Ok(Source {
            selection,
            beside: beside(options, selection)?,
            root: options.root.as_deref(),
            packet_id: options.packet_id.as_deref(),
        })
    }

    /// With the statistics of its streams of packets.
    pub(super) fn recording<'b>(&'b self, packets: &'b [Packets]) -> Recording<'b> {
        self.selection.recording(Streams {
            entries: &self.stamps_reader().tables().streams,
            packets,
        })
    }

    /// Leads every call past the observer, which is asked after each batch whether all is well.
    pub(super) fn observe<O: Observer>(
        &self,
        observer: &mut O,
        check: impl FnMut(&mut O) -> Result<()>,
        facts: &mut Facts,
    ) -> Result<()> {
        let totals = self.selection.observe(observer, check)?;
        facts.calls(&totals.balance, &totals.oddities);
        Ok(())
    }

    pub(super) fn is_of_packets_only(&self) -> bool {
        self.records_packets() && !self.records_calls()
    }

    /// Generated ones, here or in the file beside.
    pub(super) fn records_packets(&self) -> bool {
        let stamps = self.stamps_reader();
        !stamps.tables().streams.is_empty() || stamps.stamp_heads().next().is_some()
    }

    /// Functions were measured, called or not.
    pub(super) fn records_calls(&self) -> bool {
        let reader = self.selection.reader();
        !reader.tables().functions.is_empty() || reader.heads().next().is_some()
    }

    pub(super) fn is_of_slices_only(&self) -> bool {
        let tables = self.selection.tables();
        let others = !self.stamps_reader().tables().streams.is_empty();
        tables.slice.is_some() && tables.functions.is_empty() && !others
    }

    pub(super) fn stamps(&self) -> impl Iterator<Item = Result<OwnedStamps>> {
        stamps::batches(self.selection, self.stamps_reader())
    }

    /// Where the packets are: here, or in the file beside.
    pub(super) fn stamps_reader(&self) -> &TraceReader {
        self.beside.as_ref().unwrap_or(self.selection.reader())
    }

    pub(super) fn root_is_named(&self) -> bool {
        self.root.is_some()
    }

    pub(super) fn runs(&self) -> RunSource<'_> {
        self.selection.runs(self.root)
    }

    /// Statistics of each stream over the packets due within the window.
    pub(super) fn packets(&self) -> Result<Vec<Packets>> {
        stamps::statistics(self.selection, self.stamps_reader())
    }
}

fn beside(options: &ExportOptions, selection: &Selection) -> Result<Option<TraceReader>> {
    let Some(path) = &options.packets else {
        return Ok(None);
    };
    let beside = stamps::beside(path, &options.file, &selection.tables().meta)?;
    require!(
        beside.stamp_heads().any(|head| head.rows > 0),
        "--packets: {} holds no packet; it is to be one that hopscope load packets -w wrote",
        path.display()
    );
    Ok(Some(beside))
}
