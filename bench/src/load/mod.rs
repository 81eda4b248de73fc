//! `bench load`: how fast the generator is, and whether what it measures is true: packets a second
//! sent, matched and turned round in memory; its round trips beside those of a minimal C client; the
//! delay of a forwarder whose delay is known.
mod commands;
mod delay;
pub(crate) mod network;
mod other_tools;
mod packets;
pub(crate) mod programs;
mod report;
mod round_trips;

use crate::Settings;
use crate::error::Result;
use crate::not_measured::NotMeasured;
use crate::program::Compiler;
use commands::Load;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use programs::Programs;
pub(crate) use round_trips::{Cable, SERVER};
use serde_json::Value;
use std::collections::BTreeMap;

/// What every part needs.
struct Bench<'a, 'o> {
    settings: &'a Settings,
    load: Load,
    programs: Programs,
    output: &'a mut Output<'o>,
    /// Rounds of a comparison; repetitions of a rate.
    rounds: usize,
    repetitions: usize,
    /// Of tools that run for a whole number of seconds.
    rounds_of_others: usize,
    /// Of one run.
    milliseconds: u64,
}

impl Bench<'_, '_> {
    fn say(&self, what: &str, round: usize, rounds: usize) {
        self.settings
            .say(&format!("{what}, {} of {rounds}", round + 1));
    }

    fn seconds(&self) -> u64 {
        self.milliseconds.div_ceil(1000)
    }

    fn sample(&mut self, fields: Value) -> Result<()> {
        Ok(self.output.sample(fields)?)
    }
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let programs = Programs::build(&settings.build_dir, &Compiler::of_the_system())?;
    let mut bench = Bench {
        settings,
        load: Load::new(&settings.hopscope),
        programs,
        output: &mut output,
        rounds: settings.pick(6, 11, 31),
        rounds_of_others: settings.pick(6, 6, 15),
        repetitions: settings.pick(2, 5, 11),
        milliseconds: settings.pick(20, 200, 500),
    };
    let mut not_measured = Vec::new();
    let mut missing =
        |what: &str, reason: String| not_measured.push(NotMeasured::new(what, reason));
    let mut rates = BTreeMap::new();
    for way in packets::WAYS {
        match packets::measure(&mut bench, way) {
            Ok(rate) => drop(rates.insert(way.name, rate)),
            Err(error) => missing(way.name, error.to_string()),
        }
    }
    let mut or_missing = |what: &str, error: crate::error::Error| missing(what, error.to_string());
    let round_trips = round_trips::measure(&mut bench)
        .map_err(|e| or_missing("rr_overhead_vs_c", e))
        .ok();
    let delay = delay::measure(&mut bench)
        .map_err(|e| or_missing("delay_error_ns", e))
        .ok();
    let mut others = Vec::new();
    for check in other_tools::CHECKS {
        match (check.measure)(&mut bench) {
            Ok(other) => others.push(other),
            Err(error) => or_missing(check.name, error),
        }
    }
    let figures = report::Figures {
        rates,
        round_trips,
        delay,
        others,
        not_measured,
    };
    Ok(output.summary(&host, figures.summary())?)
}
