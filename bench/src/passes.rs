//! Passes over the phases of the measured program, with a tool and without.
use crate::error::Result;
use crate::program::Target;
use crate::rows::Row;
use hopscope_compare::stats::{Difference, Spread};
use std::collections::BTreeMap;

/// Phase name to ticks per call (median of batches).
pub(crate) type Pass = BTreeMap<String, f64>;

/// Phases of a tool that is a separate build and can't see calls within one object file.
pub(crate) const REBUILT: [&str; 8] = [
    "hot_e5", "indep_e5", "rr_e5", "hot_e20", "rr_e20", "hot_e100", "rr_e100", "rr_emix",
];

pub(crate) fn pass(target: &mut Target, phases: &[&str], milliseconds: u64) -> Result<Pass> {
    phases
        .iter()
        .map(|phase| Ok((phase.to_string(), target.run(phase, milliseconds)?.median)))
        .collect()
}

/// Passes of one tool between passes of the bare program.
#[derive(Debug, Default)]
pub(crate) struct Pairs(BTreeMap<String, Vec<(f64, f64, f64)>>);

impl Pairs {
    pub(crate) fn add(&mut self, before: &Pass, measured: &Pass, after: &Pass) {
        for (phase, ticks) in measured {
            if let (Some(b), Some(a)) = (before.get(phase), after.get(phase)) {
                self.0
                    .entry(phase.clone())
                    .or_default()
                    .push((*b, *ticks, *a));
            }
        }
    }

    pub(crate) fn rows(&self, tool: &str, probe: &str, order: &[&str]) -> Vec<Row> {
        order
            .iter()
            .filter_map(|phase| {
                let pairs = self.0.get(*phase)?;
                let bare: Vec<f64> = pairs.iter().flat_map(|(b, _, a)| [*b, *a]).collect();
                Some(Row {
                    tool: tool.into(),
                    probe: probe.into(),
                    phase: phase.to_string(),
                    bare: Spread::of(&bare)?.median,
                    difference: Difference::of(pairs)?,
                })
            })
            .collect()
    }
}
