//! What a run says: a line for each interval, a summary; for people and as JSON.
use super::find_max::Verdict;
use super::run::RunResult;
use super::tally::{Counts, Interval};
use crate::interval::{marked, share, time};
use hopscope_event::{Tsc, TscFrequency};
use hopscope_openloop::latency::Percentiles;
use serde::Serialize;
use serde_json::{Value, json};

/// What all lines share.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    pub frequency: TscFrequency,
    pub start: Tsc,
    /// False when nothing is received: then losses and latencies are not known.
    pub receives: bool,
}

#[derive(Serialize)]
struct Flattened {
    sent: u64,
    received: Option<u64>,
    lost: Option<u64>,
    late: u64,
    worst_late_ns: u64,
    duplicate: Option<u64>,
    reordered: Option<u64>,
    corrupted: Option<u64>,
    /// Something was late: latency from the intended time then also speaks of the generator.
    behind: bool,
    latency: Option<Percentiles>,
    transit: Option<Percentiles>,
}

impl Lines {
    fn seconds(&self, from: Tsc, to: Tsc) -> f64 {
        (to - from) as f64 / self.frequency.0 as f64
    }

    fn flattened(&self, counts: &Counts) -> Value {
        let known = |count: u64| self.receives.then_some(count);
        let flattened = Flattened {
            sent: counts.sent,
            received: known(counts.received),
            lost: known(counts.lost),
            late: counts.late,
            worst_late_ns: counts.worst_late_ns,
            duplicate: known(counts.duplicate),
            reordered: known(counts.reordered),
            corrupted: known(counts.corrupted),
            behind: counts.late > 0,
            latency: self.receives.then(|| counts.latency.percentiles()),
            transit: self.receives.then(|| counts.transit.percentiles()),
        };
        serde_json::to_value(flattened).expect("numbers and names")
    }

    pub fn interval_json(&self, interval: &Interval, asked: Option<f64>) -> Value {
        let seconds = self.seconds(interval.start, interval.end);
        let mut line = json!({
            "type": "interval", "schema": 1,
            "start_s": self.seconds(self.start, interval.start),
            "length_s": seconds,
            "warmup": interval.warm_up,
            "asked_per_s": asked.map(|asked| per_s(asked, seconds)),
            "achieved_per_s": per_s(interval.counts.sent as f64, seconds),
        });
        merge(&mut line, self.flattened(&interval.counts));
        line
    }

    /// `   3 s  asked 10000/s  sent 10000/s  lost 0  p50 21.4 us  p99 80.1 us`
    pub fn interval_text(&self, interval: &Interval, asked: Option<f64>) -> String {
        let seconds = self.seconds(interval.start, interval.end);
        let counts = &interval.counts;
        let end = self.seconds(self.start, interval.end);
        let mut line = format!(
            "{end:>6.1} s  asked {}  sent {:.0}/s",
            asked.map_or("max".into(), |asked| format!(
                "{:.0}/s",
                per_s(asked, seconds)
            )),
            per_s(counts.sent as f64, seconds),
        );
        if self.receives {
            let late = share(counts.late, counts.sent);
            let figures = counts.latency.percentiles();
            line += &format!(
                "  lost {}  p50 {}  p99 {}",
                counts.lost,
                marked(figures.p50_ns, 0.5, late),
                marked(figures.p99_ns, 0.99, late),
            );
        }
        line += &others(counts);
        if interval.warm_up {
            line += "  (warm-up)";
        }
        line
    }

    pub fn summary_json(&self, outcome: &RunResult) -> Value {
        let seconds = self.seconds(outcome.measured_from, outcome.ended).max(0.0);
        let mut line = json!({
            "seconds": seconds,
            "asked": outcome.asked,
            "asked_per_s": outcome.asked.map(|asked| per_s(asked, seconds)),
            "achieved_per_s": per_s(outcome.total.sent as f64, seconds),
            "matched": self.receives.then_some(outcome.total.received),
            "unsent": outcome.sender.unsent,
            "warmup_sent": outcome.warm_up.sent,
            "warmup_lost": self.receives.then_some(outcome.warm_up.lost),
            "before_sent": outcome.total.before_sent,
            "foreign": outcome.strays.foreign,
            "damaged": outcome.strays.damaged,
            "after_lost": outcome.strays.after_lost,
            "too_old": outcome.strays.too_old,
            "given_up_early": outcome.strays.given_up_early,
            "port_full": outcome.sender.port_full,
            "window_full": outcome.sender.window_full,
            "sender_failed": outcome.sender_port.send_failed,
            "receiver_dropped": outcome.receiver_port.receive_dropped,
            "receiver_cut": outcome.receiver_port.receive_cut,
            "interrupted": outcome.interrupted,
        });
        merge(&mut line, self.flattened(&outcome.total));
        line
    }

