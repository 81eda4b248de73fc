//! Runs: passes of the data path, the longest of them one by one.
use crate::error::Result;
use crate::options::ReportOptions;
use crate::selection::Selection;
use hopscope_analyze::{Run, RunStats};
use hopscope_report::{Names, Recording, RunReport, Scale};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

/// The longest runs of all that pass by.
struct Longest {
    most: usize,
    /// Shortest on top: length, and the later of equal ones.
    order: BinaryHeap<Reverse<(i64, Reverse<u64>)>>,
    runs: Vec<Run>,
}

impl Longest {
    /// Takes a run if it is one; what it does not keep comes back.
    fn offer(&mut self, run: Run) -> Option<Run> {
        let key = (run.ticks(), Reverse(run.ix.0));
        if self.most == 0 || !run.complete {
            return Some(run);
        }
        if self.runs.len() < self.most {
            self.order.push(Reverse(key));
            self.runs.push(run);
            return None;
        }
        let Reverse((ticks, Reverse(ix))) = *self.order.peek()?;
        if key <= (ticks, Reverse(ix)) {
            return Some(run);
        }
        self.order.pop();
        self.order.push(Reverse(key));
        let place = self.runs.iter().position(|r| r.ix.0 == ix)?;
        Some(std::mem::replace(&mut self.runs[place], run))
    }
}

/// As text or JSON.
///
/// # Errors
/// No runs, and what cannot be read or written.
pub fn write(
    out: &mut impl Write,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
) -> Result<()> {
    let mut stats = RunStats::new(&selection.index(), recording.meta.probe_cost);
    let mut longest = Longest {
        most: options.number.unwrap_or(10),
        order: BinaryHeap::new(),
        runs: Vec::new(),
    };
    let source = selection.runs(options.root.as_deref());
    let runs = source.each(|run, runs| {
        stats.add(&run);
        if let Some(run) = longest.offer(run) {
            runs.recycle(run);
        }
        Ok(())
    })?;
    let mut longest = longest.runs;
    longest.sort_by_key(|r| (Reverse(r.ticks()), r.ix));
    let names = Names::new(recording);
    let report = RunReport {
        names: &names,
        scale: Scale::new(options.time, recording.meta.tsc_frequency),
        start: recording.meta.start.tsc,
        root: runs.root(),
        counts: runs.counts(),
        stats: &stats,
        longest: &longest,
    };
    if options.json {
        hopscope_report::write_header_json(out, recording, options.time)?;
        hopscope_report::write_runs_json(out, &report)?;
    } else {
        hopscope_report::write_header(out, recording, options.time)?;
        hopscope_report::write_runs(out, &report)?;
    }
    Ok(())
}
