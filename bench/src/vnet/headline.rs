//! Headline figures of `bench vnet`: against their goals, beside what the source claims, and where two-end
//! aggregation does not win.
use super::compared::Networks;
use super::load::Load;
use super::policy::{ADAPTIVE, AHC, EVENT_IDX, PLAIN, TAM};
use super::rings::{Measured, Rings};
use crate::goal::Goal;
use crate::ratio::reaches;
use hopscope_compare::median::Interval;
use serde::Serialize;

/// What the source says of TAM over AHC, and what is measured here.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Claim {
    pub(super) of: &'static str,
    pub(super) claimed: f64,
    pub(super) measured: Option<f64>,
}

/// How much TAM has over a policy that needs no aggregation, where it does not win: near or below 1.
#[derive(Debug, Clone, Serialize)]
pub(super) struct NoWin {
    pub(super) at: &'static str,
    pub(super) ratio: Option<f64>,
}

pub(super) struct Headline {
    pub(super) best_fixed: Option<&'static str>,
    pub(super) adaptive_vs_best_fixed: Option<Interval>,
    pub(super) adaptive_latency_vs_plain_1kpps: Option<Interval>,
    pub(super) ahc_latency_vs_plain_1kpps: Option<Interval>,
    pub(super) claims: Vec<Claim>,
    pub(super) tam_does_not_win: Vec<NoWin>,
    pub(super) goals: Vec<Goal>,
}

impl Headline {
    pub(super) fn of(rings: &Rings, networks: &Networks) -> Headline {
        let best_fixed = rings.best_fixed();
        let vs_best = best_fixed.and_then(|best| rings.rates(ADAPTIVE, best));
        let at_1kpps = rings.latency_at_1kpps(ADAPTIVE);
        let over = |load, offload, of, to| Some(networks.ratio(load, offload, of, to)?.median);
        let claim = |of, claimed, load| Claim {
            of,
            claimed,
            measured: over(load, false, TAM, AHC),
        };
        let at_most = |name, measured, goal| Goal::at_most(name, measured, goal);
        // The interval reaches it where there is one; a few rounds have none.
        let reached = vs_best.map(reaches);
        Headline {
            best_fixed,
            adaptive_vs_best_fixed: vs_best,
            adaptive_latency_vs_plain_1kpps: at_1kpps,
            ahc_latency_vs_plain_1kpps: rings.latency_at_1kpps(AHC),
            claims: vec![
                claim("throughput, TCP_STREAM 64 B", 1.0576, Load::Stream(64)),
                claim(
                    "throughput, TCP_STREAM 32768 B",
                    1.0576,
                    Load::Stream(32768),
                ),
                claim("TCP_RR", 1.0439, Load::Rr),
                claim("TCP_CRR", 1.0432, Load::Crr),
                // A latency 46.2 % shorter is so many times the round trips.
                claim("round trips of ping", 1.0 / (1.0 - 0.462), Load::Ping(56)),
            ],
            tam_does_not_win: vec![
                NoWin {
                    at: "one queue saturated, over event-idx",
                    ratio: rings.rates(TAM, EVENT_IDX).map(|r| r.estimate),
                },
                NoWin {
                    at: "one request outstanding (TCP_RR), over plain",
                    ratio: over(Load::Rr, false, TAM, PLAIN),
                },
                NoWin {
                    at: "TCP_STREAM 64 B, over event-idx",
                    ratio: over(Load::Stream(64), false, TAM, EVENT_IDX),
                },
                NoWin {
                    at: "TCP_STREAM 32768 B with segmentation left undone, over event-idx",
                    ratio: over(Load::Stream(32768), true, TAM, EVENT_IDX),
                },
            ],
            goals: vec![
                Goal::at_least("adaptive_vs_best_fixed (interval reaches)", reached, 0.97),
                at_most(
                    "adaptive_latency_vs_plain_1kpps",
                    at_1kpps.map(|r| r.estimate),
                    1.05,
                ),
                at_most(
                    "adaptive_p50_vs_plain, worst load",
                    rings.worst(ADAPTIVE, PLAIN, Measured::P50),
                    1.0,
                ),
                at_most(
                    "adaptive_kicks_vs_tam, worst load",
                    rings.worst(ADAPTIVE, TAM, Measured::Kicks),
                    1.0,
                ),
                at_most(
                    "runs in which both ends' counts differ",
                    Some(rings.disagreements() as f64),
                    0.0,
                ),
                at_most("failures", Some(networks.failures()), 0.0),
            ],
        }
    }
}
