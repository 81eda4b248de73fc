//! The summary of `bench vnet`: headline figures against their goals, the source's claims beside what was
//! measured, and where two-end aggregation does not win.
use super::compared::Networks;
use super::load::Load;
use super::policy::{ADAPTIVE, AHC, EVENT_IDX, OF_KICKS, PLAIN, TAM};
use super::ratio::{estimate, interval, reaches};
use super::rings::{Measured, Rings, Row};
use super::table;
use crate::goal::Goal;
use hopscope_compare::comparison::Ratio;
use hopscope_compare::output::Summary;
use serde::Serialize;
use serde_json::{Map, Value, json};

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
    pub(super) adaptive_vs_best_fixed: Option<Ratio>,
    pub(super) adaptive_latency_vs_plain_1kpps: Option<Ratio>,
    pub(super) ahc_latency_vs_plain_1kpps: Option<Ratio>,
    pub(super) claims: Vec<Claim>,
    pub(super) tam_does_not_win: Vec<NoWin>,
    pub(super) goals: Vec<Goal>,
}

impl Headline {
    fn of(rings: &Rings, networks: &Networks) -> Headline {
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

pub(super) fn summary(rings: &Rings, networks: &Networks) -> Summary {
    let headline = Headline::of(rings, networks);
    let (queues, rows) = (rings.rows(), networks.rows());
    let h = &headline;
    let fields = [
        ("adaptive_vs_best_fixed", estimate(h.adaptive_vs_best_fixed)),
        (
            "adaptive_vs_best_fixed_interval",
            interval(h.adaptive_vs_best_fixed),
        ),
        ("best_fixed", json!(h.best_fixed)),
        (
            "adaptive_latency_vs_plain_1kpps",
            estimate(h.adaptive_latency_vs_plain_1kpps),
        ),
        (
            "ahc_latency_vs_plain_1kpps",
            estimate(h.ahc_latency_vs_plain_1kpps),
        ),
        (
            "kicks_per_packet",
            by_policy(&queues, |row| row.kicks_per_packet.median),
        ),
        (
            "calls_per_packet",
            by_policy(&queues, |row| row.calls_per_packet.median),
        ),
        ("tam_over_ahc", json!(h.claims)),
        ("tam_does_not_win", json!(h.tam_does_not_win)),
        ("goals", json!(h.goals)),
        ("rings", json!(queues)),
        ("networks", json!(rows)),
    ];
    let mut map = Map::new();
    map.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Summary {
        unit: json!({
            "_us": "us", "_ns": "ns", "_ns_per_packet": "ns", "_vs_": "ratio", "_per_packet": "1",
            "packets_per_s": "1/s", "us": "%", "sy": "%", "id": "%", "wa": "%", "in": "1/s", "cs": "1/s",
        }),
        fields: map,
        complete: h.adaptive_vs_best_fixed.is_some()
            && h.adaptive_latency_vs_plain_1kpps.is_some()
            && !rows.is_empty(),
        table: table::all(&headline, &queues, &rows),
    }
}

/// By policy, then by packets offered a second.
fn by_policy(rows: &[Row], what: fn(&Row) -> f64) -> Value {
    let loads = |name: &str| {
        let rows = rows.iter().filter(|row| row.policy.name == name);
        let loads: Map<String, Value> = rows
            .map(|row| (row.offered.clone(), json!(what(row))))
            .collect();
        Value::Object(loads)
    };
    let policies = OF_KICKS.iter();
    let all: Map<String, Value> = policies
        .map(|policy| (policy.name.to_owned(), loads(policy.name)))
        .collect();
    Value::Object(all)
}
