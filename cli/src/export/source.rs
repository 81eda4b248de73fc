//! The recording that is exported, and the part of it that was asked for.
use super::ExportArgs;
use crate::runs::RunSource;
use anyhow::Context;
use hopscope_analyze::{Index, OwnedBatch, Packets, Window, same_clock};
use hopscope_event::{Ns, StreamIx, ThreadIx};
use hopscope_report::{Recording, Streams, Timeline};
use hopscope_trace::{OwnedStamps, TraceReader};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) struct Source {
    pub(super) reader: TraceReader,
    pub(super) window: Window,
    /// The same on CLOCK_MONOTONIC.
    pub(super) span_ns: Range<u64>,
    name: String,
    /// `None` is all of them.
    threads: Option<BTreeSet<ThreadIx>>,
    /// With the packets, when they are in another file.
    beside: Option<TraceReader>,
    root: Option<String>,
    pub(super) packet_id: Option<String>,
    damage: Option<String>,
    filter: String,
}

impl Source {
    /// All threads, all of the time.
    pub(super) fn is_whole(&self) -> bool {
        self.threads.is_none() && self.window == Window::default()
    }

    pub(super) fn open(args: &ExportArgs) -> anyhow::Result<Source> {
        let name = args.file.display().to_string();
        let opened = crate::slice::open(&args.file)?;
        let damage = opened.damage();
        let reader = opened.reader;
        let tables = reader.tables();
        let meta = &tables.meta;
        let window = Window::relative(meta.start.tsc, meta.tsc_frequency, args.from, args.to)?;
        let mut chosen = BTreeSet::new();
        for tid in &args.thread {
            let its: Vec<_> = tables.threads.iter().filter(|t| t.tid == *tid).collect();
            anyhow::ensure!(
                !its.is_empty(),
                "no thread {tid} in the recording; `hopscope info {name}` lists them"
            );
            chosen.extend(its.iter().map(|t| t.ix));
        }
        let beside = beside(args, &reader)?;
        let start = meta.start.monotonic_ns;
        let at = |ns: Option<Ns>, none| ns.map_or(none, |ns| start.saturating_add(ns.0));
        let span_ns = at(args.from, 0)..at(args.to, u64::MAX);
        Ok(Source {
            window,
            span_ns,
            name,
            beside,
            root: args.root.clone(),
            packet_id: args.packet_id.clone(),
            threads: (!args.thread.is_empty()).then_some(chosen),
            damage,
            filter: filter_text(args),
            reader,
        })
    }

    /// With the statistics of its streams of packets.
    pub(super) fn recording<'a>(&'a self, packets: &'a [Packets]) -> Recording<'a> {
        let tables = self.reader.tables();
        Recording {
            meta: &tables.meta,
            processes: &tables.processes,
            threads: &tables.threads,
            modules: &tables.modules,
            functions: &tables.functions,
            captures: &tables.captures,
            refusals: &tables.refusals,
            summary: tables.summary.as_ref(),
            damage: self.damage.as_deref(),
            filter: &self.filter,
            streams: Streams {
                entries: &self.stamps_reader().tables().streams,
                packets,
            },
            off_cpu: tables.off_cpu.as_ref(),
            cost_check: tables.cost_check.as_ref(),
            thin: tables.thin.as_ref(),
            triggers: &tables.triggers,
            flight: tables.flight.as_ref(),
        }
    }

    pub(super) fn timeline(&self) -> Timeline {
        let tables = self.reader.tables();
        let end = tables.summary.as_ref().map(|s| s.end);
        Timeline::new(&tables.meta, &tables.clocks, end)
    }

    pub(super) fn index(&self) -> Index {
        let tables = self.reader.tables();
        Index::new(&tables.functions, &tables.threads)
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
        !self.reader.tables().functions.is_empty() || self.reader.heads().next().is_some()
    }

    pub(super) fn is_of_slices_only(&self) -> bool {
        let tables = self.reader.tables();
        let others = !self.stamps_reader().tables().streams.is_empty();
        tables.slice.is_some() && tables.functions.is_empty() && !others
    }

    /// Records of the chosen threads, in the order of the file.
    pub(super) fn batches(&self) -> impl Iterator<Item = anyhow::Result<OwnedBatch>> {
        let reading = || format!("reading {}", self.name);
        let batches = crate::runs::batches(&self.reader).map(move |b| b.with_context(reading));
        batches.filter(|batch| match (batch, &self.threads) {
            (Ok(batch), Some(threads)) => threads.contains(&batch.thread),
            _ => true,
        })
    }

    pub(super) fn stamps(&self) -> impl Iterator<Item = anyhow::Result<OwnedStamps>> {
        let reading = || format!("reading {}", self.name);
        let stamps = self.stamps_reader().stamps();
        stamps.map(move |b| b.with_context(reading))
    }

    /// Where the packets are: here, or in the file beside.
    pub(super) fn stamps_reader(&self) -> &TraceReader {
        self.beside.as_ref().unwrap_or(&self.reader)
    }

    pub(super) fn has_calls(&self) -> bool {
        self.reader.heads().any(|head| head.records > 0)
    }

    pub(super) fn root_is_named(&self) -> bool {
        self.root.is_some()
    }

    pub(super) fn runs(&self) -> RunSource<'_> {
        RunSource {
            reader: &self.reader,
            threads: &self.threads,
            window: self.window,
            root: self.root.as_deref(),
        }
    }

    /// Statistics of each stream over the packets due within the window.
    pub(super) fn packets(&self) -> anyhow::Result<Vec<Packets>> {
        let mut streams: BTreeMap<StreamIx, Packets> = BTreeMap::new();
        for batch in self.stamps() {
            let batch = batch?;
            let stream = batch.stream;
            let packets = streams
                .entry(stream)
                .or_insert_with(|| Packets::new(stream));
            packets.unwritten = packets.unwritten.saturating_add(batch.unwritten_before);
            let due = batch
                .stamps
                .iter()
                .filter(|s| self.window.contains(s.intended.0));
            due.for_each(|stamp| packets.add(stamp));
        }
        Ok(streams.into_values().collect())
    }
}

/// The file that `--packets` names, of the same clock.
fn beside(args: &ExportArgs, reader: &TraceReader) -> anyhow::Result<Option<TraceReader>> {
    let Some(path) = &args.packets else {
        return Ok(None);
    };
    let beside = TraceReader::open(path).context("--packets")?;
    same_clock(&reader.tables().meta, &beside.tables().meta).with_context(|| {
        format!(
            "{} and {} cannot be laid side by side; make both on one host, between two boots",
            args.file.display(),
            path.display()
        )
    })?;
    anyhow::ensure!(
        beside.stamp_heads().any(|head| head.rows > 0),
        "--packets: {} holds no packet; it is to be one that hopscope load packets -o wrote",
        path.display()
    );
    Ok(Some(beside))
}

fn filter_text(args: &ExportArgs) -> String {
    let ms = |ns: hopscope_event::Ns| format!("{} ms", ns.0 as f64 / 1e6);
    let mut parts = Vec::new();
    parts.extend(args.from.map(|ns| format!("what began from {}", ms(ns))));
    parts.extend(args.to.map(|ns| format!("what began before {}", ms(ns))));
    if !args.thread.is_empty() {
        let tids: Vec<_> = args.thread.iter().map(ToString::to_string).collect();
        parts.push(format!("only thread {}", tids.join(", ")));
    }
    parts.join("; ")
}
