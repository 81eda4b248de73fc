//! Records a second of each view, and its memory.
use super::resource_usage::Used;
use crate::goal::Goal;
use crate::table::{Table, closing, spread};
use hopscope_compare::output::Summary;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

const RECORDS_PER_S_GOAL: f64 = 10e6;
const PEAK_RSS_MIB_GOAL: f64 = 1024.0;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Recording {
    pub(super) bytes: u64,
    pub(super) records: f64,
    pub(super) lost: f64,
}

#[derive(Debug, Clone)]
pub(super) struct View {
    name: &'static str,
    pub(super) rounds: Vec<Used>,
}

impl View {
    pub(super) fn new(name: &'static str) -> View {
        View {
            name,
            rounds: Vec::new(),
        }
    }

    fn spread(&self, of: impl Fn(&Used) -> f64) -> Option<Spread> {
        Spread::of(&self.rounds.iter().map(of).collect::<Vec<_>>())
    }

    fn peak_rss_mib(&self) -> Option<f64> {
        self.rounds
            .iter()
            .map(|used| used.peak_rss_mib)
            .max_by(f64::total_cmp)
    }
}

pub(super) struct Figures {
    pub(super) recording: Recording,
    pub(super) views: Vec<View>,
    pub(super) reads: Vec<f64>,
}

impl Figures {
    /// Of one processor.
    fn records_per_s(&self, view: &View) -> Option<Spread> {
        view.spread(|used| self.recording.records / used.cpu_s)
    }

    pub(super) fn summary(self) -> Summary {
        let slowest = self.views.iter().filter_map(|v| self.records_per_s(v));
        let records_per_s = slowest.map(|s| s.median).min_by(f64::total_cmp);
        let peaks = self.views.iter().filter_map(View::peak_rss_mib);
        let peak_rss_mib = peaks.max_by(f64::total_cmp);
        let goals = [
            Goal::at_least("records_per_s", records_per_s, RECORDS_PER_S_GOAL),
            Goal::at_most("peak_rss_mib", peak_rss_mib, PEAK_RSS_MIB_GOAL),
        ];
        let views: Vec<Value> = self
            .views
            .iter()
            .map(|view| {
                json!({
                    "view": view.name,
                    "records_per_s": self.records_per_s(view),
                    "wall_s": view.spread(|used| used.wall_s),
                    "peak_rss_mib": view.peak_rss_mib(),
                })
            })
            .collect();
        Summary {
            unit: json!({"records_per_s": "records a second of processor time",
                         "peak_rss_mib": "MiB", "views": {"wall_s": "s"},
                         "read_floor_mib_s": "MiB/s", "recording": {"bytes": "bytes"}}),
            table: self.table(&goals),
            fields: json!({
                "records_per_s": records_per_s,
                "peak_rss_mib": peak_rss_mib,
                "views": views,
                "recording": self.recording,
                "read_floor_mib_s": Spread::of(&self.reads),
                "goals": goals,
            }),
            complete: records_per_s.is_some() && peak_rss_mib.is_some_and(|peak| peak > 0.0),
        }
    }

    fn table(&self, goals: &[Goal]) -> String {
        let Recording {
            bytes,
            records,
            lost,
        } = self.recording;
        let mut out = format!(
            "a recording of {:.2} GB: {:.0} M records, {lost:.0} lost; {:.2} bytes each\n\
             reading the file alone: {:.0} MiB/s; medians of rounds, the largest memory\n\n",
            bytes as f64 / 1e9,
            records / 1e6,
            bytes as f64 / records,
            Spread::of(&self.reads).map_or(f64::NAN, |s| s.median),
        );
        let mut rows = Table::new(1, ["report by", "M records/s of CPU", "wall s", "MiB"]);
        for view in &self.views {
            let (Some(speed), Some(wall)) =
                (self.records_per_s(view), view.spread(|used| used.wall_s))
            else {
                continue;
            };
            rows.row([
                view.name.to_owned(),
                spread(speed, 1e6, 1),
                format!("{:.2}", wall.median),
                format!("{:.0}", view.peak_rss_mib().unwrap_or(f64::NAN)),
            ]);
        }
        let _ = write!(out, "{rows}\n{}", closing(goals, &[]));
        out
    }
}