    /// Several lines.
    pub fn summary_text(&self, outcome: &RunResult) -> String {
        let total = &outcome.total;
        let seconds = self.seconds(outcome.measured_from, outcome.ended).max(0.0);
        let mut text = format!("sent {} in {seconds:.3} s", total.sent);
        text += &format!(", {:.0}/s", per_s(total.sent as f64, seconds));
        match outcome.asked {
            Some(asked) => text += &format!(" of {:.0}/s asked", per_s(asked, seconds)),
            None => text += " (as fast as the port takes them)",
        }
        if outcome.sender.unsent > 0 {
            text += &format!("; {} were due and never sent", outcome.sender.unsent);
        }
        if total.late > 0 {
            let late = 100.0 * share(total.late, total.sent);
            let worst = time(total.worst_late_ns);
            text += &format!(
                "\nfell behind: {} ({late:.2} %) late, by up to {worst}",
                total.late
            );
        }
        if !self.receives {
            return text;
        }
        let lost = 100.0 * share(total.lost, total.sent);
        text += &format!(
            "\nreceived {}, lost {} ({lost:.4} %)",
            total.received, total.lost
        );
        text += &others(&Counts {
            late: 0,
            ..total.clone()
        });
        let late = share(total.late, total.sent);
        let figures = |name: &str, of: &Percentiles| {
            let one =
                |label: &str, ns, quantile| format!("  {label} {}", marked(ns, quantile, late));
            format!("\n{name}")
                + &one("p50", of.p50_ns, 0.5)
                + &one("p90", of.p90_ns, 0.9)
                + &one("p99", of.p99_ns, 0.99)
                + &one("p99.9", of.p99_9_ns, 0.999)
                + &one("max", of.max_ns, 1.0)
                + &format!("  n {}", of.count)
        };
        text += &figures(
            "latency, from the intended time:",
            &total.latency.percentiles(),
        );
        text += &figures(
            "transit, from sending:          ",
            &total.transit.percentiles(),
        );
        for (count, what) in [
            (outcome.strays.foreign, "foreign frames"),
            (outcome.strays.damaged, "frames too damaged to say which"),
            (
                outcome.strays.after_lost,
                "packets that came after they were given up as lost",
            ),
            (outcome.strays.too_old, "arrivals of packets long past"),
            (
                outcome.strays.given_up_early,
                "packets given up early: too many on their way",
            ),
            (
                outcome.receiver_port.receive_dropped,
                "frames dropped by the receiving port itself: some of the lost",
            ),
            (
                outcome.receiver_port.receive_cut,
                "frames cut by the receiving port",
            ),
            (
                outcome.sender_port.send_failed,
                "frames given up by the sending port: some of the lost",
            ),
            (
                total.before_sent,
                "packets that arrived before they were sent, by the port's clock",
            ),
            (
                outcome.sender.window_full,
                "times the matcher did not keep up with the sender",
            ),
        ] {
            if count > 0 {
                text += &format!("\n{count} {what}");
            }
        }
        text
    }

    /// A trial of a search, beside what its run says.
    pub fn trial_json(
        &self,
        number: u32,
        rate: f64,
        verdict: Verdict,
        outcome: &RunResult,
    ) -> Value {
        let mut line = json!({
            "type": "trial", "schema": 1, "trial": number, "rate": rate, "verdict": verdict,
        });
        merge(&mut line, self.summary_json(outcome));
        line
    }
}

fn per_s(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// What there is only when something went wrong.
fn others(counts: &Counts) -> String {
    let mut text = String::new();
    for (count, what) in [
        (counts.duplicate, "duplicate"),
        (counts.reordered, "reordered"),
        (counts.corrupted, "corrupted"),
    ] {
        if count > 0 {
            text += &format!("  {what} {count}");
        }
    }
    if counts.late > 0 {
        let late = 100.0 * share(counts.late, counts.sent);
        text += &format!("  fell behind {late:.2} %");
    }
    text
}

/// Adds the fields of one object to another.
pub fn merge(line: &mut Value, more: Value) {
    if let (Value::Object(line), Value::Object(more)) = (line, more) {
        line.extend(more);
    }
}
