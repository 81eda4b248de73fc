//! Figures of `bench vnet-guest`: what batching saves and what it costs, against the goals, and where it does not win.
use super::compared::{Runs, rx_calls, tx_calls, tx_kicks};
use super::device::{ADAPTIVE, BATCH, DEFER, EACH, TAM};
use super::recovery::{self, Recovery};
use super::traffic::{DATAGRAMS, INTO_LARGE, OUT_LARGE, PING, RR, Traffic};
use super::window;
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::ratio::reaches;
use crate::vnet::load::Load;
use hopscope_compare::median::Interval;
use hopscope_guest::Accelerator;
use serde::Serialize;

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
    pub(super) ratio: Option<Interval>,
}

pub(super) struct Headline {
    /// Calls a packet of `each` over those of the default, without offloads.
    pub(super) tx_calls_fewer: Option<Interval>,
    pub(super) rx_calls_fewer: Option<Interval>,
    /// The same of each stream.
    pub(super) calls_fewer: Vec<Over>,
    /// The default over `each`, in each row of TCP.
    pub(super) tcp: Vec<Over>,
    /// The one whose interval reaches least far.
    pub(super) tcp_worst: Option<Over>,
    pub(super) defer_kicks: Option<Interval>,
    pub(super) does_not_win: Vec<Over>,
    pub(super) goals: Vec<Goal>,
}

impl Figures {
    /// What was chosen not to be measured, or cannot be here.
    pub(super) fn left_out(&self) -> Vec<NotMeasured> {
        let left_out = |what: &str, reason: String| NotMeasured::new(what, reason);
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
        let estimated = |ratio: Option<Interval>| ratio.map(|ratio| ratio.estimate);
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
