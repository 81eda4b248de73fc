//! `bench case-density`: what three network functions lose as more of their functions are measured,
//! beside what stamps alone cost there, and what they cost in a loop. After Figs. 8 and 12 of the source paper.
mod chosen;
mod latency;
mod probe_selection;
mod report;
mod window;

use crate::Settings;
use crate::error::Result;
use crate::function::{Processors, Running, dpdk, firewall};
use crate::hopscope::{Hopscope, beside_short_functions};
use crate::not_measured::NotMeasured;
use crate::program::Target;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use hopscope_compare::stats::Spread;
use probe_selection::Density;
use report::{Figures, Level};
use std::path::PathBuf;

/// One of the network functions: its name and how it is built and started.
type Start = fn(&Settings, &Processors, Option<&PathBuf>) -> Result<Running>;
const NETWORK_FUNCTIONS: [(&str, Start); 3] = [
    ("firewall", firewall::start),
    ("nat", dpdk::nat),
    ("ipsec", dpdk::ipsec),
];

pub fn run(settings: &Settings, demo: Option<&PathBuf>, mut output: Output<'_>) -> Result<bool> {
    let (hopscope, program) = beside_short_functions(settings)?;
    let mut floors = Target::start(&program)?;
    let host = Host::look(Some(floors.tsc_hz));
    let processors = Processors::divide()?;
    let mut floor = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    let mut not_measured = Vec::new();
    // Whether it works is seen with the one that is built and attached to in a second.
    let those = settings.pick(1, NETWORK_FUNCTIONS.len(), NETWORK_FUNCTIONS.len());
    for (name, start) in NETWORK_FUNCTIONS.into_iter().take(those) {
        floor.push(two_rdtsc(&mut floors)?);
        settings.say(&format!("building and starting: {name}"));
        let start = || start(settings, &processors, demo);
        let measured = measure(settings, &hopscope, start, &mut output);
        match measured {
            Ok((these, missing)) => {
                levels.extend(these);
                not_measured.extend(missing);
            }
            Err(error) => not_measured.push(NotMeasured::new(name, error)),
        }
    }
    floor.push(two_rdtsc(&mut floors)?);
    let latency = latency::measure(settings, &hopscope, &processors, demo)
        .map_err(|error| {
            not_measured.push(NotMeasured::new("latency through the firewall", error));
        })
        .ok();
    let figures = Figures {
        tsc_hz: floors.tsc_hz,
        floor: Spread::of(&floor),
        network_functions: those,
        levels,
        latency,
        not_measured,
    };
    Ok(output.summary(&host, figures.summary())?)
}

/// Ticks of two bare `rdtsc`: what a pair of stamps can't cost less than.
fn two_rdtsc(target: &mut Target) -> Result<f64> {
    let floor = target.run("floor_two_rdtsc", 20)?.median;
    Ok(floor - target.run("floor_empty_loop", 20)?.median)
}

fn measure(
    settings: &Settings,
    hopscope: &Hopscope,
    start: impl Fn() -> Result<Running>,
    output: &mut Output<'_>,
) -> Result<(Vec<Level>, Vec<NotMeasured>)> {
    let mut nf = start()?;
    let functions = probe_selection::called_functions(hopscope, &mut nf);
    let mut functions = functions.map_err(|error| nf.blamed(error))?;
    drop(nf);
    // A new one: copies of all functions in the caches and the address space are not what is asked.
    let mut nf = start()?;
    at_all_densities(settings, hopscope, &mut nf, &mut functions, output)
        .map_err(|error| nf.blamed(error))
}

fn at_all_densities(
    settings: &Settings,
    hopscope: &Hopscope,
    nf: &mut Running,
    functions: &mut [probe_selection::Called],
    output: &mut Output<'_>,
) -> Result<(Vec<Level>, Vec<NotMeasured>)> {
    let (rounds, milliseconds) = settings.pick((1, 50), (2, 250), (9, 500));
    probe_selection::to_scale(functions, hopscope, nf, milliseconds)?;
    let (mut levels, mut missing) = (Vec::new(), Vec::new());
    for density in Density::ALL {
        let chosen = probe_selection::in_place(functions, density, hopscope, nf, milliseconds)?;
        if !chosen.is_reached() {
            missing.push(NotMeasured::new(
                format!("{} at {density}", nf.name),
                format!(
                    "its functions make {:.2} probe executions a packet",
                    chosen.executions
                ),
            ));
            continue;
        }
        settings.say(&format!(
            "{} at {density}: {} functions",
            nf.name,
            chosen.len()
        ));
        let mut pairs = Vec::new();
        for round in 0..rounds {
            let pair = window::pair(hopscope, nf, &chosen, milliseconds, round % 2 == 1)?;
            output.sample(serde_json::json!({
                "network_function": nf.name, "density": density.to_string(), "round": round,
                "pair": pair,
            }))?;
            pairs.push(pair);
        }
        levels.extend(Level::of(nf.name, density, chosen.len(), &pairs));
    }
    Ok((levels, missing))
}
