//! How much of each program was measured, against the goals.
use super::recorded::Recorded;
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::table::{Table, closing};
use hopscope_compare::output::Summary;
use serde::Serialize;
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) program: &'static str,
    /// Output and exit code as without hopscope.
    pub(super) identical: bool,
    pub(super) own_percent: f64,
    /// From the start until everything is measured; reading all files is most of it.
    pub(super) attach_s: Option<f64>,
    pub(super) bare_s: f64,
    /// From there on to its end.
    pub(super) measured_s: Option<f64>,
    pub(super) recorder_peak_rss_mib: f64,
    #[serde(flatten)]
    pub(super) recorded: Recorded,
}

pub(super) fn summary(rows: &[Row], not_measured: &[NotMeasured]) -> Summary {
    let least = |of: fn(&Row) -> f64| rows.iter().map(of).reduce(f64::min);
    let most = |of: fn(&Row) -> f64| rows.iter().map(of).reduce(f64::max);
    let goals = [
        Goal::at_least("programs", Some(rows.len() as f64), 20.0),
        Goal::at_least("own_percent", least(|r| r.own_percent), 99.0),
        Goal::at_most(
            "differing",
            most(|r| f64::from(u8::from(!r.identical))),
            0.0,
        ),
        Goal::at_most("unbalanced", most(|r| r.recorded.unbalanced as f64), 0.0),
    ];
    let head = [
        "program",
        "output",
        "own",
        "refused",
        "% own",
        "all",
        "refused",
        "attach s",
        "MiB",
        "bare s",
        "measured s",
    ];
    let seconds = |s: Option<f64>| s.map_or("-".to_owned(), |s| format!("{s:.2}"));
    let mut table = Table::new(2, head);
    for row in rows {
        let r = &row.recorded;
        table.row([
            row.program.to_owned(),
            if row.identical {
                "identical"
            } else {
                "DIFFERS"
            }
            .to_owned(),
            r.own_accepted.to_string(),
            r.own_refused.to_string(),
            format!("{:.2}", row.own_percent),
            r.accepted.to_string(),
            r.refused.to_string(),
            seconds(row.attach_s),
            format!("{:.0}", row.recorder_peak_rss_mib),
            seconds(Some(row.bare_s)),
            seconds(row.measured_s),
        ]);
    }
    Summary {
        unit: json!({"*_s": "s", "*_percent": "functions accepted, of a hundred", "*_mib": "MiB"}),
        fields: json!({
            "programs": rows.len(),
            "least_own_percent": least(|r| r.own_percent),
            "goals": goals,
            "not_measured": not_measured,
        }),
        table: format!(
            "every function of each program; own: without the C and C++ libraries\n\n{table}\n{}",
            closing(&goals, not_measured)
        ),
        complete: !rows.is_empty()
            && rows
                .iter()
                .all(|r| r.identical && r.recorded.unbalanced == 0),
    }
}
