//! What hooks add to a packet, without what sleeping and waking add to a round trip: both ends of a
//! connection over the cable are held by one thread on one processor, which never waits.
use super::traffic::{HEADERS, Route};
use super::{Bench, REGIONS};
use crate::error::Result;
use hopscope_compare::comparison::{Added, Comparison};
use hopscope_compare::interleave::{Runs, Side, interleave};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;

const FRAME_BYTES: u32 = 64;

/// A: nothing attached, B: attached. Times in ns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct OneCore {
    /// Medians of the round trips of each window.
    pub(crate) rtt: Comparison,
    pub(crate) rtt_added: Added,
    /// B without what the tool says that its hooks added.
    pub(crate) rtt_corrected: Comparison,
    pub(crate) packets_per_round_trip: f64,
    pub(crate) ns_per_packet: f64,
    pub(crate) hits_per_packet: f64,
    pub(crate) clock_only_hit_ns: Spread,
    pub(crate) said_added_ns_per_packet: Spread,
}

pub(crate) fn measure(bench: &mut Bench<'_, '_>) -> Result<OneCore> {
    let route = Route::cable()?;
    let mut connection = route.connect_on_one_core(&bench.programs, FRAME_BYTES - HEADERS)?;
    let filter = format!("tcp port {}", connection.port());
    let mut corrected = Runs::default();
    let (mut trips, mut hits) = (Vec::new(), Vec::new());
    let (mut clock_only, mut said) = (Vec::new(), Vec::new());
    let (rounds, milliseconds) = (bench.rounds, bench.milliseconds);
    let rtt = interleave(rounds, |round, side| {
        if side == Side::A {
            bench.say("round trips on one processor", round);
        }
        let hooks = match side {
            Side::B => Some(bench.slicer.attach(REGIONS, &[], &filter)?),
            Side::A | Side::Control => None,
        };
        let window = connection.run(milliseconds)?;
        let mut added_ns = 0.0;
        if let Some(hooks) = hooks {
            let closing = hooks.detach()?;
            // Each record and each loss was a packet that the hooks saw.
            let packets = closing.packets()? + closing.lost()?;
            let per_trip = packets / window.all_round_trips;
            let created = closing.number("summary/counters/created")?;
            let said_ns = closing.number("cost/total_ns")? / created.max(1.0);
            added_ns = per_trip * said_ns;
            trips.push(per_trip);
            hits.push(closing.number("summary/counters/hits")? / packets);
            clock_only.push(closing.number("calibration/clock_only_hit/mode")?);
            said.push(said_ns);
        }
        corrected.push(side, window.p50_ns - added_ns);
        bench.sample(json!({
            "what": "one_core", "round": round, "side": side, "p50_ns": window.p50_ns,
            "round_trips": window.round_trips, "added_ns": added_ns,
        }))?;
        Ok::<_, crate::error::Error>(window.p50_ns)
    })?;
    let of = |values: &[f64]| {
        let nothing = crate::error::Error::Nothing {
            what: "attached windows",
        };
        Spread::of(values).ok_or(nothing)
    };
    let rtt_added = Added::of(&rtt)?;
    let packets_per_round_trip = of(&trips)?.median;
    Ok(OneCore {
        rtt: Comparison::of(&rtt)?,
        rtt_added,
        rtt_corrected: Comparison::of(&corrected)?,
        packets_per_round_trip,
        ns_per_packet: rtt_added.added.estimate / packets_per_round_trip,
        hits_per_packet: of(&hits)?.median,
        clock_only_hit_ns: of(&clock_only)?,
        said_added_ns_per_packet: of(&said)?,
    })
}

impl OneCore {
    pub(crate) fn cost_vs_clock_only(&self) -> f64 {
        self.ns_per_packet / (self.hits_per_packet * self.clock_only_hit_ns.median)
    }

    /// Of the corrected round trip, whichever its sign.
    pub(crate) fn corrected_error_percent(&self) -> f64 {
        100.0 * (self.rtt_corrected.ratio.estimate - 1.0).abs()
    }
}
