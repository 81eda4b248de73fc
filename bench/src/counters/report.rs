//! What each way takes, beside read(2) of the same counter in the same round.
use super::{Examined, Way};
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::table::{Table, closing, spread};
use hopscope_compare::output::Summary;
use hopscope_compare::stats::Spread;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Of the source paper, for a counter of a processor of its time: core cycles by rdpmc, through PAPI, by read(2).
const PUBLISHED_CYCLES: [(&str, f64); 3] = [("rdpmc", 19.0), ("papi", 150.0), ("read", 720.0)];
/// The loop's own cost.
const EMPTY: &str = "empty";
/// So many core cycles, whatever a tick is.
const ADDS: &str = "100 adds";
const CYCLES_OF_ADDS: f64 = 100.0;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Window {
    round: usize,
    #[serde(flatten)]
    way: Way,
    /// TSC ticks of one reading and one turn of the loop.
    ticks: f64,
}

#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) windows: Vec<Window>,
    pub(super) examined: Vec<Examined>,
    pub(super) not_measured: Vec<NotMeasured>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    #[serde(flatten)]
    way: Way,
    /// Without the loop's own.
    ticks: Spread,
    cycles: Option<f64>,
    /// Of read(2) of the same event, in the same round.
    vs_read: Option<Spread>,
}

/// For people.
pub(super) fn name(way: &Way) -> String {
    match &way.event {
        Some(event) => format!("{} of {event}", way.way),
        None => way.way.clone(),
    }
}

/// Ticks without the loop's, by way and round.
type Net = BTreeMap<Way, BTreeMap<usize, f64>>;

impl Figures {
    fn net(&self) -> Net {
        let is_empty = |window: &&Window| window.way.way == EMPTY;
        let empty = self.windows.iter().filter(is_empty);
        let empty: BTreeMap<usize, f64> = empty.map(|w| (w.round, w.ticks)).collect();
        let mut net = Net::new();
        for window in &self.windows {
            if let Some(own) = empty.get(&window.round) {
                let of_way = net.entry(window.way.clone()).or_default();
                of_way.insert(window.round, window.ticks - own);
            }
        }
        net
    }

    fn loop_ticks(&self) -> Option<Spread> {
        let is_empty = |window: &&Window| window.way.way == EMPTY;
        let empty = self.windows.iter().filter(is_empty);
        Spread::of(&empty.map(|w| w.ticks).collect::<Vec<_>>())
    }

    pub(super) fn summary(self) -> Summary {
        let loop_ticks = self.loop_ticks();
        let net = self.net();
        let cycles_per_tick = net.iter().find(|(way, _)| way.way == ADDS);
        let cycles_per_tick = cycles_per_tick
            .and_then(|(_, ticks)| Spread::of(&values(ticks)))
            .map(|ticks| CYCLES_OF_ADDS / ticks.median);
        let rows: Vec<Row> = net
            .iter()
            .filter(|(way, _)| way.way != EMPTY && way.way != ADDS)
            .filter_map(|(way, ticks)| row(&net, way, ticks, cycles_per_tick))
            .collect();
        let of = |way: &str| rows.iter().find(|row| row.way.way == way);
        let rdpmc = of("rdpmc");
        let [(_, rdpmc_cycles), _, (_, read_cycles)] = PUBLISHED_CYCLES;
        let vs_read = |row: Option<&Row>| row.and_then(|r| Some(r.vs_read?.median));
        let goals = [
            Goal::at_most("rdpmc_cycles", rdpmc.and_then(|r| r.cycles), rdpmc_cycles),
            Goal::at_most("rdpmc_vs_read", vs_read(rdpmc), rdpmc_cycles / read_cycles),
        ];
        let complete = self.not_measured.is_empty() && !rows.is_empty();
        let table = table(
            &rows,
            loop_ticks,
            cycles_per_tick,
            &goals,
            &self.not_measured,
        );
        Summary {
            unit: json!({"ticks": "TSC ticks a reading", "cycles": "core cycles a reading", "*_vs_read": "ratio"}),
            fields: json!({
                "rows": rows,
                "loop_ticks": loop_ticks,
                "core_cycles_per_tick": cycles_per_tick,
                "rdpmc_vs_read": vs_read(rdpmc),
                "page_vs_read": vs_read(of("page")),
                "published_cycles": BTreeMap::from(PUBLISHED_CYCLES),
                "examined": self.examined,
                "goals": goals,
                "not_measured": self.not_measured,
            }),
            table,
            complete,
        }
    }
}

fn values(by_round: &BTreeMap<usize, f64>) -> Vec<f64> {
    by_round.values().copied().collect()
}

fn row(net: &Net, way: &Way, ticks: &BTreeMap<usize, f64>, per_tick: Option<f64>) -> Option<Row> {
    let read = Way {
        way: "read".into(),
        event: way.event.clone(),
    };
    let read = net.get(&read);
    let ratios = ticks
        .iter()
        .filter_map(|(round, ticks)| Some(ticks / read?.get(round)?));
    let vs_read = Spread::of(&ratios.collect::<Vec<_>>());
    let ticks = Spread::of(&values(ticks))?;
    Some(Row {
        way: way.clone(),
        ticks,
        cycles: per_tick.map(|n| n * ticks.median),
        vs_read,
    })
}

fn table(
    rows: &[Row],
    loop_ticks: Option<Spread>,
    cycles_per_tick: Option<f64>,
    goals: &[Goal],
    not_measured: &[NotMeasured],
) -> String {
    let mut out = String::from(
        "one reading, back to back, each begins when the one before has its count; medians (10th .. 90th percentile)\n",
    );
    if let (Some(own), Some(cycles)) = (loop_ticks, cycles_per_tick) {
        let own = spread(own, 1.0, 2);
        let _ = writeln!(
            out,
            "the loop's own {own} ticks are taken off; one tick is {cycles:.2} core cycles at the speed it ran\n"
        );
    }
    let mut lines = Table::new(1, ["", "ticks", "cycles", "x of read(2)"]);
    for row in rows {
        lines.row([
            name(&row.way),
            spread(row.ticks, 1.0, 1),
            row.cycles.map_or("-".into(), |n| format!("{n:.0}")),
            row.vs_read.map_or("-".into(), |r| spread(r, 1.0, 4)),
        ]);
    }
    let _ = writeln!(out, "{lines}");
    let published = PUBLISHED_CYCLES.map(|(way, cycles)| format!("{way} {cycles}"));
    let _ = writeln!(
        out,
        "published, of another machine, in cycles: {}\n",
        published.join(", ")
    );
    out + &closing(goals, not_measured)
}
