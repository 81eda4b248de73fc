//! `hopscope check splice`: the known faults of joined sockets, tried on this kernel.
use crate::json::tagged;
use hopscope_splice::trial::{Case, TrialResult, Weight, all};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    state: &'static str,
    found: &'a str,
    means: &'a str,
    splice: &'static str,
}

impl Row<'_> {
    fn of(case: &Case) -> Row<'_> {
        let (state, found) = match &case.outcome {
            TrialResult::Ok(found) => ("ok", found),
            TrialResult::Broken(found) => ("broken", found),
            TrialResult::Unknown(found) => ("unknown", found),
        };
        Row {
            name: case.name,
            state,
            found,
            means: case.means,
            splice: consequence(case.weight),
        }
    }

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "{:<7} {:<15} {}", self.state, self.name, self.found)?;
        if self.state != "ok" {
            writeln!(out, "{:24}means: {}", "", self.means)?;
            writeln!(out, "{:24}so: {}", "", self.splice)?;
        }
        Ok(())
    }
}

/// 1 where something that `splice` cannot do without is broken.
pub(super) fn run(json: bool) -> anyhow::Result<ExitCode> {
    let cases = all()?;
    let mut out = std::io::stdout().lock();
    for case in &cases {
        let row = Row::of(case);
        if json {
            writeln!(out, "{}", tagged("trial", &row)?)?;
        } else {
            row.write(&mut out)?;
        }
    }
    let is_bad =
        |case: &&Case| case.weight == Weight::Vital && !matches!(case.outcome, TrialResult::Ok(_));
    let vital: Vec<&str> = cases.iter().filter(is_bad).map(|case| case.name).collect();
    if !json {
        if vital.is_empty() {
            writeln!(out, "\n`hopscope splice` can join sockets here")?
        } else {
            writeln!(out, "\n`hopscope splice` joins none: {}", vital.join(", "))?
        }
    }
    Ok(ExitCode::from(u8::from(!vital.is_empty())))
}

const fn consequence(weight: Weight) -> &'static str {
    match weight {
        Weight::Vital => "`hopscope splice` joins no socket",
        Weight::Fionread => "`hopscope splice` leaves programs out that ask FIONREAD",
        Weight::Shared => {
            "`hopscope splice` joins ends that wait only with --blocking, and then leaves programs out \
             that were seen to do so"
        }
        Weight::Waits => {
            "`hopscope splice` joins only ends that were seen to receive without waiting (--blocking: all)"
        }
        Weight::Said => "do not join such programs: they cannot be told from outside",
    }
}
