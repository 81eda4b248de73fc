//! `record --check-cost`: what a call costs in the recorded program itself.
use hopscope_analyze::in_place::{Known, Window, estimate};
use hopscope_analyze::parse_span_ns;
use hopscope_event::{CostCheckEntry, InPlaceCost, RecordingMeta};
use hopscope_probe::recorder::RecorderResult;
use hopscope_probe::recorder::alternate::{Alternation, Turn};
use std::time::Duration;

/// Long beside what a program does in turns, short beside what it does in the course of a second.
const WINDOW: Duration = Duration::from_millis(10);
/// Ctrl-C ends a recording; what follows must not take for ever.
const LONGEST: Duration = Duration::from_secs(60);

/// For the command line: a time that is worth it, and that one can wait for.
///
/// # Errors
/// It is no time, or too short, or too long.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let time = parse_span_ns(text).map_err(|why| why.to_string())?;
    let time = Duration::from_nanos(time.0);
    if (10 * WINDOW..=LONGEST).contains(&time) {
        Ok(time)
    } else {
        Err(format!("from {:?} to {LONGEST:?}", 10 * WINDOW))
    }
}

pub(super) fn alternation(asked: Option<Duration>) -> Option<Alternation> {
    asked.map(|lasts| Alternation {
        lasts,
        window: WINDOW,
    })
}

/// `None`: not asked for.
pub(super) fn found(
    asked: Option<Duration>,
    outcome: &RecorderResult,
    meta: &RecordingMeta,
    off_ticks: Option<[u64; 3]>,
) -> Option<CostCheckEntry> {
    asked?;
    let (in_place, why_not) = match in_place(outcome, meta, off_ticks) {
        Ok(cost) => (Some(cost), None),
        Err(why) => (None, Some(why)),
    };
    Some(CostCheckEntry {
        in_place,
        why_not,
        window_ns: WINDOW.as_nanos() as u64,
        off_ticks: off_ticks.unwrap_or_default(),
        functions_not_switched: outcome.functions_not_switched,
    })
}

fn in_place(
    outcome: &RecorderResult,
    meta: &RecordingMeta,
    off_ticks: Option<[u64; 3]>,
) -> Result<InPlaceCost, String> {
    let (Some(cost), Some(off_ticks)) = (meta.probe_cost, off_ticks) else {
        return Err("the cost in a loop is not known".into());
    };
    let Some(alternated) = &outcome.alternated else {
        return Err(format!("the recording ended first: {}", outcome.ended));
    };
    if alternated.unmeasured > 0 {
        return Err(format!(
            "{} calls of threads without a ring meanwhile (--threads)",
            alternated.unmeasured
        ));
    }
    let windows: Vec<Window> = alternated.turns.iter().map(window).collect();
    let known = Known {
        in_a_loop: cost.pair_ticks.map(|ticks| ticks as f64),
        most: cost.memory_bound.map(|most| most.pair_ticks as f64),
        off: off_ticks.map(|ticks| ticks as f64),
    };
    let found = estimate(&windows, &known).map_err(|e| match alternated.without_clock {
        0 => e.to_string(),
        n => format!("{e}; of {n} threads the kernel does not tell the processor time"),
    })?;
    let [low, middle, high] = found.call_ticks;
    Ok(InPlaceCost {
        call_ticks: [low.floor(), middle.round(), high.ceil()].map(|ticks| ticks as u64),
        pairs: found.pairs as u32,
        not_switched_per_mille: (10.0 * found.not_switched_percent).round() as u32,
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
    let mut text = match (entry.in_place, &entry.why_not) {
        (Some(found), _) => format!(
            "in the program itself a call costs {} ticks ({}..{}), by {} pairs of windows with probes and without",
            found.call_ticks[1], found.call_ticks[0], found.call_ticks[2], found.pairs
        ),
        (None, Some(why)) => format!("cost not measured in the program itself: {why}"),
        (None, None) => "cost not measured in the program itself".into(),
    };
    let functions = entry.functions_not_switched;
    if functions > 0 {
        let calls = entry.in_place.map_or(String::new(), |found| {
            format!(
                " ({:.1} % of the calls)",
                f64::from(found.not_switched_per_mille) / 10.0
            )
        });
        text += &format!("; probes of {functions} functions{calls} cannot be switched off");
    }
    text
}
