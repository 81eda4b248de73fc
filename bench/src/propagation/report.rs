//! Table 6 and Fig. 13 of the source paper, as this machine has them.
use super::read::{Cause, Packet, Run};
use super::{SLOW_MODULE, SPIN_EVERY, SPIN_NS, SPIN_US, TAIL};
use crate::table::Table;
use hopscope_compare::output::Summary;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Runs in the picture of one slow packet, and how many of them come before it.
const SHOWN: usize = 15;
const BEFORE: usize = 3;

/// Own time in a run, as measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Module {
    pub(super) module: &'static str,
    pub(super) mean_ns: f64,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Unplanted {
    pub(super) packets: f64,
    pub(super) came_back: f64,
    /// Matched with one of several runs.
    pub(super) ambiguous: f64,
    pub(super) latency_p50_ns: f64,
    pub(super) latency_p99_ns: f64,
    pub(super) runs: f64,
    pub(super) modules: Vec<Module>,
}

/// A run, and the packets that it handled.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Shown {
    run: u64,
    /// From the begin of the slow run.
    start_ns: f64,
    length_ns: f64,
    packets: Vec<ShownPacket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct ShownPacket {
    seq: u64,
    sent_ns: f64,
    latency_ns: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Planted {
    /// At least as long as what was planted.
    slow_runs: usize,
    /// Packets of those runs.
    slow_packets: usize,
    /// Sent while a slow run was under way, and handled by an ordinary one.
    propagated_packets: usize,
    propagated_latency_ns: Option<Spread>,
    /// Lengths of the runs that handled these.
    propagated_run_ns: Option<Spread>,
    ordinary_latency_ns: Option<Spread>,
    first_cause: Option<Cause>,
    window: Vec<Shown>,
}

impl Planted {
    pub(super) fn of(
        mut runs: Vec<Run>,
        packets: &[Packet],
        first_cause: Option<Cause>,
    ) -> Planted {
        runs.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
        let slow: Vec<usize> = (0..runs.len())
            .filter(|at| runs[*at].length_ns >= SPIN_NS)
            .collect();
        let slow_numbers: HashSet<u64> = slow.iter().map(|at| runs[*at].run).collect();
        let length: HashMap<u64, f64> = runs.iter().map(|r| (r.run, r.length_ns)).collect();
        let (mut behind, mut behind_runs) = (Vec::new(), Vec::new());
        let (mut ordinary, mut slow_packets) = (Vec::new(), 0);
        for packet in packets {
            if slow_numbers.contains(&packet.run) {
                slow_packets += 1;
            } else if waited(&runs, &slow, packet.sent_ns) {
                behind.push(packet.latency_ns);
                behind_runs.extend(length.get(&packet.run));
            } else {
                ordinary.push(packet.latency_ns);
            }
        }
        let middle = slow.get(slow.len() / 2);
        Planted {
            slow_runs: slow.len(),
            slow_packets,
            propagated_packets: behind.len(),
            propagated_latency_ns: Spread::of(&behind),
            propagated_run_ns: Spread::of(&behind_runs),
            ordinary_latency_ns: Spread::of(&ordinary),
            first_cause,
            window: middle.map_or(Vec::new(), |at| window(&runs, packets, *at)),
        }
    }

    /// The plant is what the report names.
    fn is_named(&self) -> bool {
        self.first_cause.as_ref().is_some_and(|cause| {
            let function = cause.function.as_deref().unwrap_or_default();
            cause.cause == "slow_function" && function.ends_with(SLOW_MODULE)
        })
    }
}

/// `runs` by begin, `slow` positions in it.
fn waited(runs: &[Run], slow: &[usize], sent_ns: f64) -> bool {
    let next = slow.partition_point(|at| runs[*at].start_ns <= sent_ns);
    next > 0 && {
        let run = runs[slow[next - 1]];
        sent_ns < run.start_ns + run.length_ns
    }
}

fn window(runs: &[Run], packets: &[Packet], slow: usize) -> Vec<Shown> {
    let from = slow.saturating_sub(BEFORE);
    let origin = runs[slow].start_ns;
    let shown = runs[from..].iter().take(SHOWN).map(|run| {
        let of_run = packets.iter().filter(|packet| packet.run == run.run);
        let mut packets: Vec<_> = of_run
            .map(|packet| ShownPacket {
                seq: packet.seq,
                sent_ns: packet.sent_ns - origin,
                latency_ns: packet.latency_ns,
            })
            .collect();
        packets.sort_by_key(|packet| packet.seq);
        Shown {
            run: run.run,
            start_ns: run.start_ns - origin,
            length_ns: run.length_ns,
            packets,
        }
    });
    shown.collect()
}

pub(super) struct Figures {
    pub(super) unplanted: Unplanted,
    pub(super) planted: Planted,
}

impl Figures {
    pub(super) fn summary(self) -> Summary {
        let Figures { unplanted, planted } = &self;
        let per_slow = planted.propagated_packets as f64 / planted.slow_runs as f64;
        let times = match (planted.propagated_latency_ns, planted.ordinary_latency_ns) {
            (Some(behind), Some(ordinary)) => Some(behind.median / ordinary.median),
            _ => None,
        };
        Summary {
            unit: json!({"unplanted": "ns", "planted": "ns",
                         "propagated_per_slow_run": "packets", "propagated_latency_ratio": "ratio"}),
            table: self.table(),
            fields: json!({
                "unplanted": unplanted,
                "planted": planted,
                "propagated_per_slow_run": per_slow,
                "propagated_latency_ratio": times,
                "cause_is_the_planted": planted.is_named(),
            }),
            complete: times.is_some() && unplanted.runs > 0.0 && planted.first_cause.is_some(),
        }
    }

    fn table(&self) -> String {
        let Unplanted {
            packets,
            runs,
            modules,
            ..
        } = &self.unplanted;
        let mut out = format!(
            "{packets} packets, {} came back, {runs} runs; latency p50 {:.1} us, p99 {:.1} us; {} packets matched with one of several runs\n\n\
             own time in a run, us\n",
            self.unplanted.came_back,
            self.unplanted.latency_p50_ns / 1e3,
            self.unplanted.latency_p99_ns / 1e3,
            self.unplanted.ambiguous,
        );
        let mut rows = Table::new(1, ["module", "mean", "p50", "p99"]);
        for m in modules {
            let [mean, p50, p99] =
                [m.mean_ns, m.p50_ns, m.p99_ns].map(|ns| format!("{:.3}", ns / 1e3));
            rows.row([m.module.to_string(), mean, p50, p99]);
        }
        let _ = write!(out, "{rows}");
        self.planted_table(&mut out);
        out
    }

    fn planted_table(&self, out: &mut String) {
        let planted = &self.planted;
        let us = |spread: Option<Spread>| spread.map_or(f64::NAN, |s| s.median / 1e3);
        let _ = writeln!(
            out,
            "\neach {SPIN_EVERY}th packet makes {SLOW_MODULE} spin {SPIN_US} us: {} slow runs with {} packets\n\
             {} packets were sent meanwhile and handled by ordinary runs (median {:.1} us): they took {:.1} us, all others {:.1} us",
            planted.slow_runs,
            planted.slow_packets,
            planted.propagated_packets,
            us(planted.propagated_run_ns),
            us(planted.propagated_latency_ns),
            us(planted.ordinary_latency_ns),
        );
        let _ = match &planted.first_cause {
            Some(cause) => writeln!(
                out,
                "report --tail {TAIL} says first: {} {}, {} packets in {} events{}",
                cause.cause,
                cause.function.as_deref().unwrap_or(""),
                cause.packets,
                cause.events,
                if planted.is_named() {
                    ""
                } else {
                    " (which is not what was planted)"
                }
            ),
            None => writeln!(out, "report --tail {TAIL} names nothing"),
        };
        out.push_str("\npackets: number (sent .. received, us from the start of the slow run)\n");
        let mut rows = Table::new(0, ["run", "start us", "length us", "packets"]);
        for run in &planted.window {
            let packets: Vec<String> = run
                .packets
                .iter()
                .map(|p| {
                    let received = p.sent_ns + p.latency_ns;
                    format!(
                        "{} ({:.0} .. {:.0})",
                        p.seq,
                        p.sent_ns / 1e3,
                        received / 1e3
                    )
                })
                .collect();
            rows.row([
                run.run.to_string(),
                format!("{:.1}", run.start_ns / 1e3),
                format!("{:.1}", run.length_ns / 1e3),
                packets.join(", "),
            ]);
        }
        let _ = write!(out, "{rows}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(run: u64, start_ns: f64, length_ns: f64) -> Run {
        Run {
            run,
            start_ns,
            length_ns,
        }
    }

    fn packet(seq: u64, sent_ns: f64, latency_ns: f64, run: u64) -> Packet {
        Packet {
            seq,
            sent_ns,
            latency_ns,
            run,
        }
    }

    #[test]
    fn who_waited_for_a_slow_run_is_told_from_who_was_in_it() {
        let runs = vec![run(2, 2e6, 5e3), run(0, 0.0, 4e3), run(1, 1e6, SPIN_NS)];
        let packets = [
            packet(0, -1e3, 6e3, 0),
            packet(1, 1e6 - 1e3, 1e6, 1),
            packet(2, 1.5e6, 6e5, 2),
            packet(3, 2.1e6, 5e3, 2),
        ];
        let planted = Planted::of(runs, &packets, None);
        assert_eq!((planted.slow_runs, planted.slow_packets), (1, 1));
        assert_eq!(planted.propagated_packets, 1);
        assert_eq!(planted.propagated_latency_ns.unwrap().median, 6e5);
        assert_eq!(planted.propagated_run_ns.unwrap().median, 5e3);
        assert_eq!(planted.ordinary_latency_ns.unwrap().n, 2);
        let runs: Vec<u64> = planted.window.iter().map(|shown| shown.run).collect();
        assert_eq!(runs, [0, 1, 2]);
        assert_eq!(planted.window[2].packets[0].sent_ns, 5e5);
    }
}
