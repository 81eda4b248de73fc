//! How a recording ends: its file, and its closing words.
use super::flight::Saved;
use super::one_file::{Drained, OneFile, records_in};
use super::{RecordRequest, summary};
use crate::error::{Result, refuse};
use hopscope_event::table::{Stops, TargetStops};
use hopscope_event::{BudgetEntry, CostCheckEntry, RecordingMeta, Summary};
use hopscope_probe::counters::clock_sync;
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::Ended;
use hopscope_probe::recorder::flight::FlightCounts;
use hopscope_process::Launched;

/// What came of a session.
#[derive(Debug, Default)]
pub struct Finished {
    /// It ended before its time, or left something in a target: the words said which.
    pub incomplete: bool,
    /// The command that was started.
    pub child: Option<Launched>,
}

/// What came of a recording.
pub(super) struct Recorded {
    pub drained: Drained,
    /// `None` of a flight recorder, which has written its own.
    pub file: Option<OneFile>,
    pub flight: Option<(FlightCounts, Saved)>,
}

/// Writes the end of the file and says what happened. True as of [`Finished::incomplete`].
pub(super) fn finish(
    request: &RecordRequest,
    recorded: Recorded,
    attach_stops: Vec<TargetStops>,
    plan: &Plan,
    meta: &RecordingMeta,
    checked: Option<CostCheckEntry>,
    mut budget: Option<BudgetEntry>,
) -> Result<bool> {
    let Recorded {
        drained,
        file,
        flight,
    } = recorded;
    let Drained {
        mut outcome,
        thin,
        slices,
    } = drained;
    if let Some(budget) = &mut budget {
        budget.left_out.append(&mut outcome.left_out);
    }
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
            dlopen: outcome.dlopen_stops,
            detach: outcome.detach_stops,
            real_time_refused: hopscope_process::real_time_was_refused(),
        },
        recorder_cpu_ns: Some(ns(cpu.user_time()) + ns(cpu.system_time())),
        notes: outcome.notes,
    };
    let off_cpu = outcome.off_cpu.as_ref();
    let (mut bytes, mut written) = (0, Ok(()));
    if let Some(mut file) = file {
        let writer = &mut file.writer;
        let noted = off_cpu.map_or(Ok(()), |entry| writer.off_cpu(entry));
        let noted = noted.and(thin.as_ref().map_or(Ok(()), |entry| writer.thin(entry)));
        let noted = noted.and(checked.as_ref().map_or(Ok(()), |c| writer.cost_check(c)));
        bytes = writer.bytes_written();
        if let Ended::WriteFailed(_) = outcome.ended {
            let there = writer.get_mut().get_ref().metadata();
            bytes = there.map_or(bytes, |m| m.len().min(bytes));
        }
        written = noted.map_err(Into::into).and(file.close(request, &summary));
    }
    let records_in_file = match outcome.ended {
        Ended::WriteFailed(_) => records_in(&request.output),
        _ => None,
    };
    let end = summary::AtEnd {
        bytes,
        records_in_file,
        off_cpu,
        cost_check: checked.as_ref(),
        choice: summary::KeptPart {
            thin: thin.as_ref(),
            budget: budget.as_ref(),
            flight: flight.as_ref().map(summary::Flight::of),
        },
        slices: slices.as_ref(),
    };
    summary::Closing::new(request, &summary, plan, meta, end).print(request)?;
    if let Ended::WriteFailed(_) = outcome.ended {
        refuse!("{}; the targets were restored", outcome.ended);
    }
    written?;
    let is_restored = outcome.not_restored.is_empty() && outcome.not_unmapped.is_empty();
    let is_early = matches!(
        outcome.ended,
        Ended::Overhead { .. } | Ended::Distress(_) | Ended::MayUnwind(_) | Ended::NotLeftOut(_)
    );
    Ok(is_early || !is_restored)
}
