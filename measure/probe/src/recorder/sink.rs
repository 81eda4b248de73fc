//! Where records go: a trace file, or a live view.
use super::rows::NewRows;
use hopscope_event::{
    BudgetEntry, ClockSync, LeftOutEntry, OffCpuEntry, ProcessEntry, ThinEntry, ThreadEntry, Tsc,
};
use hopscope_trace::{RecordBatch, Switches, TraceError, TraceWriter};
use std::io::Write;

/// What the recorder drains into. An error ends the recording; the targets are restored then.
pub trait Sink {
    /// A process that came while recording; its threads follow. Whoever shows calls only has no use for it.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn process(&mut self, _: &ProcessEntry) -> Result<(), TraceError> {
        Ok(())
    }

    /// # Errors
    /// As all here: when the sink can take no more.
    fn thread(&mut self, entry: &ThreadEntry) -> Result<(), TraceError>;

    /// Functions that came while recording, before their first records. Whoever shows no functions has no use for them.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn rows(&mut self, _: &NewRows) -> Result<(), TraceError> {
        Ok(())
    }

    /// Records of one thread, in ring order; its `thread` came before.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn records(&mut self, batch: RecordBatch<'_>) -> Result<(), TraceError>;

    /// When a thread did not run, in order of time; its `thread` came before. Whoever shows calls
    /// only has no use for it.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn switches(&mut self, _: Switches<'_>) -> Result<(), TraceError> {
        Ok(())
    }

    /// Before all records: only a choice of the runs will come.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn thin(&mut self, _: &ThinEntry) -> Result<(), TraceError> {
        Ok(())
    }

    /// Of functions that were left out since the last time: their later calls will not come.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn left_out(&mut self, _: &[LeftOutEntry]) -> Result<(), TraceError> {
        Ok(())
    }

    /// Once a second: what is known of the recording of switches.
    fn off_cpu(&mut self, _: &OffCpuEntry) {}

    /// What has come is where the end of this process does not take it, if there is such a place: the
    /// rings need not hold it any more for a salvage.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn keep(&mut self) -> Result<(), TraceError> {
        self.flush()
    }

    /// All rings have been visited; what was recorded before `began` has come.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn visited(&mut self, _began: Tsc) -> Result<(), TraceError> {
        Ok(())
    }

    /// Once a second. Whoever writes no file has no use for it.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn clock(&mut self, _: ClockSync) -> Result<(), TraceError> {
        Ok(())
    }

    /// Whoever writes no file has nothing to.
    ///
    /// # Errors
    /// See [`Sink::thread`].
    fn flush(&mut self) -> Result<(), TraceError> {
        Ok(())
    }
}

impl<W: Write> Sink for TraceWriter<W> {
    fn process(&mut self, entry: &ProcessEntry) -> Result<(), TraceError> {
        TraceWriter::process(self, entry)
    }

    fn thread(&mut self, entry: &ThreadEntry) -> Result<(), TraceError> {
        TraceWriter::thread(self, entry)
    }

    fn rows(&mut self, new: &NewRows) -> Result<(), TraceError> {
        TraceWriter::modules(self, &new.modules)?;
        TraceWriter::functions(self, &new.functions)?;
        TraceWriter::captures(self, &new.captures)?;
        TraceWriter::refusals(self, &new.refusals)
    }

    fn records(&mut self, batch: RecordBatch<'_>) -> Result<(), TraceError> {
        TraceWriter::records(self, batch)
    }

    fn switches(&mut self, batch: Switches<'_>) -> Result<(), TraceError> {
        TraceWriter::switches(self, batch)
    }

    fn thin(&mut self, entry: &ThinEntry) -> Result<(), TraceError> {
        TraceWriter::thin(self, entry)
    }

    fn left_out(&mut self, entries: &[LeftOutEntry]) -> Result<(), TraceError> {
        self.budget(&BudgetEntry {
            left_out: entries.to_vec(),
            ..BudgetEntry::default()
        })
    }

    fn clock(&mut self, sync: ClockSync) -> Result<(), TraceError> {
        TraceWriter::clock(self, sync)
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        TraceWriter::flush(self)
    }
}
