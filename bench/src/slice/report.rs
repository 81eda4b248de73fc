//! The summary of `bench slice`: headline figures against their goals, and what stands behind them.
use super::duty::Duty;
use super::flat::Flat;
use super::one_core::OneCore;
use super::round_trips::Size;
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::table::closing;
use hopscope_compare::comparison::{Comparison, TEST};
use hopscope_compare::output::Summary;
use serde_json::json;
use std::fmt::Write;

pub(crate) struct Figures {
    pub(crate) sizes: Vec<Size>,
    pub(crate) one_core: Option<OneCore>,
    pub(crate) duty: Option<Duty>,
    pub(crate) flat: Option<Flat>,
    pub(crate) not_measured: Vec<NotMeasured>,
}

const CORRECTED_GOAL_PERCENT: f64 = 1.0;
/// "Flat" in the sense of the sum of slices: within 5 %.
const FLAT_GOAL: f64 = 1.05;

impl Figures {
    /// Over all sizes.
    fn worst(&self, of: impl Fn(&Size) -> f64) -> Option<f64> {
        self.sizes.iter().map(of).max_by(f64::total_cmp)
    }

    fn goals(&self) -> Vec<Goal> {
        let smallest = self.sizes.first();
        // The size that is furthest beyond what it may be: 1 %, or what A shows against itself.
        let worst_corrected = self.sizes.iter().max_by(|a, b| {
            let beyond = |s: &Size| s.corrected_error_percent() / corrected_goal(s);
            beyond(a).total_cmp(&beyond(b))
        });
        let duty = self.duty.as_ref().map(Duty::overhead_percent);
        let one_core = self.one_core.as_ref();
        vec![
            Goal::at_most("ns_per_packet", smallest.map(|s| s.ns_per_packet), 1500.0),
            Goal::at_most(
                "cost_vs_clock_only",
                self.worst(Size::cost_vs_clock_only),
                1.2,
            ),
            Goal::at_most(
                "ns_per_packet_one_core",
                one_core.map(|o| o.ns_per_packet),
                1500.0,
            ),
            Goal::at_most(
                "cost_vs_clock_only_one_core",
                one_core.map(OneCore::cost_vs_clock_only),
                1.2,
            ),
            Goal::at_most(
                "corrected_error_percent_one_core",
                one_core.map(OneCore::corrected_error_percent),
                CORRECTED_GOAL_PERCENT,
            ),
            Goal::at_most(
                "rtt_overhead_percent",
                self.worst(Size::rtt_overhead_percent),
                5.0,
            ),
            Goal::at_most("duty_overhead_percent", duty, 0.5),
            Goal::at_most(
                "corrected_error_percent",
                worst_corrected.map(Size::corrected_error_percent),
                worst_corrected.map_or(CORRECTED_GOAL_PERCENT, corrected_goal),
            ),
            Goal::at_most(
                "slices_vs_whole_percent",
                self.worst(|s| s.slices_vs_whole_percent.median),
                5.0,
            ),
            Goal::at_most(
                "outer_flat_ratio",
                self.flat.as_ref().map(|f| f.ratio),
                FLAT_GOAL,
            ),
        ]
    }

    pub(crate) fn summary(self) -> Summary {
        let goals = self.goals();
        let complete = goals.iter().all(|g| g.measured.is_some());
        let smallest = self.sizes.first();
        let us = |of: fn(&Size) -> f64| smallest.map(|s| of(s) / 1e3);
        let mut fields = json!({
            "rtt_off_us": us(|s| s.rtt.a.median),
            "rtt_attached_us": us(|s| s.rtt.b.median),
            "rtt_corrected_us": us(|s| s.rtt_corrected.b.median),
            "aa_band_us": us(|s| s.rtt_added.band()),
            "hits_per_packet": smallest.map(|s| s.hits_per_packet),
            "clock_only_hit_ns": smallest.map(|s| s.clock_only_hit_ns.median),
            "tau_o_ns": smallest.map(|s| s.tau_o_ns.median),
            "said_added_ns_per_packet": smallest.map(|s| s.said_added_ns_per_packet.median),
            "sizes": self.sizes,
            "one_core": self.one_core,
            "duty": self.duty,
            "outer": self.flat,
            "goals": goals,
            "test": TEST,
            "not_measured": self.not_measured,
        });
        for goal in &goals {
            fields[goal.name] = json!(goal.measured);
        }
        let table = self.table(&goals);
        Summary {
            unit: json!({
                "_us": "us", "_ns": "ns", "_percent": "%", "ns_per_packet": "ns",
                "cost_vs_clock_only": "ratio", "cost_vs_clock_only_one_core": "ratio",
                "ns_per_packet_one_core": "ns", "one_core": "ns", "outer_flat_ratio": "ratio", "sizes": "ns",
                "outer": "ns", "duty": "ns",
            }),
            fields,
            table,
            complete,
        }
    }

