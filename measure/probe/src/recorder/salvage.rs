//! Saving what a killed recorder left in the rings of its target.
use super::callees::{Callees, Names, Numbering, OpenCalls};
use super::measured::{Drain, RingCounts, thread_entry};
use super::numbers::Numbers;
use crate::counters::clock_sync;
use crate::live::table::PatchTable;
use hopscope_event::layout::{RING_HEADER_BYTES, ring_bytes, ring_offset};
use hopscope_event::ring::{Position, Ring, Visit};
use hopscope_event::table::ModuleEntry;
use hopscope_event::{CaptureEntry, FunctionEntry, OffCpuEntry, Summary, ThreadIx};
use hopscope_process::memory::TargetMemory;
use hopscope_trace::{TraceError, TraceWriter};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::AtomicU64;

/// Writes a complete trace file with every record that was not consumed by the recorder. `added`: to the recording, while
/// it ran.
pub fn salvage<W: Write>(
    table: &PatchTable,
    added: &[&PatchTable],
    memory: &TargetMemory,
    out: W,
) -> Result<RingCounts, TraceError> {
    let mut writer = TraceWriter::new(out, &table.meta)?;
    writer.process(&table.process)?;
    let all = Rows::of(table, added);
    writer.modules(&all.modules)?;
    writer.functions(&all.functions)?;
    writer.off_cpu(&OffCpuEntry {
        why_not: Some("the recorder was killed; its own file holds those until then".into()),
        ..OffCpuEntry::default()
    })?;
    writer.captures(&all.captures)?;
    writer.counters(&table.counters)?;
    let next = Numbering::after(all.functions.len(), all.modules.len());
    let files = all.modules.iter();
    let files = files.map(|module| (module.path.as_str().into(), (None, module.ix)));
    let names = || Names::new(table.target, files.collect(), &[]);
    let mut callees = Callees::of(&all.functions, &all.captures, next, names);
    let mut counts = RingCounts::default();
    let mut numbers = Numbers::default();
    let mut threads = 0;
    let mut unreadable = 0;
    for context in 0..table.pool_contexts as usize {
        let words = match read_ring(table, memory, context) {
            Ok(Some(words)) => words,
            Ok(None) => continue,
            // The target can cut the memory off below it, or map something else there.
            Err(e) => {
                log::info!("process {}: ring {context}: {e}", table.target);
                unreadable += 1;
                continue;
            }
        };
        let Some(ring) = Ring::new(&words, table.ring_records_log2) else {
            continue;
        };
        let mut position = Position {
            next: ring.consumed(),
        };
        let mut thread: Option<ThreadIx> = None;
        let mut open = OpenCalls::default();
        let mut buffer = Vec::new();
        let mut name = |writer: &mut TraceWriter<W>| {
            let ix = numbers.thread();
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
            told: None,
            writer: &mut writer,
            buffer: &mut buffer,
            counts: &mut counts,
            count_calls: false,
            tally: None,
            slow_calls: None,
            callees: callees
                .as_mut()
                .map(|callees| (callees, &mut open, table.target)),
        };
        drain.ring(&ring, &mut position, Visit::Final, &mut thread, &mut name)?;
    }
    let mut notes =
        vec!["records that the recorder had already written are in its own file".into()];
    if unreadable > 0 {
        notes.push(format!(
            "{unreadable} rings could not be read; their records are missing"
        ));
    }
    counts.damaged += unreadable;
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
        stops: Default::default(),
        recorder_cpu_ns: None,
        notes,
    })?;
    Ok(counts)
}

/// What records name, by number.
struct Rows {
    modules: Vec<ModuleEntry>,
    functions: Vec<FunctionEntry>,
    captures: Vec<CaptureEntry>,
}

impl Rows {
    fn of(table: &PatchTable, added: &[&PatchTable]) -> Rows {
        let tables = || std::iter::once(&table).chain(added);
        let modules = tables().flat_map(|t| &t.modules).map(|m| (m.ix, m));
        let modules: BTreeMap<_, _> = modules.collect();
        let functions = tables().flat_map(|t| &t.functions).map(|f| (f.id, f));
        let functions: BTreeMap<_, _> = functions.collect();
        let mut captures: Vec<CaptureEntry> = table.captures.clone();
        for capture in added.iter().flat_map(|t| &t.captures) {
            if !captures.contains(capture) {
                captures.push(capture.clone());
            }
        }
        Rows {
            modules: modules.into_values().cloned().collect(),
            functions: functions.into_values().cloned().collect(),
            captures,
        }
    }
}

/// The ring's memory, or `None` when nothing is waiting in it.
fn read_ring(
    table: &PatchTable,
    memory: &TargetMemory,
    context: usize,
) -> io::Result<Option<Vec<AtomicU64>>> {
    let at = table.pool.at + ring_offset(context, table.ring_records_log2) as u64;
    let header = read_words(memory, at, RING_HEADER_BYTES)?;
    let waiting = Ring::progress(&header).is_some_and(|(reserved, consumed)| reserved != consumed);
    match waiting {
        false => Ok(None),
        true => read_words(memory, at, ring_bytes(table.ring_records_log2)).map(Some),
    }
}

/// Read at once.
const CHUNK: usize = 1 << 20;

/// In chunks: what cannot be read ends it before there is memory for all of it.
fn read_words(memory: &TargetMemory, mut at: u64, len: usize) -> io::Result<Vec<AtomicU64>> {
    let word = |w: &[u8]| AtomicU64::new(u64::from_le_bytes(w.try_into().expect("8 bytes")));
    let mut words = Vec::new();
    words.try_reserve_exact(len / 8)?;
    let mut bytes = vec![0u8; len.min(CHUNK)];
    while words.len() * 8 < len {
        let part = bytes.len().min(len - words.len() * 8);
        memory.read(at, &mut bytes[..part])?;
        words.extend(bytes[..part].chunks_exact(8).map(word));
        at += part as u64;
    }
    Ok(words)
}

#[cfg(test)]
mod tests;
