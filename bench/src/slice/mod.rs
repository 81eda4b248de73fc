//! `bench slice`: what hooks in the kernel add to a packet, and whether what they add can be taken off
//! again; `bench case-tcp-send`: where sending over TCP spends its time.
mod duty;
mod flat;
mod hooks;
mod one_core;
mod report;
mod round_trips;
pub mod send;
mod traffic;

use crate::Settings;
use crate::error::{Error, Result};
use crate::not_measured::NotMeasured;
use crate::program::Compiler;
use hooks::Slicer;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use serde_json::Value;
use traffic::Programs;

/// What every part needs.
struct Bench<'a, 'o> {
    settings: &'a Settings,
    slicer: Slicer,
    programs: Programs,
    output: &'a mut Output<'o>,
    rounds: usize,
    /// Of one window.
    milliseconds: u64,
}

impl<'a, 'o> Bench<'a, 'o> {
    fn new(settings: &'a Settings, output: &'a mut Output<'o>) -> Result<Bench<'a, 'o>> {
        Ok(Bench {
            settings,
            slicer: Slicer {
                binary: settings.hopscope.clone(),
                // Of this run: two at once must not take each other's.
                files: settings
                    .build_dir
                    .join(format!("slice-{}", std::process::id())),
            },
            programs: Programs::build(&settings.build_dir, &Compiler::of_the_system())?,
            output,
            rounds: settings.pick(6, 6, 15),
            milliseconds: settings.pick(20, 200, 500),
        })
    }

    fn say(&self, what: &str, round: usize) {
        self.settings
            .say(&format!("{what}, {} of {}", round + 1, self.rounds));
    }

    fn sample(&mut self, fields: Value) -> Result<()> {
        Ok(self.output.sample(fields)?)
    }
}

impl Drop for Bench<'_, '_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.slicer.files);
    }
}

/// The presets and files of regions name these points; the headline is of this one.
const REGIONS: &str = "seven";

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let mut bench = Bench::new(settings, &mut output)?;
    let mut not_measured = Vec::new();
    let mut or_missing = |what: String, error: Error| {
        not_measured.push(NotMeasured::new(what, error));
    };
    let mut sizes = Vec::new();
    for frame_bytes in round_trips::frames(settings) {
        match round_trips::measure(&mut bench, *frame_bytes) {
            Ok(size) => sizes.push(size),
            Err(error) => or_missing(format!("round trips of {frame_bytes} B"), error),
        }
    }
    let one_core = one_core::measure(&mut bench)
        .map_err(|e| or_missing("ns_per_packet_one_core".into(), e))
        .ok();
    let duty = duty::measure(&mut bench)
        .map_err(|e| or_missing("duty_overhead_percent".into(), e))
        .ok();
    let flat = flat::measure(&mut bench)
        .map_err(|e| or_missing("outer_flat_ratio".into(), e))
        .ok();
    drop(bench);
    let figures = report::Figures {
        sizes,
        one_core,
        duty,
        flat,
        not_measured,
    };
    Ok(output.summary(&host, figures.summary())?)
}
