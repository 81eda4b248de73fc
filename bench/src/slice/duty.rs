//! Hooks that are attached for one of sixteen windows only: what is left of their cost.
use super::traffic::{HEADERS, Route};
use super::{Bench, REGIONS};
use crate::error::Result;
use hopscope_compare::comparison::Comparison;
use hopscope_compare::interleave::{Runs, Side, interleave};
use serde::Serialize;
use serde_json::json;

const DUTY: &str = "1/16";
/// Of the tool: one window of 50 ms, and fifteen without.
const PERIOD_MS: u64 = 800;
const FRAME_BYTES: u32 = 64;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Duty {
    pub(crate) duty: &'static str,
    /// Medians of the round trips of each run. Hooks move one round trip in sixteen by less than
    /// round trips vary, and the median by a sixteenth of that.
    pub(crate) rtt: Comparison,
    pub(crate) rtt_mean: Comparison,
    /// Share of the time that hooks were attached, as the tool itself says.
    pub(crate) attached_share: f64,
}

impl Duty {
    pub(crate) fn overhead_percent(&self) -> f64 {
        100.0 * (self.rtt.ratio.estimate - 1.0)
    }
}

pub(crate) fn measure(bench: &mut Bench<'_, '_>) -> Result<Duty> {
    let route = Route::cable()?;
    let mut connection = route.connect(&bench.programs, FRAME_BYTES - HEADERS)?;
    let filter = format!("tcp port {}", connection.port());
    let milliseconds = if bench.settings.quick {
        PERIOD_MS
    } else {
        2 * PERIOD_MS
    };
    let mut mean = Runs::default();
    let (mut attached_ns, mut duration_ns) = (0.0, 0.0);
    let rtt = interleave(bench.rounds, |round, side| {
        if side == Side::A {
            bench.say("hooks attached for a sixteenth of the time", round);
        }
        let hooks = match side {
            Side::B => Some(bench.slicer.attach(REGIONS, &["--duty", DUTY], &filter)?),
            Side::A | Side::Control => None,
        };
        let window = connection.run(milliseconds)?;
        if let Some(hooks) = hooks {
            let closing = hooks.detach()?;
            attached_ns += closing.number("summary/attached_ns")?;
            duration_ns += closing.number("summary/duration_ns")?;
        }
        mean.push(side, window.mean_ns);
        bench.sample(json!({
            "what": "duty", "round": round, "side": side, "p50_ns": window.p50_ns,
            "mean_ns": window.mean_ns, "round_trips": window.round_trips,
        }))?;
        Ok::<_, crate::error::Error>(window.p50_ns)
    })?;
    Ok(Duty {
        duty: DUTY,
        rtt: Comparison::of(&rtt)?,
        rtt_mean: Comparison::of(&mean)?,
        attached_share: attached_ns / duration_ns,
    })
}
