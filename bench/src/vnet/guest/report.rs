//! The summary of `bench vnet-guest`: what batching saves and what it costs, against the goals, and where it does
//! not win.
use super::compared::{Row, Runs, rx_calls, tx_calls, tx_kicks};
use super::device::{ADAPTIVE, BATCH, DEFER, EACH, POLICIES, TAM};
use super::recovery::Recovery;
use super::traffic::{DATAGRAMS, INTO_LARGE, OUT_LARGE, PING, RR, Traffic};
use super::{recovery, table, window};
use crate::goal::Goal;
use crate::rows::NotMeasured;
use crate::vnet::load::Load;
use crate::vnet::ratio::{estimate, interval, reaches};
use hopscope_compare::comparison::Ratio;
use hopscope_compare::output::Summary;
use hopscope_guest::Accelerator;
use serde::Serialize;
use serde_json::{Map, Value, json};

#[derive(Default)]
pub(super) struct Figures {
    pub(super) quick: bool,
    pub(super) accelerator: Accelerator,
    pub(super) guest_kernel: Option<String>,
    pub(super) guest_clock: Option<String>,
    pub(super) runs: Runs,
    pub(super) recovery: Option<Recovery>,
    pub(super) not_measured: Vec<NotMeasured>,
}

/// How much one policy has over another.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Over {
    pub(super) at: String,
    pub(super) offload: bool,
    pub(super) of: &'static str,
    pub(super) to: &'static str,
    #[serde(flatten)]
    pub(super) ratio: Option<Ratio>,
}

pub(super) struct Headline {
    /// Calls a packet of `each` over those of the default, without offloads.
    pub(super) tx_calls_fewer: Option<Ratio>,
    pub(super) rx_calls_fewer: Option<Ratio>,
    /// The same of each stream.
    pub(super) calls_fewer: Vec<Over>,
    /// The default over `each`, in each row of TCP.
    pub(super) tcp: Vec<Over>,
    /// The one whose interval reaches least far.
    pub(super) tcp_worst: Option<Over>,
    pub(super) defer_kicks: Option<Ratio>,
    pub(super) does_not_win: Vec<Over>,
    pub(super) goals: Vec<Goal>,
}

impl Figures {
    /// What was chosen not to be measured, or cannot be here.
    pub(super) fn left_out(&self) -> Vec<NotMeasured> {
        let left_out = |what: &str, reason: String| NotMeasured {
            what: what.into(),
            reason,
        };
        let mut all = vec![
            left_out(
                "policies coal, ahc-window, and other limits",
                "eight devices, so that two share each of the machine's four interrupt lines"
                    .into(),
            ),
            left_out(
                "policies of the guest's own kicks (tam, ahc …)",
                "its driver is as it is: a device only says when it wants a kick".into(),
            ),
            left_out(
                "packed rings, several queues, more processors in the guest",
                "one kind each".into(),
            ),
        ];
        if self.quick {
            let why = "quick: 2 rounds, which have no interval".into();
            all.push(left_out(
                "plain, event-idx; small messages, TCP_CRR, ping",
                why,
            ));
        }
        if let Accelerator::Emulated { reason } = &self.accelerator {
            all.push(left_out(
                "KVM: what exits and interrupts cost there",
                reason.clone(),
            ));
        }
        all
    }
}

