//! What a trace says of itself.
use super::slices::Slices;
use hopscope_event::{
    BudgetEntry, CounterEntry, FlightEntry, FunctionEntry, ProcessEntry, ProcessIx, RecordingMeta,
    StreamEntry, Summary, ThinEntry, ThreadIx, TriggerEntry,
};
use hopscope_trace::TraceReader;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts over batches.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Held {
    pub records: u64,
    pub lost: u64,
    pub torn: u64,
}

#[derive(Debug, Serialize)]
pub struct Thread<'a> {
    /// `None` when the row that names the thread is damaged.
    pub tid: Option<i32>,
    pub process: Option<ProcessIx>,
    pub comm: Option<&'a str>,
    #[serde(flatten)]
    pub held: Held,
}

/// Rows of generated packets.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Stamped {
    pub rows: u64,
    pub lost: u64,
    pub duplicate: u64,
    pub unwritten: u64,
    /// `None` without rows.
    pub bytes_per_row: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Damaged<'a> {
    pub at: u64,
    pub what: &'a str,
    pub places_skipped: u64,
    pub bytes_given_up_at_the_end: u64,
}

#[derive(Debug, Serialize)]
pub struct Info<'a> {
    pub r#type: &'static str,
    pub schema: u32,
    pub file: &'a str,
    pub file_bytes: u64,
    pub format: String,
    pub chunks: u64,
    pub unknown_chunks: u64,
    pub damage: Option<Damaged<'a>>,
    pub meta: &'a RecordingMeta,
    pub processes: &'a [ProcessEntry],
    pub threads: Vec<Thread<'a>>,
    pub modules: usize,
    pub functions: usize,
    /// By number.
    #[serde(skip)]
    pub function_entries: &'a [FunctionEntry],
    pub refusals: usize,
    pub clock_syncs: usize,
    pub batches: u64,
    #[serde(flatten)]
    pub held: Held,
    /// `None` without records.
    pub bytes_per_record: Option<f64>,
    pub streams: &'a [StreamEntry],
    pub stamps: Stamped,
    /// What probes counted.
    pub counters: &'a [CounterEntry],
    /// The kernel's path of packets, where it was recorded.
    pub slices: Option<Slices<'a>>,
    /// Only each Nth run was kept.
    pub thin: Option<&'a ThinEntry>,
    /// Functions were left out for what their probes take.
    pub budget: Option<&'a BudgetEntry>,
    /// Which part of time a flight recorder saved here, and why.
    pub flight: Option<&'a FlightEntry>,
    pub triggers: &'a [TriggerEntry],
    /// `None` when the recorder was killed, or the end of the file is lost.
    pub summary: Option<&'a Summary>,
}

impl<'a> Info<'a> {
    pub fn of(file: &'a str, reader: &'a TraceReader) -> Info<'a> {
        let t = reader.tables();
        let mut by_thread: BTreeMap<ThreadIx, Held> =
            t.threads.iter().map(|t| (t.ix, Held::default())).collect();
        let (mut held, mut batches) = (Held::default(), 0);
        for head in reader.heads() {
            batches += 1;
            for held in [&mut held, by_thread.entry(head.thread).or_default()] {
                held.records += u64::from(head.records);
                // The head's counts are what the file says, whatever made it.
                held.lost = held.lost.saturating_add(head.lost_before);
                held.torn = held.torn.saturating_add(head.torn_before);
            }
        }
        let entries: BTreeMap<ThreadIx, _> = t.threads.iter().map(|t| (t.ix, t)).collect();
        let thread = |(ix, held)| {
            let entry = entries.get(&ix);
            Thread {
                tid: entry.map(|t| t.tid),
                process: entry.map(|t| t.process),
                comm: entry.map(|t| t.comm.as_str()),
                held,
            }
        };
        Info {
            r#type: "info",
            schema: 1,
            file,
            file_bytes: t.file_bytes,
            format: format!("{}.{}", t.format.0, t.format.1),
            chunks: t.chunks,
            unknown_chunks: t.unknown_chunks,
            damage: t.damage.as_ref().map(|d| Damaged {
                at: d.at,
                what: &d.what,
                places_skipped: d.chunks_skipped,
                bytes_given_up_at_the_end: d.bytes_lost,
            }),
            meta: &t.meta,
            processes: &t.processes,
            threads: by_thread.into_iter().map(thread).collect(),
            modules: t.modules.len(),
            functions: t.functions.len(),
            function_entries: &t.functions,
            refusals: t.refusals.len(),
            clock_syncs: t.clocks.len(),
            batches,
            held,
            bytes_per_record: (held.records > 0)
                .then(|| t.record_bytes as f64 / held.records as f64),
            streams: &t.streams,
            stamps: stamped(reader),
            counters: &t.counters,
            slices: Slices::of(reader),
            thin: t.thin.as_ref(),
            budget: t.budget.as_ref(),
            flight: t.flight.as_ref(),
            triggers: &t.triggers,
            summary: t.summary.as_ref(),
        }
    }

    /// A generator or `slice` wrote it: no process was measured.
    pub fn is_of_packets_only(&self) -> bool {
        (!self.streams.is_empty() || self.slices.is_some())
            && self.processes.is_empty()
            && self.batches == 0
    }
}

fn stamped(reader: &TraceReader) -> Stamped {
    let mut stamps = Stamped::default();
    for head in reader.stamp_heads() {
        stamps.rows += u64::from(head.rows);
        stamps.lost += u64::from(head.lost);
        stamps.duplicate += u64::from(head.duplicate);
        stamps.unwritten = stamps.unwritten.saturating_add(head.unwritten_before);
    }
    let bytes = reader.tables().stamp_bytes as f64;
    stamps.bytes_per_row = (stamps.rows > 0).then(|| bytes / stamps.rows as f64);
    stamps
}
