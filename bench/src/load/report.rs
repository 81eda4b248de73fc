//! The summary of `bench load`: headline figures against their goals, and what stands behind them.
use super::delay::Delay;
use super::other_tools::Other;
use super::packets::Rate;
use super::round_trips::RoundTrips;
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::table::closing;
use hopscope_compare::comparison::TEST;
use hopscope_compare::output::Summary;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) struct Figures {
    pub(crate) rates: BTreeMap<&'static str, Rate>,
    pub(crate) round_trips: Option<RoundTrips>,
    pub(crate) delay: Option<Delay>,
    pub(crate) others: Vec<Other>,
    pub(crate) not_measured: Vec<NotMeasured>,
}

/// The better of the ways to do the same, with its name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Best {
    way: &'static str,
    pps: f64,
    per_cpu_s: f64,
}

const DELAY_GOAL_NS: f64 = 2_000.0;

impl Figures {
    fn best(&self, what: &str) -> Option<Best> {
        let of = self.rates.iter().filter(|(way, _)| way.starts_with(what));
        of.map(|(way, rate)| Best {
            way,
            pps: rate.pps.median,
            per_cpu_s: rate.per_cpu_s.median,
        })
        .max_by(|a, b| a.pps.total_cmp(&b.pps))
    }

    fn goals(&self) -> Vec<Goal> {
        let pps = |what| self.best(what).map(|best| best.pps);
        let overhead = self.round_trips.map(|r| r.p50.ratio.estimate);
        // What A shows against itself bounds what can be asked.
        let allowed = self
            .delay
            .map_or(DELAY_GOAL_NS, |d| d.band_ns.max(DELAY_GOAL_NS));
        let error = self.delay.map(|d| d.error_ns.abs());
        vec![
            Goal::at_least("tx_stamped_pps", pps("tx_stamped_pps"), 1e6),
            Goal::at_least("matched_pps", pps("matched_pps"), 0.5e6),
            Goal::at_least("inmem_pps", pps("inmem_pps"), 5e6),
            Goal::at_most("rr_overhead_vs_c", overhead, 1.05),
            Goal::at_most("delay_error_ns", error, allowed),
        ]
    }

    pub(crate) fn summary(self) -> Summary {
        let goals = self.goals();
        let complete = goals.iter().all(|g| g.measured.is_some());
        let mut fields = json!({
            "rr_overhead_vs_c": self.round_trips.map(|r| r.p50.ratio.estimate),
            "round_trips": self.round_trips,
            "delay_error_ns": self.delay.map(|d| d.error_ns),
            "delay_band_ns": self.delay.map(|d| d.band_ns),
            "delay": self.delay,
            "rates": self.rates,
            "cross_checks": self.others,
            "goals": goals,
            "test": TEST,
            "not_measured": self.not_measured,
        });
        for what in ["tx_stamped_pps", "matched_pps", "inmem_pps"] {
            let best = self.best(what);
            fields[what] = json!(best.map(|b| b.pps));
            fields[format!("{what}_way")] = json!(best.map(|b| b.way));
            fields[format!("{what}_per_cpu_s")] = json!(best.map(|b| b.per_cpu_s));
        }
        let table = self.table(&goals);
        Summary {
            unit: json!({
                "tx_stamped_pps": "1/s", "matched_pps": "1/s", "inmem_pps": "1/s",
                "rr_overhead_vs_c": "ratio", "round_trips": "ns", "delay_error_ns": "ns",
            }),
            fields,
            table,
            complete,
        }
    }

    fn table(&self, goals: &[Goal]) -> String {
        let mut out = String::from("64 B frames over a veth pair, one sender; medians of runs\n\n");
        for (way, rate) in &self.rates {
            let s = rate.pps;
            let _ = writeln!(
                out,
                "{way:<22} {:>7.3} M/s  ({:.3} .. {:.3}), {:.3} M each second of processor time{}",
                s.median / 1e6,
                s.min / 1e6,
                s.max / 1e6,
                rate.per_cpu_s.median / 1e6,
                rate.lost_percent
                    .map_or(String::new(), |lost| format!(", {lost:.2} % lost"))
            );
        }
        if let Some(r) = self.round_trips {
            for (what, c) in [("median", r.p50), ("mean", r.mean)] {
                let _ = writeln!(
                    out,
                    "\nround trip, 1 B over TCP, both ends on one processor, {what}: A (C) {:.0} ns, B (hopscope) {:.0} ns\n{c}",
                    c.a.median, c.b.median
                );
            }
        }
        if let Some(d) = self.delay {
            let a = d.added;
            let _ = writeln!(
                out,
                "\na forwarder that waits {} ns adds {:.0} ns ({:.0} .. {:.0}): error {:+.0} ns\n\
                 without the delay it differs from itself by {:+.0} ns ({:.0} .. {:.0}); the \
                 forwarder was {:+.0} ns late itself",
                d.asked_ns,
                a.added.estimate,
                a.added.low,
                a.added.high,
                d.error_ns,
                a.control.estimate,
                a.control.low,
                a.control.high,
                d.forwarder_late_ns
            );
        }
        for other in &self.others {
            let _ = writeln!(
                out,
                "\n{} ({}; {}): A {:.4e}, B (hopscope) {:.4e}\n{}",
                other.name,
                other.quantity,
                other.tool,
                other.comparison.a.median,
                other.comparison.b.median,
                other.comparison
            );
        }
        out.push('\n');
        out + &closing(goals, &self.not_measured)
    }
}
