//! What the probes cost at each density, beside the model.
use super::latency::Latency;
use super::probe_selection::Density;
use super::window::Pair;
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::table::{Table, closing, spread};
use hopscope_compare::output::Summary;
use hopscope_compare::stats::{Difference, Spread};
use serde::Serialize;
use serde_json::{Map, json};
use std::fmt::Write;

/// One network function at one density.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Level {
    network_function: &'static str,
    density: String,
    #[serde(skip)]
    per_batch: bool,
    functions: usize,
    probe_pairs_per_packet: f64,
    bare_ns: f64,
    added_ns: Difference,
    /// Of stamps alone, at the same places.
    stamps_added_ns: Difference,
    lost_percent: f64,
}

impl Level {
    /// `None` of no rounds.
    pub(super) fn of(
        network_function: &'static str,
        density: Density,
        functions: usize,
        pairs: &[Pair],
    ) -> Option<Level> {
        let median = |of: fn(&Pair) -> f64| {
            Some(Spread::of(&pairs.iter().map(of).collect::<Vec<_>>())?.median)
        };
        let added = |of: fn(&Pair) -> f64| {
            let triples = pairs.iter().map(|p| (p.before_ns, of(p), p.after_ns));
            Difference::of(&triples.collect::<Vec<_>>())
        };
        Some(Level {
            network_function,
            density: density.to_string(),
            per_batch: density.per_batch,
            functions,
            probe_pairs_per_packet: median(|p| p.probe_pairs_per_packet)?,
            bare_ns: median(|p| (p.before_ns + p.after_ns) / 2.0)?,
            added_ns: added(|p| p.measured_ns)?,
            stamps_added_ns: added(|p| p.stamps_ns)?,
            lost_percent: median(|p| p.lost_percent)?,
        })
    }

    /// Of the packets a second that it handles bare.
    fn throughput_lost_percent(&self) -> f64 {
        let added = self.added_ns.net.median;
        100.0 * added / (self.bare_ns + added)
    }

    /// What the floor of so many pairs adds to a packet.
    fn model_ns(&self, floor_ns: f64) -> f64 {
        self.probe_pairs_per_packet * floor_ns
    }
}

pub(super) struct Figures {
    pub(super) tsc_hz: f64,
    /// Ticks of a pair of bare stamps.
    pub(super) floor: Option<Spread>,
    /// How many were to be measured.
    pub(super) network_functions: usize,
    pub(super) levels: Vec<Level>,
    pub(super) latency: Option<Latency>,
    pub(super) not_measured: Vec<NotMeasured>,
}

const LOSS_VS_MODEL_GOAL: f64 = 1.3;
const LOST_PERCENT_GOAL: f64 = 10.0;
const LATENCY_PERCENT_GOAL: f64 = 10.0;
const RANK_CORRELATION_GOAL: f64 = 0.95;

impl Figures {
    fn floor_ns(&self) -> f64 {
        self.floor
            .map_or(f64::NAN, |floor| floor.median / self.tsc_hz * 1e9)
    }

    /// Time added over the model's, of all densities of one network function together: the sum says
    /// most where most is added, so noise at low densities has little weight.
    fn loss_vs_model(&self, name: &str) -> Option<f64> {
        let of = || self.levels.iter().filter(|l| l.network_function == name);
        let model: f64 = of().map(|l| l.model_ns(self.floor_ns())).sum();
        let added: f64 = of().map(|l| l.added_ns.net.median).sum();
        (model > 0.0).then(|| added / model)
    }

    /// The same over what stamps alone add in place.
    fn loss_vs_stamps(&self, name: &str) -> Option<f64> {
        let of = || self.levels.iter().filter(|l| l.network_function == name);
        let stamps: f64 = of().map(|l| l.stamps_added_ns.net.median).sum();
        let added: f64 = of().map(|l| l.added_ns.net.median).sum();
        (stamps > 0.0).then(|| added / stamps)
    }

