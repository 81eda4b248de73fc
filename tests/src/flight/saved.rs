//! A file that a flight recorder saved.
use super::passes::passes;
use anyhow::{Context, Result, ensure};
use hopscope_event::{FlightEntry, FunctionId, ThreadIx};
use hopscope_trace::TraceReader;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// With the rules that hold for each.
pub(super) struct Saved {
    pub(super) path: PathBuf,
    pub(super) reader: TraceReader,
    pub(super) flight: FlightEntry,
}

impl Saved {
    pub(super) fn open(path: &Path) -> Result<Saved> {
        let reader = TraceReader::open(path)?;
        let t = reader.tables();
        ensure!(t.damage.is_none(), "damaged: {:?}", t.damage);
        ensure!(t.unknown_chunks == 0, "{} unknown chunks", t.unknown_chunks);
        let flight = t.flight.clone().context("no word of the flight recorder")?;
        let summary = t.summary.as_ref().context("no summary")?;
        ensure!(
            (t.meta.start.tsc, summary.end.tsc) == (flight.from, flight.until),
            "the file is not as long as its window: {flight:?}"
        );
        ensure!(
            !t.clocks.is_empty() && t.off_cpu.is_some(),
            "tables are missing"
        );
        ensure!(t.captures.len() == 1, "{} captures", t.captures.len());
        ensure!(flight.fired as usize == t.triggers.len(), "{flight:?}");
        let heads: u64 = reader.heads().map(|h| u64::from(h.records)).sum();
        ensure!(
            heads == summary.recorded,
            "{heads} records, not {}",
            summary.recorded
        );
        let saved = Saved {
            path: path.into(),
            reader,
            flight,
        };
        saved.holds_its_window_only()?;
        Ok(saved)
    }

    fn holds_its_window_only(&self) -> Result<()> {
        let window = self.flight.from.0..=self.flight.until.0;
        for batch in self.reader.batches() {
            let batch = batch?;
            ensure!(
                batch.lost_before + batch.torn_before == 0,
                "records were lost"
            );
            let timed = batch.records.iter().filter(|r| r.value().is_none());
            for r in timed {
                ensure!(window.contains(&r.tsc), "{r:?} is not in {window:?}");
            }
        }
        Ok(())
    }

    pub(super) fn function(&self, name: &str) -> Result<FunctionId> {
        let all = &self.reader.tables().functions;
        let found = all.iter().find(|f| f.name == name);
        Ok(found.with_context(|| format!("no {name}"))?.id)
    }

    /// Numbers of the passes that begin in the file, by thread.
    pub(super) fn passes(&self) -> Result<BTreeMap<ThreadIx, Vec<u64>>> {
        passes(&self.reader)
    }
}