impl Headline {
    pub(super) fn of(figures: &Figures) -> Headline {
        let runs = &figures.runs;
        let fewer = |traffic, what: fn(&window::Run) -> f64| {
            runs.ratio(false, traffic, (EACH, BATCH), what)
        };
        let tx_calls_fewer = fewer(OUT_LARGE, tx_calls);
        let rx_calls_fewer = fewer(INTO_LARGE, rx_calls);
        let over = |offload, traffic: Traffic, of, to| Over {
            at: traffic.name(),
            offload,
            of,
            to,
            ratio: runs.ratio(offload, traffic, (of, to), |run| run.value),
        };
        let measured = runs.traffic();
        let tcp: Vec<Over> = measured
            .iter()
            .filter(|(_, traffic)| traffic.load.is_tcp())
            .map(|(offload, traffic)| over(*offload, *traffic, BATCH, EACH))
            .collect();
        let streams = measured
            .iter()
            .filter(|(offload, traffic)| !offload && matches!(traffic.load, Load::Stream(_)));
        let calls_fewer = streams
            .map(|(_, traffic)| Over {
                at: traffic.name(),
                offload: false,
                of: EACH,
                to: BATCH,
                ratio: fewer(*traffic, if traffic.into { rx_calls } else { tx_calls }),
            })
            .collect();
        let reach = |row: &&Over| row.ratio.map_or(f64::INFINITY, reaches);
        let worst = tcp.iter().filter(|row| row.ratio.is_some());
        let worst = worst.min_by(|a, b| reach(a).total_cmp(&reach(b)));
        let does_not_win = [
            // One request under way: nothing to put together.
            (false, RR, BATCH, EACH),
            (false, PING, BATCH, EACH),
            // A packet is up to 64 KiB.
            (true, OUT_LARGE, BATCH, EACH),
            (true, INTO_LARGE, BATCH, EACH),
            // Whether it is asked for or not.
            (false, OUT_LARGE, TAM, BATCH),
            (false, INTO_LARGE, TAM, BATCH),
            (false, OUT_LARGE, ADAPTIVE, BATCH),
            (false, INTO_LARGE, ADAPTIVE, BATCH),
        ];
        let does_not_win = does_not_win
            .into_iter()
            .filter(|(offload, traffic, ..)| measured.contains(&(*offload, *traffic)))
            .map(|(offload, traffic, of, to)| over(offload, traffic, of, to))
            .collect();
        let estimated = |ratio: Option<Ratio>| ratio.map(|ratio| ratio.estimate);
        let counted = |count: f64| (runs.windows() > 0).then_some(count);
        let ended = |what: fn(&recovery::Ended) -> f64| {
            let recovery = figures.recovery.as_ref();
            recovery.map(|r| what(&r.sigterm) + what(&r.sigkill))
        };
        let goals = vec![
            Goal::at_least("guest_tx_calls_fewer", estimated(tx_calls_fewer), 20.0),
            Goal::at_least("guest_rx_calls_fewer", estimated(rx_calls_fewer), 20.0),
            Goal::at_least(
                "guest_tcp_worst_ratio (interval reaches)",
                worst.and_then(|row| row.ratio).map(reaches),
                1.0,
            ),
            Goal::at_most(
                "windows in which both ends' counts differ",
                counted(runs.disagreements() as f64),
                0.0,
            ),
            Goal::at_most("failures", counted(runs.failures()), 0.0),
            Goal::at_most(
                "datagrams with other bytes, back ends ending",
                ended(|e| e.corrupt),
                0.0,
            ),
            Goal::at_most(
                "datagrams twice, back ends ending by SIGTERM",
                figures.recovery.as_ref().map(|r| r.sigterm.duplicate),
                0.0,
            ),
        ];
        Headline {
            tx_calls_fewer,
            rx_calls_fewer,
            calls_fewer,
            tcp_worst: worst.cloned(),
            tcp,
            defer_kicks: runs.ratio(false, DATAGRAMS, (DEFER, BATCH), tx_kicks),
            does_not_win,
            goals,
        }
    }
}

pub(super) fn summary(figures: Figures) -> Summary {
    let headline = Headline::of(&figures);
    let rows = figures.runs.rows();
    let h = &headline;
    let worst = h.tcp_worst.as_ref();
    let recovery_ms = figures.recovery.as_ref().map(|recovery| {
        json!({"sigterm": recovery.sigterm.median(), "sigkill": recovery.sigkill.median()})
    });
    let fields = [
        ("guest_tx_calls_fewer", estimate(h.tx_calls_fewer)),
        ("guest_tx_calls_fewer_interval", interval(h.tx_calls_fewer)),
        ("guest_rx_calls_fewer", estimate(h.rx_calls_fewer)),
        ("guest_rx_calls_fewer_interval", interval(h.rx_calls_fewer)),
        ("guest_calls_fewer", json!(h.calls_fewer)),
        (
            "guest_tcp_worst_ratio",
            estimate(worst.and_then(|row| row.ratio)),
        ),
        (
            "guest_tcp_worst_ratio_interval",
            interval(worst.and_then(|row| row.ratio)),
        ),
        ("guest_tcp_worst", json!(worst.map(Over::name))),
        ("guest_tcp_vs_each", json!(h.tcp)),
        ("defer_kicks_vs_event_idx", estimate(h.defer_kicks)),
        ("defer_kicks_vs_event_idx_interval", interval(h.defer_kicks)),
        ("recovery_ms", json!(recovery_ms)),
        ("recovery", json!(figures.recovery)),
        ("batching_does_not_win", json!(h.does_not_win)),
        ("goals", json!(h.goals)),
        ("policies", json!(POLICIES)),
        ("calls_per_packet", by_policy(&rows)),
        ("emulated", json!(figures.accelerator.is_emulated())),
        ("guest_kernel", json!(figures.guest_kernel)),
        ("guest_clock", json!(figures.guest_clock)),
        ("guest", json!(rows)),
        ("left_out", json!(figures.left_out())),
        ("not_measured", json!(figures.not_measured)),
    ];
    let mut map = Map::new();
    map.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Summary {
        unit: json!({
            "_us": "us", "_ms": "ms", "_ns_per_packet": "ns", "_vs_": "ratio", "_fewer": "ratio",
            "_ratio": "ratio", "_per_packet": "1", "kicks": "1/packet", "calls": "1/packet",
        }),
        fields: map,
        complete: h.tx_calls_fewer.is_some()
            && h.rx_calls_fewer.is_some()
            && h.tcp_worst.is_some()
            && h.defer_kicks.is_some()
            && figures.recovery.is_some()
            && figures.not_measured.is_empty(),
        table: table::all(&figures, &headline, &rows),
    }
}

impl Over {
    pub(super) fn name(&self) -> String {
        let offload = if self.offload {
            "offload"
        } else {
            "no offload"
        };
        format!("{}, {offload}", self.at)
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
