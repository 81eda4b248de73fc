//! A blocking round trip without hooks, with them, and without them again.
use super::traffic::{HEADERS, Route};
use super::{Bench, REGIONS};
use crate::Settings;
use crate::error::Result;
use hopscope_compare::comparison::{Added, Comparison};
use hopscope_compare::interleave::{Runs, Side, interleave};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;

const FRAMES: [u32; 5] = [64, 256, 512, 1024, 1518];
const FRAMES_QUICK: [u32; 2] = [64, 1518];

/// Bytes of a frame, with its checksum.
pub(crate) fn frames(settings: &Settings) -> &'static [u32] {
    settings.pick(&FRAMES_QUICK[1..], &FRAMES_QUICK, &FRAMES)
}

/// A: nothing attached, B: attached. Times in ns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Size {
    pub(crate) frame_bytes: u32,
    /// Medians of the round trips of each window.
    pub(crate) rtt: Comparison,
    pub(crate) rtt_added: Added,
    /// B with what the calibration of that run says of its hits taken off.
    pub(crate) rtt_corrected: Comparison,
    /// Means: what others took of the processors is in there too.
    pub(crate) rtt_mean: Comparison,
    /// Processor time of the asking process for each round trip: half of what both ends take.
    pub(crate) cpu_added: Added,
    pub(crate) packets_per_round_trip: f64,
    pub(crate) ns_per_packet: f64,
    pub(crate) hits_per_packet: f64,
    pub(crate) clock_only_hit_ns: Spread,
    pub(crate) tau_o_ns: Spread,
    /// What the tool says of itself, beside `ns_per_packet`, which is seen from outside.
    pub(crate) said_added_ns_per_packet: Spread,
    pub(crate) slices_vs_whole_percent: Spread,
    /// Of all attached windows.
    pub(crate) packets: f64,
    pub(crate) records_lost: f64,
}

/// Of the attached windows.
#[derive(Default)]
struct Attached {
    packets_per_round_trip: Vec<f64>,
    hits: Vec<f64>,
    clock_only: Vec<f64>,
    tau_o: Vec<f64>,
    said: Vec<f64>,
    off: Vec<f64>,
    packets: f64,
    lost: f64,
}

pub(crate) fn measure(bench: &mut Bench<'_, '_>, frame_bytes: u32) -> Result<Size> {
    let route = Route::cable()?;
    let mut connection = route.connect(&bench.programs, frame_bytes - HEADERS)?;
    let filter = format!("tcp port {}", connection.port());
    let (mut mean, mut cpu, mut corrected) = (Runs::default(), Runs::default(), Runs::default());
    let mut seen = Attached::default();
    let (rounds, milliseconds) = (bench.rounds, bench.milliseconds);
    let rtt = interleave(rounds, |round, side| {
        if side == Side::A {
            bench.say(&format!("round trips of {frame_bytes} B"), round);
        }
        let hooks = match side {
            Side::B => Some(bench.slicer.attach(REGIONS, &[], &filter)?),
            Side::A | Side::Control => None,
        };
        let window = connection.run(milliseconds)?;
        let mut correction_ns = 0.0;
        if let Some(hooks) = hooks {
            let closing = hooks.detach()?;
            let packets = closing.packets()?;
            let per_trip = packets / window.all_round_trips;
            let hits = closing.hits_per_packet()?;
            let tau_o = closing.number("calibration/tau_o/mode")?;
            correction_ns = per_trip * hits * tau_o;
            seen.packets_per_round_trip.push(per_trip);
            seen.hits.push(hits);
            seen.clock_only
                .push(closing.number("calibration/clock_only_hit/mode")?);
            seen.tau_o.push(tau_o);
            let created = closing.number("summary/counters/created")?;
            seen.said
                .push(closing.number("cost/total_ns")? / created.max(1.0));
            seen.off.push(closing.slices_off_percent()?);
            seen.packets += packets;
            seen.lost += closing.lost()?;
        }
        mean.push(side, window.mean_ns);
        cpu.push(side, window.cpu_ns);
        corrected.push(side, window.p50_ns - correction_ns);
        bench.sample(json!({
            "what": "round_trip", "frame_bytes": frame_bytes, "round": round, "side": side,
            "p50_ns": window.p50_ns, "mean_ns": window.mean_ns, "cpu_ns": window.cpu_ns,
            "round_trips": window.round_trips, "correction_ns": correction_ns,
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
    let packets_per_round_trip = of(&seen.packets_per_round_trip)?.median;
    Ok(Size {
        frame_bytes,
        rtt: Comparison::of(&rtt)?,
        rtt_added,
        rtt_corrected: Comparison::of(&corrected)?,
        rtt_mean: Comparison::of(&mean)?,
        cpu_added: Added::of(&cpu)?,
        packets_per_round_trip,
        ns_per_packet: rtt_added.added.estimate / packets_per_round_trip,
        hits_per_packet: of(&seen.hits)?.median,
        clock_only_hit_ns: of(&seen.clock_only)?,
        tau_o_ns: of(&seen.tau_o)?,
        said_added_ns_per_packet: of(&seen.said)?,
        slices_vs_whole_percent: of(&seen.off)?,
        packets: seen.packets,
        records_lost: seen.lost,
    })
}

impl Size {
    /// Cost of a packet over that of as many hits that read the clock and do nothing else.
    pub(crate) fn cost_vs_clock_only(&self) -> f64 {
        self.ns_per_packet / (self.hits_per_packet * self.clock_only_hit_ns.median)
    }

    pub(crate) fn rtt_overhead_percent(&self) -> f64 {
        100.0 * (self.rtt.ratio.estimate - 1.0)
    }

    /// Of the corrected round trip, whichever its sign.
    pub(crate) fn corrected_error_percent(&self) -> f64 {
        100.0 * (self.rtt_corrected.ratio.estimate - 1.0).abs()
    }

    /// The largest difference that A shows against itself.
    pub(crate) fn aa_band_percent(&self) -> f64 {
        let control = self.rtt.control_ratio;
        100.0 * (1.0 - control.low).abs().max((control.high - 1.0).abs())
    }
}
