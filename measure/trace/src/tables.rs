//! Everything of a trace but the records, collected in one pass over the chunks.
use crate::batch::BatchHead;
use crate::chunks::{Chunks, Step};
use crate::codec;
use crate::error::TraceError;
use crate::format::*;
use crate::slices::SlicesHead;
use crate::source::Source;
use crate::stamps::StampsHead;
use crate::switches::SwitchesHead;
use hopscope_event::slice::{SliceEntry, SliceSummary};
use hopscope_event::table::ModuleEntry;
use hopscope_event::{
    BudgetEntry, CaptureEntry, ClockSync, CostCheckEntry, CounterEntry, FlightEntry, FunctionEntry,
    OffCpuEntry, ProcessEntry, RecordingMeta, Refusal, StreamEntry, Summary, ThinEntry,
    ThreadEntry, TriggerEntry,
};
use serde::de::DeserializeOwned;
use std::io;

#[derive(Debug, Clone)]
pub struct Tables {
    pub meta: RecordingMeta,
    pub processes: Vec<ProcessEntry>,
    pub threads: Vec<ThreadEntry>,
    pub modules: Vec<ModuleEntry>,
    pub functions: Vec<FunctionEntry>,
    pub refusals: Vec<Refusal>,
    /// What value records mean.
    pub captures: Vec<CaptureEntry>,
    /// By their number.
    pub counters: Vec<CounterEntry>,
    pub clocks: Vec<ClockSync>,
    /// Of generated packets.
    pub streams: Vec<StreamEntry>,
    /// `None`: the recorder does not report context switches.
    pub off_cpu: Option<OffCpuEntry>,
    /// Whether the cost of probes was measured in place, which is then in `meta` too.
    pub cost_check: Option<CostCheckEntry>,
    /// Only each Nth run was kept.
    pub thin: Option<ThinEntry>,
    /// Functions were left out for what their probes take.
    pub budget: Option<BudgetEntry>,
    /// Why a flight recorder saved this file.
    pub triggers: Vec<TriggerEntry>,
    /// Which part of time it saved.
    pub flight: Option<FlightEntry>,
    /// How the kernel's path was sliced; `None`: it was not.
    pub slice: Option<SliceEntry>,
    /// `None` with [`Tables::slice`]: as for [`Tables::summary`].
    pub slice_summary: Option<SliceSummary>,
    /// `None`: the recorder was killed, or the end of the file is lost.
    pub summary: Option<Summary>,
    pub damage: Option<Damage>,
    /// Chunks of types that this version does not know.
    pub unknown_chunks: u64,
    pub file_bytes: u64,
    /// Of chunks with records, headers included.
    pub record_bytes: u64,
    /// Of chunks with stamps of packets, headers included.
    pub stamp_bytes: u64,
    /// Of chunks with context switches, headers included.
    pub switch_bytes: u64,
    /// Of chunks with sliced packets, headers included.
    pub slice_bytes: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Major and minor version of the file.
    pub format: (u16, u16),
}

/// What of a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Position of the first chunk that is not whole.
    pub at: u64,
    /// Bytes at the end of the file that were given up.
    pub bytes_lost: u64,
    /// Damaged places in the middle that were passed over.
    pub chunks_skipped: u64,
    /// What is wrong at `at`.
    pub what: String,
}

/// The payload of a chunk: where it lies, and what its first bytes say.
#[derive(Clone, Copy)]
pub(crate) struct Placed<H> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) head: H,
}

#[derive(Default)]
pub(crate) struct Scan {
    meta: Option<RecordingMeta>,
    processes: Vec<ProcessEntry>,
    threads: Vec<ThreadEntry>,
    modules: Vec<ModuleEntry>,
    functions: Vec<FunctionEntry>,
    refusals: Vec<Refusal>,
    captures: Vec<CaptureEntry>,
    counters: Vec<CounterEntry>,
    clocks: Vec<ClockSync>,
    streams: Vec<StreamEntry>,
    off_cpu: Option<OffCpuEntry>,
    cost_check: Option<CostCheckEntry>,
    thin: Option<ThinEntry>,
    budget: Option<BudgetEntry>,
    triggers: Vec<TriggerEntry>,
    flight: Option<FlightEntry>,
    slice: Option<SliceEntry>,
    slice_summary: Option<SliceSummary>,
    summary: Option<Summary>,
    pub(crate) batches: Vec<Placed<BatchHead>>,
    /// Of each batch; `u64::MAX` where no record has a stamp.
    pub(crate) first_stamps: Vec<u64>,
    pub(crate) stamps: Vec<Placed<StampsHead>>,
    pub(crate) switches: Vec<Placed<SwitchesHead>>,
    pub(crate) slices: Vec<Placed<SlicesHead>>,
    record_bytes: u64,
    stamp_bytes: u64,
    switch_bytes: u64,
    slice_bytes: u64,
    unknown: u64,
    chunks: u64,
    damage: Option<Damage>,
}

impl Scan {
    fn within(&mut self, budget: BudgetEntry) {
        match &mut self.budget {
            Some(before) => before.left_out.extend(budget.left_out),
            None => self.budget = Some(budget),
        }
    }

