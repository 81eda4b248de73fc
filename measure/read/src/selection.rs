//! The part of a recording that is looked at: which time, which threads. Every pass over a recording goes through here.
use crate::error::{Context, Result, refuse};
use crate::opened::Opened;
use crate::records;
use hopscope_analyze::trail::{Observer, Totals};
use hopscope_analyze::{
    Analysis, AnalysisOptions, AnalysisResult, Batch, Group, Index, OffCpuTimes, OwnedBatch,
};
use hopscope_analyze::{Trail, Window};
use hopscope_event::{Ns, ThreadIx};
use hopscope_report::{Recording, Streams, Timeline};
use hopscope_trace::{Tables, TraceReader};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

pub struct Selection {
    pub opened: Opened,
    pub window: Window,
    /// The same on CLOCK_MONOTONIC.
    pub span_ns: Range<u64>,
    /// `None` is all of them.
    pub threads: Option<BTreeSet<ThreadIx>>,
    /// Of the file, for messages.
    name: String,
    damage: Option<String>,
    /// What is left out, in words.
    filter: String,
}

/// What is asked for. Times count from the start of the recording.
#[derive(Debug, Clone, Default)]
pub struct Part {
    pub from: Option<Ns>,
    pub to: Option<Ns>,
    /// None: all.
    pub tids: Vec<i32>,
    /// The same in words, for the header of a report.
    pub in_words: String,
}

impl Selection {
    /// # Errors
    /// A time that is none, or a thread that is not in the recording.
    pub fn new(path: &Path, opened: Opened, part: Part) -> Result<Selection> {
        let tables = opened.reader.tables();
        let meta = &tables.meta;
        let name = path.display().to_string();
        let start = meta.start.monotonic_ns;
        let at = |ns: Option<Ns>, none| ns.map_or(none, |ns| start.saturating_add(ns.0));
        Ok(Selection {
            window: Window::relative(meta.start.tsc, meta.tsc_frequency, part.from, part.to)?,
            span_ns: at(part.from, 0)..at(part.to, u64::MAX),
            threads: threads(&part.tids, tables, &name)?,
            damage: opened.damage(),
            filter: part.in_words,
            name,
            opened,
        })
    }

    pub fn reader(&self) -> &TraceReader {
        &self.opened.reader
    }

    pub fn tables(&self) -> &Tables {
        self.reader().tables()
    }

    /// All threads, all of the time.
    pub fn is_whole(&self) -> bool {
        self.threads.is_none() && self.window == Window::default()
    }

    /// Calls were recorded.
    pub fn has_calls(&self) -> bool {
        self.reader().heads().any(|head| head.records > 0)
    }

    pub fn recording<'a>(&'a self, streams: Streams<'a>) -> Recording<'a> {
        let tables = self.tables();
        Recording {
            meta: &tables.meta,
            processes: &tables.processes,
            threads: &tables.threads,
            modules: &tables.modules,
            functions: &tables.functions,
            captures: &tables.captures,
            counters: &tables.counters,
            refusals: &tables.refusals,
            summary: tables.summary.as_ref(),
            damage: self.damage.as_deref(),
            filter: &self.filter,
            streams,
            off_cpu: tables.off_cpu.as_ref(),
            cost_check: tables.cost_check.as_ref(),
            thin: tables.thin.as_ref(),
            budget: tables.budget.as_ref(),
            triggers: &tables.triggers,
            flight: tables.flight.as_ref(),
        }
    }

    pub fn index(&self) -> Index {
        let tables = self.tables();
        Index::new(&tables.functions, &tables.threads).with_counters(&tables.counters)
    }

    pub fn timeline(&self) -> Timeline {
        let tables = self.tables();
        let end = tables.summary.as_ref().map(|s| s.end);
        Timeline::new(&tables.meta, &tables.clocks, end)
    }

    /// `reading FILE`, of errors.
    pub(crate) fn reading(&self) -> String {
        format!("reading {}", self.name)
    }

    /// Records of the selected threads, in the order of the file.
    pub fn batches(&self) -> impl Iterator<Item = Result<OwnedBatch>> {
        let batches = records::batches(self.reader());
        let batches = batches.map(|batch| batch.with_context(|| self.reading()));
        batches.filter(|batch| match (batch, &self.threads) {
            (Ok(batch), Some(threads)) => threads.contains(&batch.thread),
            _ => true,
        })
    }

    /// # Errors
    /// What cannot be read.
    pub fn each_batch(&self, mut take: impl FnMut(&Batch<'_>)) -> Result<()> {
        for batch in self.batches() {
            take(&batch?.batch());
        }
        Ok(())
    }

    /// Statistics of calls. `off_cpu`: when threads did not run.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn analysis(&self, group: Group, off_cpu: Option<OffCpuTimes>) -> Result<AnalysisResult> {
        let mut analysis = Analysis::new(self.index(), self.options(group));
        off_cpu
            .into_iter()
            .for_each(|times| analysis.off_cpu(times));
        self.each_batch(|batch| analysis.feed(batch))?;
        Ok(analysis.finish())
    }

    pub fn options(&self, group: Group) -> AnalysisOptions {
        AnalysisOptions {
            group,
            window: self.window,
            probe_cost: self.tables().meta.probe_cost,
            whole: self.is_whole(),
        }
    }

    /// # Errors
    /// Switches that do not decode.
    pub fn off_cpu(&self) -> Result<OffCpuTimes> {
        records::off_cpu(self.reader())
    }

    /// Leads every call past the observer, which is asked after each batch whether all is well.
    ///
    /// # Errors
    /// What cannot be read, and what `check` says.
    pub fn observe<O: Observer>(
        &self,
        observer: &mut O,
        mut check: impl FnMut(&mut O) -> Result<()>,
    ) -> Result<Totals> {
        let mut calls = Trail::new(self.index(), self.window, self.tables().meta.probe_cost);
        for owned in self.batches() {
            calls.feed(&owned?.batch(), observer);
            check(observer)?;
        }
        let totals = calls.finish(observer);
        check(observer)?;
        Ok(totals)
    }
}

/// `None` is all of them.
fn threads(tids: &[i32], tables: &Tables, name: &str) -> Result<Option<BTreeSet<ThreadIx>>> {
    if tids.is_empty() {
        return Ok(None);
    }
    let mut chosen = BTreeSet::new();
    for tid in tids {
        if !tables.threads.iter().any(|t| t.tid == *tid) {
            let mut others: Vec<_> = tables.threads.iter().map(|t| t.tid.to_string()).collect();
            others.truncate(16);
            refuse!(
                "no thread {tid} in the recording; there are {} (`hopscope info {name}` lists them)",
                others.join(", ")
            );
        }
        chosen.extend(
            tables
                .threads
                .iter()
                .filter(|t| t.tid == *tid)
                .map(|t| t.ix),
        );
    }
    Ok(Some(chosen))
}
