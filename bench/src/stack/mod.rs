//! `bench stack-engine`: the TCP/IP stack in user space against the kernel's, in the same rounds, over the same cables and
//! the same bridge.
mod bulk;
mod compared;
mod engine;
mod headline;
mod http;
pub(crate) mod network;
pub(crate) mod wrk;

use crate::Settings;
use crate::error::Result;
use crate::load::programs::compiled;
use crate::not_measured::NotMeasured;
use crate::program::Compiler;
use compared::Compared;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What every part needs.
struct Bench<'a, 'o> {
    settings: &'a Settings,
    /// The same server on the kernel's TCP, and clients on it.
    http: PathBuf,
    kernel: PathBuf,
    output: &'a mut Output<'o>,
    rounds: usize,
    /// Of one window: of bytes, and of requests, which wrk counts in whole seconds.
    milliseconds: u64,
    seconds: u64,
    seconds_of_many: u64,
    found: BTreeMap<&'static str, Compared>,
    /// Figures that are not compared with anything.
    single: BTreeMap<&'static str, f64>,
    not_measured: Vec<NotMeasured>,
}

impl Bench<'_, '_> {
    /// A figure of both sides, in turn; what goes wrong leaves only this figure out.
    fn compare(
        &mut self,
        what: &'static str,
        a: impl FnMut(&Self) -> Result<f64>,
        b: impl FnMut(&Self) -> Result<f64>,
    ) -> Result<()> {
        match compared::in_turn(self, what, a, b)? {
            Ok(compared) => drop(self.found.insert(what, compared)),
            Err(error) => self.missing(what, &error.to_string()),
        }
        Ok(())
    }

    fn missing(&mut self, what: &str, reason: &str) {
        self.not_measured.push(NotMeasured::new(what, reason));
    }

    fn single(&mut self, what: &'static str, value: Result<f64>) -> Result<()> {
        match value {
            Ok(value) => {
                self.sample(json!({ "what": what, "value": value }))?;
                self.single.insert(what, value);
            }
            Err(error) => self.missing(what, &error.to_string()),
        }
        Ok(())
    }

    fn sample(&mut self, fields: Value) -> Result<()> {
        Ok(self.output.sample(fields)?)
    }
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let settings = &settings.seen_from_the_root()?;
    let compiler = Compiler::of_the_system();
    let dir = settings.build_dir.join("stack");
    let mut bench = Bench {
        settings,
        http: compiled(&dir, &compiler, "http", include_str!("http.c"))?,
        kernel: compiled(&dir, &compiler, "kernel", include_str!("kernel.c"))?,
        output: &mut output,
        rounds: settings.pick(1, 3, 5),
        seconds: settings.pick(1, 1, 2),
        seconds_of_many: settings.pick(2, 5, 10),
        milliseconds: settings.pick(200, 1000, 3000),
        found: BTreeMap::new(),
        single: BTreeMap::new(),
        not_measured: Vec::new(),
    };
    engine::measure(&mut bench)?;
    http::measure(&mut bench)?;
    bulk::measure(&mut bench)?;
    let summary = headline::summary(&bench);
    drop(bench);
    Ok(output.summary(&host, summary)?)
}
