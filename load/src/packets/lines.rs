//! What a run says: a line for each interval, a summary. Each is one value, serialised for programs, and shown for people.
use super::run::RunResult;
use super::tally::{Interval, PacketCounts};
use crate::interval::{marked, share, time};
use hopscope_event::{Tsc, TscFrequency};
use hopscope_openloop::latency::Percentiles;
use serde::Serialize;
use std::fmt;

/// What all lines share.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    pub frequency: TscFrequency,
    pub start: Tsc,
    /// False when nothing is received: then losses and latencies are not known.
    pub receives: bool,
}

/// What is `None` is not known: nothing is received.
#[derive(Debug, Serialize)]
struct Packets {
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

#[derive(Debug, Serialize)]
pub struct IntervalLine {
    start_s: f64,
    #[serde(skip)]
    end_s: f64,
    length_s: f64,
    warmup: bool,
    /// `None`: as fast as the port takes packets.
    asked_per_s: Option<f64>,
    achieved_per_s: f64,
    #[serde(flatten)]
    packets: Packets,
}

#[derive(Debug, Serialize)]
pub struct SummaryLine {
    seconds: f64,
    asked: Option<f64>,
    asked_per_s: Option<f64>,
    achieved_per_s: f64,
    matched: Option<u64>,
    unsent: u64,
    warmup_sent: u64,
    warmup_lost: Option<u64>,
    before_sent: u64,
    foreign: u64,
    damaged: u64,
    after_lost: u64,
    too_old: u64,
    given_up_early: u64,
    port_full: u64,
    window_full: u64,
    sender_failed: u64,
    receiver_dropped: u64,
    receiver_cut: u64,
    interrupted: bool,
    #[serde(flatten)]
    packets: Packets,
}

impl Lines {
    fn seconds(&self, from: Tsc, to: Tsc) -> f64 {
        (to - from) as f64 / self.frequency.0 as f64
    }

    fn packets(&self, counts: &PacketCounts) -> Packets {
        let known = |count: u64| self.receives.then_some(count);
        Packets {
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
        }
    }

    pub fn interval(&self, interval: &Interval, asked: Option<f64>) -> IntervalLine {
        let seconds = self.seconds(interval.start, interval.end);
        IntervalLine {
            start_s: self.seconds(self.start, interval.start),
            end_s: self.seconds(self.start, interval.end),
            length_s: seconds,
            warmup: interval.warm_up,
            asked_per_s: asked.map(|asked| per_s(asked, seconds)),
            achieved_per_s: per_s(interval.counts.sent as f64, seconds),
            packets: self.packets(&interval.counts),
        }
    }

    pub fn summary(&self, outcome: &RunResult) -> SummaryLine {
        let seconds = self.seconds(outcome.measured_from, outcome.ended).max(0.0);
        SummaryLine {
            seconds,
            asked: outcome.asked,
            asked_per_s: outcome.asked.map(|asked| per_s(asked, seconds)),
            achieved_per_s: per_s(outcome.total.sent as f64, seconds),
            matched: self.receives.then_some(outcome.total.received),
            unsent: outcome.sender.unsent,
            warmup_sent: outcome.warm_up.sent,
            warmup_lost: self.receives.then_some(outcome.warm_up.lost),
            before_sent: outcome.total.before_sent,
            foreign: outcome.strays.foreign,
            damaged: outcome.strays.damaged,
            after_lost: outcome.strays.after_lost,
            too_old: outcome.strays.too_old,
            given_up_early: outcome.strays.given_up_early,
            port_full: outcome.sender.port_full,
            window_full: outcome.sender.window_full,
            sender_failed: outcome.sender_port.send_failed,
            receiver_dropped: outcome.receiver_port.receive_dropped,
            receiver_cut: outcome.receiver_port.receive_cut,
            interrupted: outcome.interrupted,
            packets: self.packets(&outcome.total),
        }
    }
}

/// `   3 s  asked 10000/s  sent 10000/s  lost 0  p50 21.4 us  p99 80.1 us`
impl fmt::Display for IntervalLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = &self.packets;
        let asked = self
            .asked_per_s
            .map_or("max".into(), |asked| format!("{asked:.0}/s"));
        let (end_s, achieved) = (self.end_s, self.achieved_per_s);
        write!(f, "{end_s:>6.1} s  asked {asked}  sent {achieved:.0}/s")?;
        if let (Some(lost), Some(figures)) = (packets.lost, &packets.latency) {
            let late = share(packets.late, packets.sent);
            let p50 = marked(figures.p50_ns, 0.5, late);
            let p99 = marked(figures.p99_ns, 0.99, late);
            write!(f, "  lost {lost}  p50 {p50}  p99 {p99}")?;
        }
        packets.damage(f)?;
        if packets.behind {
            let late = 100.0 * share(packets.late, packets.sent);
            write!(f, "  fell behind {late:.2} %")?;
        }
        f.write_str(if self.warmup { "  (warm-up)" } else { "" })
    }
}

