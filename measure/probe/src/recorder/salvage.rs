//! Saving what a killed recorder left in the rings of its target.
use super::target::{Counts, Drain, ThreadNumbers, thread_entry};
use crate::attach::memory::TargetMemory;
use crate::counters::clock_sync;
use crate::live::LiveError;
use crate::live::table::PatchTable;
use hopscope_event::layout::{RING_HEADER_BYTES, ring_bytes, ring_offset};
use hopscope_event::ring::{Position, Ring, Visit};
use hopscope_event::{OffCpuEntry, Summary, ThreadIx};
use hopscope_trace::{TraceError, TraceWriter};
use std::io::Write;
use std::sync::atomic::AtomicU64;

#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Writes a complete trace file with every record that was not consumed by the recorder.
pub fn salvage<W: Write>(
    table: &PatchTable,
    memory: &TargetMemory,
    out: W,
) -> Result<Counts, SalvageError> {
    let mut writer = TraceWriter::new(out, &table.meta)?;
    writer.process(&table.process)?;
    writer.modules(&table.modules)?;
    writer.functions(&table.functions)?;
    writer.off_cpu(&OffCpuEntry {
        why_not: Some("the recorder was killed; its own file holds those until then".into()),
        ..OffCpuEntry::default()
    })?;
    writer.captures(&table.captures)?;
    let mut counts = Counts::default();
    let mut numbers = ThreadNumbers::default();
    let mut threads = 0;
    for context in 0..table.pool_contexts as usize {
        let Some(words) = read_ring(table, memory, context)? else {
            continue;
        };
        let Some(ring) = Ring::new(&words, table.ring_records_log2) else {
            continue;
        };
        let mut position = Position {
            next: ring.consumed(),
        };
        let mut thread: Option<ThreadIx> = None;
        let mut buffer = Vec::new();
        let mut name = |writer: &mut TraceWriter<W>| {
            let ix = numbers.next();
            threads += 1;
            writer.thread(&thread_entry(
                ix,
                table.process.ix,
                table.target,
                ring.tid(),
            ))?;
            Ok(ix)
        };
        let mut drain = Drain {
            writer: &mut writer,
            buffer: &mut buffer,
            counts: &mut counts,
            count_calls: false,
        };
        drain.ring(&ring, &mut position, Visit::Final, &mut thread, &mut name)?;
    }
    writer.finish(&Summary {
        end: clock_sync(),
        ended_because: "the recorder was killed; salvaged from the target's memory".into(),
        recorded: counts.recorded,
        lost: counts.lost,
        torn: counts.torn,
        threads_measured: threads,
        calls_unmeasured: None,
        attach_pause_ns: Vec::new(),
        detach_pause_ns: Vec::new(),
        recorder_cpu_ns: None,
        notes: vec!["records that the recorder had already written are in its own file".into()],
    })?;
    Ok(counts)
}

/// The ring's memory, or `None` when nothing is waiting in it.
fn read_ring(
    table: &PatchTable,
    memory: &TargetMemory,
    context: usize,
) -> Result<Option<Vec<AtomicU64>>, LiveError> {
    let at = table.pool.at + ring_offset(context, table.ring_records_log2) as u64;
    let read = |len: usize| {
        let mut bytes = vec![0u8; len];
        memory
            .read(at, &mut bytes)
            .map_err(LiveError::io(table.target, "reading the rings"))?;
        let word = |w: &[u8]| AtomicU64::new(u64::from_le_bytes(w.try_into().expect("8 bytes")));
        Ok::<Vec<AtomicU64>, LiveError>(bytes.chunks_exact(8).map(word).collect())
    };
    let header = read(RING_HEADER_BYTES)?;
    let waiting = Ring::progress(&header).is_some_and(|(reserved, consumed)| reserved != consumed);
    if !waiting {
        return Ok(None);
    }
    read(ring_bytes(table.ring_records_log2)).map(Some)
}