    fn table(&self, goals: &[Goal]) -> String {
        let mut out = String::from(
            "blocking round trips over TCP between two processors, veth between two namespaces, \
             seven regions;\nA: nothing attached, B: attached; medians of windows\n",
        );
        for size in &self.sizes {
            let _ = write!(out, "\n{}", of_size(size));
        }
        if let Some(one) = &self.one_core {
            let _ = write!(out, "\n{}", of_one_core(one));
        }
        if let Some(duty) = &self.duty {
            let _ = writeln!(
                out,
                "\n--duty {} (attached for {:.1} % of the time): A {:.2} us, B {:.2} us\n{}",
                duty.duty,
                100.0 * duty.attached_share,
                duty.rtt.a.median / 1e3,
                duty.rtt.b.median / 1e3,
                duty.rtt
            );
        }
        if let Some(flat) = &self.flat {
            let _ = writeln!(out, "\nfrom IP's output to TCP's input, corrected:");
            for (hooks, s) in &flat.corrected_ns {
                let _ = writeln!(
                    out,
                    "{hooks:>4} hooks  {:>7.2} us  ({:.2} .. {:.2})",
                    s.median / 1e3,
                    s.p10 / 1e3,
                    s.p90 / 1e3
                );
            }
            let _ = writeln!(
                out,
                "largest over smallest {:.3}; of the fewest hooks against themselves {:.3}",
                flat.ratio, flat.control_ratio
            );
        }
        out.push('\n');
        out + &closing(goals, &self.not_measured)
    }
}

fn corrected_text(corrected: &Comparison) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let ratio = corrected.ratio;
    format!(
        "corrected against off: {:+.2} % ({:+.2} .. {:+.2})",
        percent(ratio.estimate),
        percent(ratio.low),
        percent(ratio.high)
    )
}

fn of_one_core(one: &OneCore) -> String {
    format!(
        "64 B frames, both ends in one thread that never sleeps: off {:.2} us, attached {:.2} us, corrected \
         {:.2} us\n{}\n{}\n\
         a packet: {:.0} ns seen from outside ({:.0} .. {:.0}), the tool says {:.0} ns; {:.1} hits x {:.0} \
         ns\n",
        one.rtt.a.median / 1e3,
        one.rtt.b.median / 1e3,
        one.rtt_corrected.b.median / 1e3,
        one.rtt,
        corrected_text(&one.rtt_corrected),
        one.ns_per_packet,
        one.rtt_added.added.low / one.packets_per_round_trip,
        one.rtt_added.added.high / one.packets_per_round_trip,
        one.said_added_ns_per_packet.median,
        one.hits_per_packet,
        one.clock_only_hit_ns.median,
    )
}

fn corrected_goal(size: &Size) -> f64 {
    size.aa_band_percent().max(CORRECTED_GOAL_PERCENT)
}

fn of_size(size: &Size) -> String {
    let us = |ns: f64| ns / 1e3;
    let added = size.rtt_added;
    format!(
        "{} B frames: off {:.2} us, attached {:.2} us, corrected {:.2} us; A against A up to {:.2} us\n\
         {}\n\
         {}\n\
         a packet: {:.0} ns seen from outside ({:.0} .. {:.0}), {:.0} ns of the asking end's processor \
         time;\n  the tool says {:.0} ns; {:.1} hits x {:.0} ns of a hit that reads the clock alone; an \
         empty region {:.0} ns\n\
         sum of slices off the whole by {:.2} %; {:.0} packets, {:.0} records lost\n",
        size.frame_bytes,
        us(size.rtt.a.median),
        us(size.rtt.b.median),
        us(size.rtt_corrected.b.median),
        us(added.band()),
        size.rtt,
        corrected_text(&size.rtt_corrected),
        size.ns_per_packet,
        added.added.low / size.packets_per_round_trip,
        added.added.high / size.packets_per_round_trip,
        // By symmetry: each end sends one packet and receives one.
        2.0 * size.cpu_added.added.estimate / size.packets_per_round_trip,
        size.said_added_ns_per_packet.median,
        size.hits_per_packet,
        size.clock_only_hit_ns.median,
        size.tau_o_ns.median,
        size.slices_vs_whole_percent.median,
        size.packets,
        size.records_lost,
    )
}
