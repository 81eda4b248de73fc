//! `ld --wrap`: the cheapest of the known ways, at the price of a relink. It reaches only calls
//! that cross an object file.
use crate::Settings;
use crate::error::Result;
use crate::not_measured::NotMeasured;
use crate::passes::{Pairs, Pass, REBUILT, pass};
use crate::program::{Compiler, ProgramPlan, Target, Variant, build};
use crate::rows::Row;
use hopscope_compare::output::Output;
use serde_json::json;

const TOOL: &str = "ld --wrap";

/// The relinked programs, running, so that they are measured in turn with the bare one.
pub(crate) struct Wrapped(Vec<(&'static str, Target, Pairs)>);

impl Wrapped {
    pub(crate) fn prepare(
        settings: &Settings,
        plan: &ProgramPlan,
        compiler: &Compiler,
        not_measured: &mut Vec<NotMeasured>,
    ) -> Wrapped {
        let mut running = Vec::new();
        for (probe, variant) in [
            ("empty", Variant::WrapEmpty),
            ("record", Variant::WrapRecord),
        ] {
            let started = build(&settings.build_dir, plan, compiler, variant)
                .and_then(|program| Target::start(&program));
            match started {
                Ok(target) => running.push((probe, target, Pairs::default())),
                Err(error) => not_measured.push(NotMeasured::new(format!("{TOOL} {probe}"), error)),
            }
        }
        Wrapped(running)
    }

    pub(crate) fn measure(
        &mut self,
        bare_target: &mut Target,
        bare: &Pass,
        repetition: usize,
        ms: u64,
        output: &mut Output<'_>,
    ) -> Result<()> {
        let mut before = bare.clone();
        for (probe, target, pairs) in &mut self.0 {
            let measured = pass(target, &REBUILT, ms)?;
            let after = pass(bare_target, &REBUILT, ms)?;
            pairs.add(&before, &measured, &after);
            output.sample(json!({
                "repetition": repetition,
                "state": format!("{TOOL} {probe}"),
                "ticks_per_call": measured,
            }))?;
            before = after;
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        self.0
            .iter()
            .flat_map(|(probe, _, pairs)| pairs.rows(TOOL, probe, &REBUILT))
            .collect()
    }
}
