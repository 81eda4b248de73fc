//! The windows of all rounds: what one policy has over another, and the rows of the table.
use super::device::{EACH, POLICIES, Policy, number_of};
use super::traffic::Traffic;
use super::window::{Queue, Run};
use crate::ratio::ratio;
use crate::vnet::load::Load;
use hopscope_compare::median::Interval;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use std::collections::BTreeMap;

/// All windows of one policy under one kind of traffic: medians, and of packets the sum.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) load: String,
    pub(super) unit: &'static str,
    pub(super) offload: bool,
    pub(super) policy: Policy,
    pub(super) value: Spread,
    /// To `each` in the same round; the ends of the interval are null where rounds are too few.
    pub(super) vs_each: Option<Interval>,
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) tx: PerPacket,
    pub(super) rx: PerPacket,
    /// For a packet of either queue.
    pub(super) interrupts_per_packet: Option<f64>,
    pub(super) back_cpu_ns_per_packet: Option<f64>,
    pub(super) back_switches_per_packet: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct PerPacket {
    pub(super) packets: f64,
    /// `None` without packets.
    pub(super) kicks: Option<f64>,
    pub(super) calls: Option<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<(bool, Traffic, usize), Vec<Run>>);

impl Runs {
    pub(super) fn add(&mut self, offload: bool, traffic: Traffic, policy: usize, run: Run) {
        let runs = self.0.entry((offload, traffic, policy)).or_default();
        runs.push(run);
    }

    pub(super) fn of(&self, offload: bool, traffic: Traffic, name: &str) -> Option<&[Run]> {
        let key = (offload, traffic, number_of(name)?);
        self.0.get(&key).map(Vec::as_slice)
    }

    /// Of the same rounds.
    pub(super) fn ratio(
        &self,
        offload: bool,
        traffic: Traffic,
        (of, to): (&str, &str),
        what: impl Fn(&Run) -> f64,
    ) -> Option<Interval> {
        let of = self.of(offload, traffic, of)?.iter().map(&what);
        let to = self.of(offload, traffic, to)?.iter().map(&what);
        ratio(of.zip(to))
    }

    /// Kinds of traffic that were measured.
    pub(super) fn traffic(&self) -> Vec<(bool, Traffic)> {
        let mut all: Vec<_> = self.0.keys().map(|(o, t, _)| (*o, *t)).collect();
        all.dedup();
        all
    }

    /// But for datagrams: a socket whose buffer is full refuses them, when the guest stood still for a while.
    pub(super) fn failures(&self) -> f64 {
        let all = self.0.iter();
        let asked = all.filter(|((_, traffic, _), _)| !matches!(traffic.load, Load::Steady(_)));
        asked.flat_map(|(_, runs)| runs).map(|run| run.failed).sum()
    }

    pub(super) fn disagreements(&self) -> usize {
        let runs = self.0.values().flatten();
        runs.filter(|run| !run.ends_agree).count()
    }

    pub(super) fn windows(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |((offload, traffic, n), runs): (&(bool, Traffic, usize), &Vec<Run>)| {
            let policy = POLICIES[*n];
            let spread = |what: fn(&Run) -> f64| {
                let values: Vec<f64> = runs.iter().map(what).collect();
                Spread::of(&values)
            };
            let median = |what: fn(&Run) -> Option<f64>| {
                let values: Vec<f64> = runs.iter().filter_map(what).collect();
                Some(Spread::of(&values)?.median)
            };
            let queue = |of: fn(&Run) -> Queue| {
                let sum = |what: fn(Queue) -> f64| runs.iter().map(|r| what(of(r))).sum::<f64>();
                let packets = sum(|q| q.packets);
                let each = |n: f64| (packets > 0.0).then(|| n / packets);
                PerPacket {
                    packets,
                    kicks: each(sum(|q| q.kicks)),
                    calls: each(sum(|q| q.calls)),
                }
            };
            let (tx, rx) = (queue(|run| run.tx), queue(|run| run.rx));
            let packets = tx.packets + rx.packets;
            let each = |what: fn(&Run) -> f64| {
                let sum: f64 = runs.iter().map(what).sum();
                (packets > 0.0).then(|| sum / packets)
            };
            let over = (policy.name, EACH);
            Some(Row {
                load: traffic.name(),
                unit: traffic.load.unit(),
                offload: *offload,
                policy,
                value: spread(|run| run.value)?,
                vs_each: self.ratio(*offload, *traffic, over, |run| run.value),
                p50_us: median(|run| run.p50_us),
                p99_us: median(|run| run.p99_us),
                tx,
                rx,
                interrupts_per_packet: each(|run| run.interrupts),
                back_cpu_ns_per_packet: each(|run| run.back.cpu_ns),
                back_switches_per_packet: each(|run| run.back.switches),
            })
        };
        self.0.iter().filter_map(row).collect()
    }
}

pub(super) fn tx_calls(run: &Run) -> f64 {
    run.tx.calls / run.tx.packets
}

pub(super) fn rx_calls(run: &Run) -> f64 {
    run.rx.calls / run.rx.packets
}

pub(super) fn tx_kicks(run: &Run) -> f64 {
    run.tx.kicks / run.tx.packets
}
