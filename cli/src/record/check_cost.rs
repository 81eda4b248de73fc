//! `record --check-cost`: what a call costs in the recorded program itself.
use super::RecordArgs;
use hopscope_analyze::in_place::{Window, estimate};
use hopscope_event::{CostCheckEntry, InPlaceCost, RecordingMeta};
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::Outcome;
use hopscope_probe::recorder::alternate::{Alternation, Turn};
use std::time::Duration;

/// Long beside what a program does in turns, short beside what it does in the course of a second.
const WINDOW: Duration = Duration::from_millis(10);

pub(super) fn alternation(args: &RecordArgs) -> Option<Alternation> {
    args.check_cost.map(|lasts| Alternation {
        lasts,
        window: WINDOW,
    })
}

/// `None`: not asked for.
pub(super) fn found(
    args: &RecordArgs,
    outcome: &Outcome,
    meta: &RecordingMeta,
    off_ticks: Option<[u64; 3]>,
    plan: &Plan,
) -> Option<CostCheckEntry> {
    args.check_cost?;
    let mut entry = CostCheckEntry {
        in_place: None,
        why_not: None,
        window_ns: WINDOW.as_nanos() as u64,
        off_ticks: off_ticks.unwrap_or_default(),
    };
    match in_place(outcome, meta, off_ticks, plan) {
        Ok(cost) => entry.in_place = Some(cost),
        Err(why) => entry.why_not = Some(why),
    }
    Some(entry)
}

fn in_place(
    outcome: &Outcome,
    meta: &RecordingMeta,
    off_ticks: Option<[u64; 3]>,
    plan: &Plan,
) -> Result<InPlaceCost, String> {
    let (Some(cost), Some(off_ticks)) = (meta.probe_cost, off_ticks) else {
        return Err("the cost in a loop is not known".into());
    };
    if !plan.captures.is_empty() {
        return Err("functions with captured values cannot be switched off".into());
    }
    if outcome.turns.is_empty() {
        return Err(format!("no target was there any more: {}", outcome.ended));
    }
    let windows: Vec<Window> = outcome.turns.iter().map(window).collect();
    let off_ticks = off_ticks.map(|ticks| ticks as f64);
    let loop_ticks = cost.pair_ticks[1] as f64;
    let (found, pairs) = estimate(&windows, loop_ticks, off_ticks).map_err(|e| e.to_string())?;
    Ok(InPlaceCost {
        call_ticks: found.map(|ticks| ticks.max(0.0).round() as u64),
        pairs: pairs as u32,
    })
}

fn window(turn: &Turn) -> Window {
    Window {
        thread: turn.thread,
        pair: turn.pair,
        on: turn.on,
        ticks: turn.ticks,
        calls: turn.calls,
        measured: turn.measured,
    }
}

pub(super) fn text(entry: &CostCheckEntry) -> String {
    match (entry.in_place, &entry.why_not) {
        (Some(found), _) => format!(
            "in place a call costs {} ticks ({}…{}), by {} pairs of windows with probes and without",
            found.call_ticks[1], found.call_ticks[0], found.call_ticks[2], found.pairs
        ),
        (None, Some(why)) => format!("not measured in place: {why}"),
        (None, None) => "not measured in place".into(),
    }
}
