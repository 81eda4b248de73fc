//! How a recording ends: its file, its closing words, its exit code.
use super::flight::Saved;
use super::slices::SlicesDone;
use super::{RecordArgs, summary};
use crate::output::Place;
use anyhow::{Context, bail};
use hopscope_event::table::{Stops, TargetStops};
use hopscope_event::{CostCheckEntry, RecordingMeta, Summary, ThinEntry};
use hopscope_probe::counters::clock_sync;
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::flight::FlightCounts;
use hopscope_probe::recorder::{Ended, Outcome};
use hopscope_trace::{TraceReader, TraceWriter};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// What came of a recording.
pub(super) struct Recorded {
    pub outcome: Outcome,
    /// `None` of a flight recorder, which has written its own.
    pub file: Option<(TraceWriter<BufWriter<File>>, Place)>,
    pub thin: Option<ThinEntry>,
    pub flight: Option<(FlightCounts, Saved)>,
    /// `None`: not asked for.
    pub slices: Option<SlicesDone>,
}

/// Writes the end of the file and says what happened.
pub(super) fn finish(
    args: &RecordArgs,
    recorded: Recorded,
    attach_stops: Vec<TargetStops>,
    plan: &Plan,
    meta: &RecordingMeta,
    checked: Option<CostCheckEntry>,
) -> anyhow::Result<ExitCode> {
    let Recorded {
        mut outcome,
        file,
        thin,
        flight,
        slices,
    } = recorded;
    if let Ended::WriteFailed(_) = outcome.ended {
        let note = "the file ends before the recording does: records are counted as they were read, not as they were written";
        outcome.notes.push(note.to_owned());
    }
    let left_out = thin.as_ref().map_or(0, |t| t.records_left_out);
    let cpu = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)?;
    let ns =
        |t: nix::sys::time::TimeVal| t.tv_sec() as u64 * 1_000_000_000 + t.tv_usec() as u64 * 1_000;
    let summary = Summary {
        end: outcome.until.unwrap_or_else(clock_sync),
        ended_because: outcome.ended.to_string(),
        recorded: outcome.counts.recorded - left_out,
        lost: outcome.counts.lost,
        torn: outcome.counts.torn,
        threads_measured: outcome.threads,
        calls_unmeasured: Some(outcome.calls_unmeasured),
        attach_pause_ns: attach_stops.iter().map(|s| s.longest_ns).collect(),
        detach_pause_ns: outcome
            .detach_pauses
            .iter()
            .map(|d| d.as_nanos() as u64)
            .collect(),
        stops: Stops {
            attach: attach_stops,
            detach: outcome.detach_stops,
            real_time_refused: hopscope_process::real_time_was_refused(),
        },
        recorder_cpu_ns: Some(ns(cpu.user_time()) + ns(cpu.system_time())),
        notes: outcome.notes,
    };
    let off_cpu = outcome.off_cpu.as_ref();
    let (mut bytes, mut written) = (0, Ok(()));
    if let Some((mut writer, place)) = file {
        let noted = off_cpu.map_or(Ok(()), |entry| writer.off_cpu(entry));
        let noted = noted.and(thin.as_ref().map_or(Ok(()), |entry| writer.thin(entry)));
        let noted = noted.and(checked.as_ref().map_or(Ok(()), |c| writer.cost_check(c)));
        bytes = writer.bytes_written();
        if let Ended::WriteFailed(_) = outcome.ended {
            let there = writer.get_mut().get_ref().metadata();
            bytes = there.map_or(bytes, |m| m.len().min(bytes));
        }
        written = noted
            .map_err(Into::into)
            .and(close(args, writer, place, &summary));
    }
    let in_file = match outcome.ended {
        Ended::WriteFailed(_) => records_in(&args.output),
        _ => None,
    };
    let choice = summary::Choice {
        in_file,
        thin: thin.as_ref(),
        flight: flight.as_ref(),
        slices: slices.as_ref(),
        checked: checked.as_ref(),
    };
    summary::print(args, &summary, off_cpu, choice, plan, meta, bytes)?;
    if let Ended::WriteFailed(_) = outcome.ended {
        bail!("{}; the targets were restored", outcome.ended);
    }
    written?;
    match outcome.ended {
        Ended::Overhead { .. } | Ended::MayUnwind(_) => Ok(ExitCode::from(1)),
        _ if !(outcome.not_restored.is_empty() && outcome.not_unmapped.is_empty()) => {
            Ok(ExitCode::from(1))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Of a file that could not be written on.
fn records_in(path: &Path) -> Option<u64> {
    // Neither a device nor a pipe is read.
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let reader = is_file.then(|| TraceReader::open(path).ok()).flatten()?;
    let records = reader.heads().map(|head| u64::from(head.records));
    Some(records.sum())
}

fn close(
    args: &RecordArgs,
    writer: TraceWriter<BufWriter<File>>,
    place: Place,
    summary: &Summary,
) -> anyhow::Result<()> {
    let writing = || format!("writing {}", args.output.display());
    let mut buffered = writer.finish(summary).with_context(writing)?;
    buffered.flush().with_context(writing)?;
    if place.is_file() {
        buffered.get_ref().sync_data().with_context(writing)?;
    }
    Ok(place.put()?)
}