    pub(super) fn summary(self) -> Summary {
        let mut names: Vec<&str> = self.levels.iter().map(|l| l.network_function).collect();
        names.dedup();
        let by_name = |of: &dyn Fn(&str) -> Option<f64>| -> Map<_, _> {
            let each = names.iter().map(|name| (name.to_string(), json!(of(name))));
            each.collect()
        };
        let worst = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
        let loss_vs_model = worst(&mut names.iter().filter_map(|n| self.loss_vs_model(n)));
        let loss_vs_stamps = worst(&mut names.iter().filter_map(|n| self.loss_vs_stamps(n)));
        let shared = self.levels.iter().filter(|l| l.per_batch);
        let lost_percent = worst(&mut shared.map(Level::throughput_lost_percent));
        let levels: Vec<_> = self
            .levels
            .iter()
            .map(|level| {
                let mut row = json!(level);
                row["model_ns"] = json!(level.model_ns(self.floor_ns()));
                row["throughput_lost_percent"] = json!(level.throughput_lost_percent());
                row
            })
            .collect();
        let latency = self.latency.as_ref();
        let off_percent = latency.map(|l| 100.0 * (l.corrected_ratio - 1.0).abs());
        let correlation = latency.map(|l| l.rank_correlation);
        let goals = [
            Goal::at_most("loss_vs_model", loss_vs_model, LOSS_VS_MODEL_GOAL),
            Goal::at_most("throughput_lost_percent", lost_percent, LOST_PERCENT_GOAL),
            Goal::at_most(
                "latency_mean_off_percent",
                off_percent,
                LATENCY_PERCENT_GOAL,
            ),
            Goal::at_least(
                "latency_rank_correlation",
                correlation,
                RANK_CORRELATION_GOAL,
            ),
        ];
        let table = self.table(&goals);
        let fields = json!({
            "loss_vs_model": loss_vs_model,
            "loss_vs_model_by_network_function": by_name(&|n| self.loss_vs_model(n)),
            "loss_vs_stamps_in_place": loss_vs_stamps,
            "loss_vs_stamps_in_place_by_network_function": by_name(&|n| self.loss_vs_stamps(n)),
            "throughput_lost_percent": lost_percent,
            "floor_ticks": self.floor,
            "levels": levels,
            "latency_mean_off_percent": off_percent,
            "latency_rank_correlation": correlation,
            "latency": self.latency,
            "goals": goals,
            "not_measured": self.not_measured,
        });
        Summary {
            unit: json!({"loss_vs_model": "ratio", "loss_vs_stamps_in_place": "ratio", "throughput_lost_percent": "%",
                         "latency_mean_off_percent": "%", "latency_rank_correlation": "Spearman",
                         "floor_ticks": "tsc", "levels": "ns"}),
            fields,
            table,
            complete: names.len() == self.network_functions && latency.is_some(),
        }
    }

    fn table(&self, goals: &[Goal]) -> String {
        let mut out = format!(
            "processor time of the worker for each packet, batches of {}; medians of rounds\n\
             model: probe pairs a packet x {:.1} ns (two bare rdtsc in a loop)\n\
             stamps: probes at the same places that read the clock and store nothing\n\n",
            crate::function::BATCH,
            self.floor_ns(),
        );
        let head = [
            "",
            "",
            "funcs",
            "pairs",
            "bare ns",
            "added ns",
            "model ns",
            "x",
            "stamps ns",
            "x",
            "lost",
            "",
        ];
        let mut rows = Table::new(2, head);
        for l in &self.levels {
            let (net, model) = (l.added_ns.net, l.model_ns(self.floor_ns()));
            let stamps = l.stamps_added_ns.net.median;
            let noise = if l.added_ns.within_noise {
                "within noise"
            } else {
                ""
            };
            rows.row([
                l.network_function.to_owned(),
                l.density.to_string(),
                l.functions.to_string(),
                format!("{:.3}", l.probe_pairs_per_packet),
                format!("{:.1}", l.bare_ns),
                spread(net, 1.0, 1),
                format!("{model:.1}"),
                format!("{:.2}", net.median / model),
                format!("{stamps:.1}"),
                format!("{:.2}", net.median / stamps),
                format!("{:.1}%", l.throughput_lost_percent()),
                noise.to_owned(),
            ]);
        }
        let _ = writeln!(out, "{rows}");
        if let Some(latency) = &self.latency {
            let _ = writeln!(out, "{}", latency.text());
        }
        out + &closing(goals, &self.not_measured)
    }
}