/// Several lines.
impl fmt::Display for SummaryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = &self.packets;
        write!(f, "sent {} in {:.3} s", packets.sent, self.seconds)?;
        write!(f, ", {:.0}/s", self.achieved_per_s)?;
        match self.asked_per_s {
            Some(asked) => write!(f, " of {asked:.0}/s asked")?,
            None => f.write_str(" (as fast as the port takes them)")?,
        }
        if self.unsent > 0 {
            write!(f, "; {} were due and never sent", self.unsent)?;
        }
        let late = share(packets.late, packets.sent);
        if packets.behind {
            let (percent, worst) = (100.0 * late, time(packets.worst_late_ns));
            write!(
                f,
                "\nfell behind: {} ({percent:.2} %) late, by up to {worst}",
                packets.late
            )?;
        }
        let (Some(received), Some(lost)) = (packets.received, packets.lost) else {
            return Ok(());
        };
        let percent = 100.0 * share(lost, packets.sent);
        write!(f, "\nreceived {received}, lost {lost} ({percent:.4} %)")?;
        packets.damage(f)?;
        for (name, figures) in [
            ("latency, from the intended time:", &packets.latency),
            ("transit, from sending:          ", &packets.transit),
        ] {
            if let Some(figures) = figures {
                write!(f, "\n{name}")?;
                percentiles(f, figures, late)?;
            }
        }
        for (count, what) in self.anomalies() {
            if count > 0 {
                write!(f, "\n{count} {what}")?;
            }
        }
        Ok(())
    }
}

impl SummaryLine {
    fn anomalies(&self) -> [(u64, &'static str); 10] {
        [
            (self.foreign, "foreign frames"),
            (self.damaged, "frames too damaged to say which"),
            (
                self.after_lost,
                "packets that came after they were given up as lost",
            ),
            (self.too_old, "arrivals of packets long past"),
            (
                self.given_up_early,
                "packets given up early: too many on their way",
            ),
            (
                self.receiver_dropped,
                "frames dropped by the receiving port itself: some of the lost",
            ),
            (self.receiver_cut, "frames cut by the receiving port"),
            (
                self.sender_failed,
                "frames given up by the sending port: some of the lost",
            ),
            (
                self.before_sent,
                "packets that arrived before they were sent, by the port's clock",
            ),
            (
                self.window_full,
                "times the matcher did not keep up with the sender",
            ),
        ]
    }
}

impl Packets {
    /// What there is only when something went wrong.
    fn damage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, what) in [
            (self.duplicate, "duplicate"),
            (self.reordered, "reordered"),
            (self.corrupted, "corrupted"),
        ] {
            if let Some(count @ 1..) = count {
                write!(f, "  {what} {count}")?;
            }
        }
        Ok(())
    }
}

fn percentiles(f: &mut fmt::Formatter<'_>, of: &Percentiles, late: f64) -> fmt::Result {
    for (label, ns, quantile) in [
        ("p50", of.p50_ns, 0.5),
        ("p90", of.p90_ns, 0.9),
        ("p99", of.p99_ns, 0.99),
        ("p99.9", of.p99_9_ns, 0.999),
        ("max", of.max_ns, 1.0),
    ] {
        write!(f, "  {label} {}", marked(ns, quantile, late))?;
    }
    write!(f, "  n {}", of.count)
}

fn per_s(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}
