//! Both ends of the queues in one file: two recordings of one machine, each of another end.
use hopscope_event::{ClockSync, RecordingMeta, Summary};
use hopscope_trace::{RecordBatch, Stamps, TraceError, TraceReader, TraceWriter};
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

/// Clocks of one boot differ by what a measured frequency is off, over the time between the beginnings.
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
    if meta.host != other.host || apart_ns(meta, other) > APART_MAX_NS {
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
            writer.records(RecordBatch {
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

/// How far the kernel's clock at the beginning of `b` is from where the first recording's clocks expect it. Between
/// the two beginnings only: over a long uptime the least error of the frequency is seconds.
fn apart_ns(a: &RecordingMeta, b: &RecordingMeta) -> u64 {
    let ticks = b.start.tsc.0.wrapping_sub(a.start.tsc.0).cast_signed();
    let between = a.tsc_frequency.ns(ticks);
    let expected = a.start.monotonic_ns.wrapping_add_signed(between);
    expected.abs_diff(b.start.monotonic_ns)
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
        stops: Default::default(),
        recorder_cpu_ns: cpu.into_iter().sum(),
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::{Tsc, TscFrequency};

    fn meta(hz: u64, seconds: u64, booted_later: u64) -> RecordingMeta {
        let start = ClockSync {
            tsc: Tsc(seconds * 2_600_000_000),
            monotonic_ns: (seconds - booted_later) * 1_000_000_000,
            realtime_ns: 0,
            window_ticks: 40,
        };
        RecordingMeta {
            hopscope_version: String::new(),
            command_line: Vec::new(),
            host: "gateway".into(),
            kernel: String::new(),
            cpu: String::new(),
            cpus_online: 2,
            tsc_frequency: TscFrequency(hz),
            tsc_invariant: true,
            start,
            stride: 16,
            ring_records: 0,
            probe_cost: None,
        }
    }

    #[test]
    fn a_machine_that_is_up_for_a_year_is_one_machine() {
        let year = 365 * 24 * 3_600;
        // The frequency is 20 millionths off: ten minutes in a year.
        let a = meta(2_600_052_000, year, 0);
        for later in [year + 3, year - 3, year + 3_600] {
            let apart = apart_ns(&a, &meta(2_600_000_000, later, 0));
            assert!(apart < APART_MAX_NS, "{apart} ns");
        }
        assert!(apart_ns(&a, &meta(2_600_000_000, year + 60, 30)) > APART_MAX_NS);
    }
}
