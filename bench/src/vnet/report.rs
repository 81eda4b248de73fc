//! The summary of `bench vnet`.
use super::compared::Networks;
use super::headline::Headline;
use super::policy::OF_KICKS;
use super::rings::{Rings, Row};
use super::table;
use crate::ratio::{estimate, interval};
use hopscope_compare::output::Summary;
use serde_json::{Map, Value, json};

pub(super) fn summary(rings: &Rings, networks: &Networks) -> Summary {
    let headline = Headline::of(rings, networks);
    let (queues, rows) = (rings.rows(), networks.rows());
    let h = &headline;
    let fields = json!({
        "adaptive_vs_best_fixed": estimate(h.adaptive_vs_best_fixed),
        "adaptive_vs_best_fixed_interval": interval(h.adaptive_vs_best_fixed),
        "best_fixed": h.best_fixed,
        "adaptive_latency_vs_plain_1kpps": estimate(h.adaptive_latency_vs_plain_1kpps),
        "ahc_latency_vs_plain_1kpps": estimate(h.ahc_latency_vs_plain_1kpps),
        "kicks_per_packet": by_policy(&queues, |row| row.kicks_per_packet.median),
        "calls_per_packet": by_policy(&queues, |row| row.calls_per_packet.median),
        "tam_over_ahc": h.claims,
        "tam_does_not_win": h.tam_does_not_win,
        "goals": h.goals,
        "rings": queues,
        "networks": rows,
    });
    Summary {
        unit: json!({
            "_us": "us", "_ns": "ns", "_ns_per_packet": "ns", "_vs_": "ratio", "_per_packet": "1",
            "packets_per_s": "1/s", "us": "%", "sy": "%", "id": "%", "wa": "%", "in": "1/s", "cs": "1/s",
        }),
        fields,
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
