//! The summary of `bench vnet-guest`.
use super::compared::Row;
use super::device::POLICIES;
use super::headline::{Figures, Headline, Over};
use super::table;
use super::traffic::{INTO_LARGE, OUT_LARGE, Traffic};
use crate::ratio::{estimate, interval};
use hopscope_compare::output::Summary;
use serde_json::{Map, Value, json};

pub(super) fn summary(figures: Figures) -> Summary {
    let headline = Headline::of(&figures);
    let rows = figures.runs.rows();
    let h = &headline;
    let worst = h.tcp_worst.as_ref();
    let recovery_ms = figures.recovery.as_ref().map(|recovery| {
        json!({"sigterm": recovery.sigterm.median(), "sigkill": recovery.sigkill.median()})
    });
    let fields = json!({
        "guest_tx_calls_fewer": estimate(h.tx_calls_fewer),
        "guest_tx_calls_fewer_interval": interval(h.tx_calls_fewer),
        "guest_rx_calls_fewer": estimate(h.rx_calls_fewer),
        "guest_rx_calls_fewer_interval": interval(h.rx_calls_fewer),
        "guest_calls_fewer": h.calls_fewer,
        "guest_tcp_worst_ratio": estimate(worst.and_then(|row| row.ratio)),
        "guest_tcp_worst_ratio_interval": interval(worst.and_then(|row| row.ratio)),
        "guest_tcp_worst": worst.map(Over::name),
        "guest_tcp_vs_each": h.tcp,
        "defer_kicks_vs_event_idx": estimate(h.defer_kicks),
        "defer_kicks_vs_event_idx_interval": interval(h.defer_kicks),
        "recovery_ms": recovery_ms,
        "recovery": figures.recovery,
        "batching_does_not_win": h.does_not_win,
        "goals": h.goals,
        "policies": POLICIES,
        "calls_per_packet": by_policy(&rows),
        "emulated": figures.accelerator.is_emulated(),
        "guest_kernel": figures.guest_kernel,
        "guest_clock": figures.guest_clock,
        "guest": rows,
        "left_out": figures.left_out(),
        "not_measured": figures.not_measured,
    });
    Summary {
        unit: json!({
            "_us": "us", "_ms": "ms", "_ns_per_packet": "ns", "_vs_": "ratio", "_fewer": "ratio",
            "_ratio": "ratio", "_per_packet": "1", "kicks": "1/packet", "calls": "1/packet",
        }),
        fields,
        complete: h.tx_calls_fewer.is_some()
            && h.rx_calls_fewer.is_some()
            && h.tcp_worst.is_some()
            && h.defer_kicks.is_some()
            && figures.recovery.is_some()
            && figures.not_measured.is_empty(),
        table: table::all(&figures, &headline, &rows),
    }
}

/// Where a stream fills the queue, without offloads.
fn by_policy(rows: &[Row]) -> Value {
    let of = |name: &str, traffic: Traffic, what: fn(&Row) -> Option<f64>| {
        let is = |row: &&Row| row.policy.name == name && row.load == traffic.name() && !row.offload;
        json!(rows.iter().find(is).and_then(what))
    };
    let policy = |name: &str| {
        json!({
            "tx": of(name, OUT_LARGE, |row| row.tx.calls),
            "rx": of(name, INTO_LARGE, |row| row.rx.calls),
        })
    };
    let all: Map<String, Value> = POLICIES
        .iter()
        .map(|p| (p.name.to_owned(), policy(p.name)))
        .collect();
    Value::Object(all)
}

#[cfg(test)]
mod tests;
