//! Passes over the records of a recording.
use crate::error::{Context, Result};
use hopscope_analyze::{InOrder, Index, OffCpuTimes, OwnedBatch, Read, StackOwners};
use hopscope_trace::TraceReader;

/// Records of calls in the order of the file, each batch with what other threads did on the same stacks.
pub fn batches(reader: &TraceReader) -> impl Iterator<Item = Result<OwnedBatch>> {
    let tables = reader.tables();
    let index = Index::new(&[], &tables.threads);
    let read = reader.batches().zip(reader.ahead()).map(|(batch, ahead)| {
        let batch = batch.context("reading the records of the recording")?;
        Ok(Read {
            batch: OwnedBatch {
                lost: batch.lost_before,
                torn: batch.torn_before,
                ..OwnedBatch::new(batch.thread, batch.first_index, batch.records)
            },
            ahead_from: ahead.from,
            last_of_thread: ahead.last_of_thread,
        })
    });
    let threads = tables.threads.iter().map(|t| t.ix);
    InOrder::new(read, StackOwners::new(&index, threads))
}

/// When threads did not run; empty when context switches were not recorded.
///
/// # Errors
/// Switches that do not decode.
pub(crate) fn off_cpu(reader: &TraceReader) -> Result<OffCpuTimes> {
    let mut times = OffCpuTimes::default();
    for batch in reader.off_cpu() {
        let batch = batch.context("reading the context switches of the recording")?;
        times.extend(batch.thread, batch.lost_before, &batch.rows);
    }
    Ok(times)
}
