//! What a browser takes for the page, against the goals.
use super::recording::PACKETS;
use crate::goal::Goal;
use crate::table::{Table, closing, spread};
use hopscope_compare::output::Summary;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;

const FIRST_PAINT_MS: f64 = 2_000.0;
const PAGE_BYTES: f64 = 8e6;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Round {
    /// Something of the page is to be seen.
    pub(super) first_paint_ms: f64,
    /// All is drawn and can be used.
    pub(super) ready_ms: f64,
    /// The timeline drawn anew, over 60 widths of the view.
    pub(super) frame_p50_ms: f64,
    pub(super) frame_max_ms: f64,
    /// That the page holds one by one.
    pub(super) packets: u64,
    pub(super) runs: u64,
}

pub(super) struct Figures {
    pub(super) rounds: Vec<Round>,
    pub(super) calls: u64,
    pub(super) page_bytes: u64,
    /// What `hopscope report --html` took.
    pub(super) made_s: f64,
    pub(super) browser: String,
}

impl Figures {
    fn spread(&self, of: fn(&Round) -> f64) -> Option<Spread> {
        Spread::of(&self.rounds.iter().map(of).collect::<Vec<_>>())
    }

    pub(super) fn summary(self) -> Summary {
        let times = [
            ("first_paint_ms", self.spread(|r| r.first_paint_ms)),
            ("ready_ms", self.spread(|r| r.ready_ms)),
            ("frame_p50_ms", self.spread(|r| r.frame_p50_ms)),
            ("frame_max_ms", self.spread(|r| r.frame_max_ms)),
        ];
        let packets = self.rounds.iter().map(|r| r.packets).min().unwrap_or(0);
        let runs = self.rounds.iter().map(|r| r.runs).min().unwrap_or(0);
        let first_paint = times[0].1.map(|s| s.median);
        let goals = [
            Goal::at_most("first_paint_ms", first_paint, FIRST_PAINT_MS),
            Goal::at_most("page_bytes", Some(self.page_bytes as f64), PAGE_BYTES),
            Goal::at_least("packets", Some(packets as f64), PACKETS as f64),
        ];
        let mut fields = json!({
            "page_bytes": self.page_bytes, "packets": packets, "runs": runs, "calls": self.calls,
            "made_s": self.made_s, "browser": self.browser, "goals": goals,
        });
        for (name, spread) in times {
            fields[name] = json!(spread);
        }
        let mut table = format!(
            "a page of {packets} packets, {runs} runs and {} calls (made up): {:.2} MB, written in {:.1} s\n\
             {} without a window, started anew for each of {} rounds; medians (10th .. 90th percentile)\n\n",
            self.calls,
            self.page_bytes as f64 / 1e6,
            self.made_s,
            self.browser,
            self.rounds.len()
        );
        let mut rows = Table::new(1, ["", "ms"]);
        for (name, times) in times {
            let text = times.map_or("not measured".to_owned(), |s| spread(s, 1.0, 1));
            rows.row([name.to_owned(), text]);
        }
        let _ = write!(table, "{rows}\n{}", closing(&goals, &[]));
        Summary {
            unit: json!({"*_ms": "from the begin of the navigation; frame: for one drawing", "made_s": "s"}),
            fields,
            table,
            complete: times.iter().all(|(_, spread)| spread.is_some()),
        }
    }
}
