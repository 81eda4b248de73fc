//! Rows of the comparison of probes: a tool, where the measured functions lie, how they are
//! called, and what a call costs beyond the bare program.
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::table::{Table, closing};
use hopscope_compare::stats::Difference;
use serde::Serialize;
use std::fmt::Write;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// "hopscope", "ld --wrap" …
    pub tool: String,
    /// "record" (two records a call) or "empty" (the hooks alone) or what the tool does.
    pub probe: String,
    /// Name of the phase: `hot_e5` = the same 5-instruction function of the executable, each
    /// call with the result of the one before; `indep_` = independent arguments; `rr_` = all of a
    /// family in turn; `l` = in the shared object; `tree_e` = a tree of 31 calls; `pipe_e` =
    /// ten stages that a function calls right behind each other.
    pub phase: String,
    /// Ticks per call of the bare program, median.
    pub bare: f64,
    #[serde(flatten)]
    pub difference: Difference,
}

pub fn find<'a>(rows: &'a [Row], tool: &str, probe: &str, phase: &str) -> Option<&'a Row> {
    rows.iter()
        .find(|r| r.tool == tool && r.probe == probe && r.phase == phase)
}

/// All of it for people.
pub(crate) fn table(rows: &[Row], goals: &[Goal], not_measured: &[NotMeasured]) -> String {
    let mut out = String::from(
        "ticks per call, net of the bare program: median (10th .. 90th percentile of repetitions)\n\n",
    );
    let head = [
        "tool",
        "probe",
        "phase",
        "bare",
        "net (p10 .. p90)",
        "bare against bare",
        "",
    ];
    let mut table = Table::new(3, head);
    for row in rows {
        let d = &row.difference;
        let noise = if d.within_noise {
            "no difference beyond noise"
        } else {
            ""
        };
        table.row([
            row.tool.clone(),
            row.probe.clone(),
            row.phase.clone(),
            format!("{:.2}", row.bare),
            format!(
                "{:+.2} ({:+.2} .. {:+.2})",
                d.net.median, d.net.p10, d.net.p90
            ),
            format!("{:+.2} .. {:+.2}", d.control.p10, d.control.p90),
            noise.to_owned(),
        ]);
    }
    let _ = write!(out, "{table}");
    out.push('\n');
    out + &closing(goals, not_measured)
}