    /// # Errors
    /// The file cannot be read.
    pub(crate) fn of(source: &Source) -> io::Result<Scan> {
        let mut scan = Scan::default();
        let mut chunks = Chunks::new(source, FILE_HEADER_BYTES as u64);
        while let Some(step) = chunks.step()? {
            match step {
                Step::Chunk {
                    kind,
                    start,
                    payload,
                } => scan.take(kind, start, payload),
                Step::Skipped { at, what } => scan.damage(at, what.into()).chunks_skipped += 1,
                Step::Ended { at, what } => {
                    scan.damage(at, what.into()).bytes_lost = source.len() - at;
                }
            }
        }
        Ok(scan)
    }

    fn damage(&mut self, at: u64, what: String) -> &mut Damage {
        self.damage.get_or_insert(Damage {
            at,
            bytes_lost: 0,
            chunks_skipped: 0,
            what,
        })
    }

    fn take(&mut self, kind: u32, start: u64, payload: &[u8]) {
        self.chunks += 1;
        let whole = (CHUNK_HEADER_BYTES + payload.len()) as u64;
        let end = start + payload.len() as u64;
        let done = match kind {
            META => json(payload).map(|meta| self.meta = Some(meta)),
            PROCESS => json(payload).map(|p| self.processes.push(p)),
            THREAD => json(payload).map(|t| self.threads.push(t)),
            MODULES => json(payload).map(|rows: Vec<_>| self.modules.extend(rows)),
            FUNCTIONS => json(payload).map(|rows: Vec<_>| self.functions.extend(rows)),
            REFUSALS => json(payload).map(|rows: Vec<_>| self.refusals.extend(rows)),
            CAPTURES => json(payload).map(|rows: Vec<_>| self.captures.extend(rows)),
            COUNTERS => json(payload).map(|rows: Vec<_>| self.counters.extend(rows)),
            CLOCK => json(payload).map(|c| self.clocks.push(c)),
            STREAM => json(payload).map(|s| self.streams.push(s)),
            STAMPS => match StampsHead::of_payload(payload) {
                Some(head) => {
                    self.stamp_bytes += whole;
                    self.stamps.push(Placed { start, end, head });
                    Ok(())
                }
                None => Err("a batch claims more stamps than it has bytes for".into()),
            },
            OFF_CPU => json(payload).map(|o| self.off_cpu = Some(o)),
            COST => json(payload).map(|c| self.cost_check = Some(c)),
            THIN => json(payload).map(|t| self.thin = Some(t)),
            BUDGET => json(payload).map(|b| self.within(b)),
            TRIGGER => json(payload).map(|t| self.triggers.push(t)),
            FLIGHT => json(payload).map(|f| self.flight = Some(f)),
            SWITCHES => match SwitchesHead::of_payload(payload) {
                Some(head) => {
                    self.switch_bytes += whole;
                    self.switches.push(Placed { start, end, head });
                    Ok(())
                }
                None => Err("a batch claims more switches than it has bytes for".into()),
            },
            SLICE => json(payload).map(|s| self.slice = Some(s)),
            SLICE_SUMMARY => json(payload).map(|s| self.slice_summary = Some(s)),
            SLICES => match SlicesHead::of_payload(payload) {
                Some(head) => {
                    self.slice_bytes += whole;
                    self.slices.push(Placed { start, end, head });
                    Ok(())
                }
                None => Err("a batch claims more sliced packets than it has bytes for".into()),
            },
            SUMMARY => json(payload).map(|s| self.summary = Some(s)),
            RECORDS => match BatchHead::of_payload(payload) {
                Some(head) => {
                    self.record_bytes += whole;
                    self.batches.push(Placed { start, end, head });
                    let records = &payload[BATCH_HEADER_BYTES..];
                    let first = codec::first_stamp(records, head.records as usize);
                    self.first_stamps.push(first.unwrap_or(u64::MAX));
                    Ok(())
                }
                None => Err("a batch claims more records than it has bytes for".into()),
            },
            _ => {
                self.unknown += 1;
                Ok(())
            }
        };
        if let Err(what) = done {
            let at = start - CHUNK_HEADER_BYTES as u64;
            self.damage(at, what).chunks_skipped += 1;
        }
    }

    pub(crate) fn finish(self, file_bytes: u64, format: (u16, u16)) -> Result<Tables, TraceError> {
        let Some(mut meta) = self.meta else {
            let why = self.damage.map_or("it is missing".into(), |d| d.what);
            return Err(TraceError::NoMeta(why));
        };
        let in_place = self.cost_check.as_ref().and_then(|c| c.in_place);
        if let Some(cost) = &mut meta.probe_cost {
            cost.in_place = in_place;
        }
        Ok(Tables {
            meta,
            processes: self.processes,
            threads: self.threads,
            modules: self.modules,
            functions: self.functions,
            refusals: self.refusals,
            captures: self.captures,
            counters: self.counters,
            clocks: self.clocks,
            streams: self.streams,
            off_cpu: self.off_cpu,
            cost_check: self.cost_check,
            thin: self.thin,
            budget: self.budget,
            triggers: self.triggers,
            flight: self.flight,
            slice: self.slice,
            slice_summary: self.slice_summary,
            summary: self.summary,
            damage: self.damage,
            unknown_chunks: self.unknown,
            file_bytes,
            record_bytes: self.record_bytes,
            stamp_bytes: self.stamp_bytes,
            switch_bytes: self.switch_bytes,
            slice_bytes: self.slice_bytes,
            chunks: self.chunks,
            format,
        })
    }
}

fn json<T: DeserializeOwned>(payload: &[u8]) -> Result<T, String> {
    serde_json::from_slice(payload).map_err(|e| format!("a table does not parse: {e}"))
}
