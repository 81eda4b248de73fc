//! `bench vnet`: policies of notification against each other, between our front end and our back end: one
//! queue alone, and two networks joined by a pair.
mod compared;
mod cpu_usage;
pub mod guest;
mod headline;
mod load;
mod network;
mod policy;
mod process;
mod report;
mod rings;
mod table;

use crate::Settings;
use crate::error::{Error, Result};
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use serde_json::Value;
use std::path::PathBuf;

/// What every part needs.
struct Bench<'a, 'o> {
    settings: &'a Settings,
    /// Sockets and ready files, of this run. Names of sockets have 107 bytes at most (unix(7)).
    files: PathBuf,
    output: &'a mut Output<'o>,
    rounds: usize,
    /// Of one window.
    milliseconds: u64,
}

impl Bench<'_, '_> {
    fn say(&self, what: &str, round: usize) {
        let round = round + 1;
        self.settings.say(&format!("{what}, {round}"));
    }

    fn sample(&mut self, fields: Value) -> Result<()> {
        Ok(self.output.sample(fields)?)
    }
}

impl Drop for Bench<'_, '_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.files);
    }
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let settings = &settings.seen_from_the_root()?;
    let files = std::env::temp_dir().join(format!("hopscope-bench-vnet-{}", std::process::id()));
    std::fs::create_dir_all(&files).map_err(Error::file("create", &files))?;
    let mut bench = Bench {
        settings,
        files,
        output: &mut output,
        rounds: settings.pick(1, 2, 9),
        milliseconds: settings.pick(15, 60, 300),
    };
    let rings = rings::measure(&mut bench)?;
    let networks = network::measure(&mut bench)?;
    drop(bench);
    Ok(output.summary(&host, report::summary(&rings, &networks))?)
}
