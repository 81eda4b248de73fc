//! The runs over networks, by load: what one policy has over another, and the rows of the table.
use super::cpu_usage::{Thread, Vmstat};
use super::load::Load;
use super::policy::{EVENT_IDX, OF_ENDS, Policy};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use std::collections::BTreeMap;

/// Medians of the runs of one policy under one load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) load: String,
    pub(super) unit: &'static str,
    pub(super) offload: bool,
    pub(super) policy: Policy,
    pub(super) value: Spread,
    /// Ratios in the same round.
    pub(super) vs_event_idx: Option<Spread>,
    /// Of the runs that have one.
    pub(super) p50_us: Option<f64>,
    pub(super) kicks_per_packet: f64,
    pub(super) calls_per_packet: f64,
    pub(super) front_cpu_ns_per_packet: f64,
    pub(super) back_cpu_ns_per_packet: f64,
    pub(super) front_switches_per_packet: f64,
    pub(super) back_switches_per_packet: f64,
    pub(super) vmstat: Vmstat,
}

/// One run of one load under one policy.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Run {
    pub(super) value: f64,
    /// Of a round trip or transaction; of a stream out, until the socket took a message. None of a stream in, and
    /// where nothing came back within the window: its value is 0 then.
    pub(super) p50_us: Option<f64>,
    /// Of both queues, from the back end's counts. A packet is what one header stands before: with
    /// segmentation left undone, up to 64 KiB.
    pub(super) packets: f64,
    /// Requests or connections that failed, answers with other bytes, and one where nothing went in the window.
    pub(super) failed: f64,
    pub(super) kicks_per_packet: f64,
    pub(super) calls_per_packet: f64,
    pub(super) front: Thread,
    pub(super) back: Thread,
    pub(super) vmstat: Vmstat,
}

#[derive(Debug, Default)]
pub(super) struct Networks {
    runs: BTreeMap<(Load, bool, usize), Vec<Run>>,
}

impl Networks {
    pub(super) fn add(&mut self, load: Load, offload: bool, policy: usize, run: Run) {
        self.runs
            .entry((load, offload, policy))
            .or_default()
            .push(run);
    }

    fn of(&self, load: Load, offload: bool, name: &str) -> Option<&[Run]> {
        let n = OF_ENDS.iter().position(|policy| policy.name == name)?;
        self.runs.get(&(load, offload, n)).map(Vec::as_slice)
    }

    /// How much more one policy carries than another: ratios of the rounds.
    pub(super) fn ratio(&self, load: Load, offload: bool, of: &str, to: &str) -> Option<Spread> {
        let (of, to) = (self.of(load, offload, of)?, self.of(load, offload, to)?);
        let pairs = of.iter().zip(to).filter(|(_, to)| to.value > 0.0);
        let ratios: Vec<f64> = pairs.map(|(of, to)| of.value / to.value).collect();
        Spread::of(&ratios)
    }

    /// But for datagrams: a full device refuses them, which is how as many as go is found.
    pub(super) fn failures(&self) -> f64 {
        let counted = self
            .runs
            .iter()
            .filter(|((load, ..), _)| *load != Load::Udp);
        counted
            .flat_map(|(_, runs)| runs)
            .map(|run| run.failed)
            .sum()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |((load, offload, n), runs): (&(Load, bool, usize), &Vec<Run>)| {
            let spread = |what: &dyn Fn(&Run) -> f64| {
                let values: Vec<f64> = runs.iter().map(what).collect();
                Spread::of(&values)
            };
            let median = |what: &dyn Fn(&Run) -> f64| Some(spread(what)?.median);
            let per_packet =
                |what: &dyn Fn(&Run) -> f64| median(&|run: &Run| what(run) / run.packets.max(1.0));
            let policy = OF_ENDS[*n];
            let known: Vec<f64> = runs.iter().filter_map(|run| run.p50_us).collect();
            Some(Row {
                load: load.name(),
                unit: load.unit(),
                offload: *offload,
                policy,
                value: spread(&|run| run.value)?,
                vs_event_idx: self.ratio(*load, *offload, policy.name, EVENT_IDX),
                p50_us: Spread::of(&known).map(|p50| p50.median),
                kicks_per_packet: median(&|run| run.kicks_per_packet)?,
                calls_per_packet: median(&|run| run.calls_per_packet)?,
                front_cpu_ns_per_packet: per_packet(&|run| run.front.cpu_ns)?,
                back_cpu_ns_per_packet: per_packet(&|run| run.back.cpu_ns)?,
                front_switches_per_packet: per_packet(&|run| run.front.switches)?,
                back_switches_per_packet: per_packet(&|run| run.back.switches)?,
                vmstat: Vmstat {
                    us: median(&|run| run.vmstat.us)?,
                    sy: median(&|run| run.vmstat.sy)?,
                    id: median(&|run| run.vmstat.id)?,
                    wa: median(&|run| run.vmstat.wa)?,
                    interrupts: median(&|run| run.vmstat.interrupts)?,
                    cs: median(&|run| run.vmstat.cs)?,
                },
            })
        };
        self.runs.iter().filter_map(row).collect()
    }
}
