//! Rows of the comparison of probes: a tool, where the measured functions lie, how they are
//! called, and what a call costs beyond the bare program.
use crate::not_measured::NotMeasured;
use crate::table::Table;
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
    /// family in turn; `l` = in the shared object; `tree_e` = a tree of 31 calls.
    pub phase: String,
    /// Ticks per call of the bare program, median.
    pub bare: f64,
    #[serde(flatten)]
    pub difference: Difference,
}

/// A headline figure against its goal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    pub name: &'static str,
    pub measured: Option<f64>,
    /// Upper bound.
    pub goal: f64,
    pub met: Option<bool>,
}

impl Goal {
    pub fn at_most(name: &'static str, measured: Option<f64>, goal: f64) -> Goal {
        Goal {
            name,
            measured,
            goal,
            met: measured.map(|m| m <= goal),
        }
    }
}

pub fn find<'a>(rows: &'a [Row], tool: &str, probe: &str, phase: &str) -> Option<&'a Row> {
    rows.iter()
        .find(|r| r.tool == tool && r.probe == probe && r.phase == phase)
}

/// All of it for people.
pub fn table(rows: &[Row], goals: &[Goal], not_measured: &[NotMeasured]) -> String {
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
    if !goals.is_empty() {
        out.push('\n');
    }
    for goal in goals {
        let (value, verdict) = match (goal.measured, goal.met) {
            (Some(v), Some(true)) => (format!("{v:.2}"), "met"),
            (Some(v), _) => (format!("{v:.2}"), "missed"),
            (None, _) => ("-".to_string(), "not measured"),
        };
        let _ = writeln!(
            out,
            "{:<18} {value:>9}   goal <= {:<8.2} {verdict}",
            goal.name, goal.goal
        );
    }
    if !not_measured.is_empty() {
        out.push_str("\nnot measured:\n");
    }
    for missing in not_measured {
        let _ = writeln!(out, "  {}: {}", missing.what, missing.reason);
    }
    out
}
