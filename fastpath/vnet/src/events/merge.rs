//! Both ends of the queues in one file: two recordings of one machine, each of another end.
use hopscope_event::{ClockSync, RecordingMeta, Summary};
use hopscope_trace::{Batch, Stamps, TraceError, TraceReader, TraceWriter};
use std::io::Write;

#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error(
        "both recordings are of the same end: give one of `vnet serve` and one of `vnet drive`"
    )]
    SameEnd,
    #[error("a recording is not one of `vnet serve --output` or `vnet drive --output`")]
    NotOfQueues,
    #[error(
        "the recordings are of different machines or boots ({a} and {b}): their times cannot be compared"
    )]
    OtherClock { a: String, b: String },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Clocks of one boot differ by what two measurements of the frequency differ.
const APART_MAX_NS: u64 = 1_000_000_000;

/// Writes all of both to `out`. What was lost of either, or has no end, is said in the summary.
///
/// # Errors
/// Nothing that can be merged, or `out` cannot be written.
pub fn merge<W: Write>(a: &TraceReader, b: &TraceReader, out: W) -> Result<W, MergeError> {
    let both = [a, b];
    let processes = both.map(|reader| reader.tables().processes.first().map(|p| p.ix));
    match processes {
        [Some(a), Some(b)] if a == b => return Err(MergeError::SameEnd),
        [Some(_), Some(_)] => {}
        _ => return Err(MergeError::NotOfQueues),
    }
    let functions = both.map(|reader| &reader.tables().functions);
    if functions[0] != functions[1] || functions[0].len() != super::What::ALL.len() {
        return Err(MergeError::NotOfQueues);
    }
    let (meta, other) = (&a.tables().meta, &b.tables().meta);
    if meta.host != other.host || boot(meta).abs_diff(boot(other)) > APART_MAX_NS {
        let (a, b) = (meta.host.clone(), other.host.clone());
        return Err(MergeError::OtherClock { a, b });
    }
    let mut writer = TraceWriter::new(out, meta)?;
    for reader in both {
        for process in &reader.tables().processes {
            writer.process(process)?;
        }
    }
    let tables = a.tables();
    writer.modules(&tables.modules)?;
    writer.functions(&tables.functions)?;
    writer.captures(&tables.captures)?;
    for reader in both {
        for thread in &reader.tables().threads {
            writer.thread(thread)?;
        }
        for stream in &reader.tables().streams {
            writer.stream(stream)?;
        }
    }
    for reader in both {
        for batch in reader.batches() {
            let batch = batch?;
            writer.records(Batch {
                thread: batch.thread,
                first_index: batch.first_index,
                lost_before: batch.lost_before,
                torn_before: batch.torn_before,
                records: &batch.records,
            })?;
        }
        for batch in reader.stamps() {
            let batch = batch?;
            writer.stamps(Stamps {
                stream: batch.stream,
                unwritten_before: batch.unwritten_before,
                stamps: &batch.stamps,
            })?;
        }
    }
    Ok(writer.finish(&summary(both))?)
}

/// When the machine's clock since its start would have been 0, on the clock of the records.
fn boot(meta: &RecordingMeta) -> u64 {
    let ns = meta.tsc_frequency.ns(meta.start.tsc.0.cast_signed());
    meta.start.monotonic_ns.wrapping_sub(ns.cast_unsigned())
}

fn summary(both: [&TraceReader; 2]) -> Summary {
    let summaries = both.map(|reader| reader.tables().summary.as_ref());
    let sum = |of: fn(&Summary) -> u64| summaries.iter().flatten().map(|s| of(s)).sum();
    let last = |reader: &TraceReader| -> ClockSync {
        let tables = reader.tables();
        let clock = tables.clocks.last().copied().unwrap_or(tables.meta.start);
        tables.summary.as_ref().map_or(clock, |summary| summary.end)
    };
    let mut notes: Vec<String> = summaries
        .iter()
        .flatten()
        .flat_map(|s| s.notes.clone())
        .collect();
    notes.dedup();
    for (reader, summary) in both.iter().zip(summaries) {
        let process = reader.tables().processes.first();
        let name = process.map_or("an end", |process| process.comm.as_str());
        if summary.is_none() {
            notes.push(format!("the recording of the {name} has no end"));
        }
        if let Some(damage) = &reader.tables().damage {
            notes.push(format!(
                "the recording of the {name} is damaged: {damage:?}"
            ));
        }
    }
    let cpu = summaries.map(|summary| summary?.recorder_cpu_ns);
    let [a, b] = both.map(last);
    Summary {
        end: if a.tsc.0 > b.tsc.0 { a } else { b },
        ended_because: "merged".into(),
        recorded: sum(|s| s.recorded),
        lost: sum(|s| s.lost),
        torn: 0,
        threads_measured: sum(|s| s.threads_measured),
        calls_unmeasured: Some(0),
        attach_pause_ns: Vec::new(),
        detach_pause_ns: Vec::new(),
        recorder_cpu_ns: cpu.into_iter().sum(),
        notes,
    }
}
