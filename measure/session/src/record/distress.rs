//! What a recording ends at once for: `--detach-on`, `--heartbeat`, `--max-loss`.
use super::RecordRequest;
use super::sampling::named;
use super::trigger::When;
use crate::error::{Context, Error, Result, refuse};
use hopscope_event::{FunctionId, TscFrequency};
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::governor::{Governor, Heartbeat};
use hopscope_probe::recorder::trigger::Trigger;
use std::fs;

/// # Errors
/// What is not measured cannot be watched, and a file that is not there does not beat.
pub(super) fn governor(
    request: &RecordRequest,
    plan: &Plan,
    roots: &[FunctionId],
    frequency: TscFrequency,
) -> Result<Governor> {
    let asked = &request.distress;
    let slow = asked.calls.iter().map(|text| {
        let failed = || format!("--detach-on {text:?}");
        let (functions, over) = match When::parse(text) {
            Ok(When::Call { function, over }) => {
                (named(plan, &function).with_context(failed)?, over)
            }
            Ok(When::Packet { over }) if !roots.is_empty() => (roots.to_vec(), over),
            Ok(When::Packet { .. }) => refuse!(
                "--detach-on {text:?}: a packet's time is that of the run that handles it; say what a run begins with: --root FUNCTION"
            ),
            Ok(When::Signal | When::Exit) | Err(_) => refuse!(
                "--detach-on {text:?}: write 'FUNCTION > 5ms' or 'packet > 5ms', with a unit"
            ),
        };
        Ok(Trigger {
            text: text.clone(),
            functions,
            ticks: frequency.ticks(over),
        })
    });
    let heartbeat = asked.heartbeat.as_ref().map(|(file, within)| {
        let there = fs::metadata(file);
        there.with_context(|| format!("--heartbeat {}", file.display()))?;
        Ok::<_, Error>(Heartbeat {
            file: file.clone(),
            within: *within,
        })
    });
    Ok(Governor {
        max_loss_percent: asked.max_loss_percent,
        heartbeat: heartbeat.transpose()?,
        slow_calls: slow.collect::<Result<_>>()?,
    })
}
