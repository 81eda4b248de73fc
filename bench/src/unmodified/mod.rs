//! `bench stack`: programs as they are, on the kernel's stack, on ours within them, and on ours in another process.
mod calls;
mod headline;
mod processes;
mod redis;
mod requests;
mod rounds;
mod servers;
mod streams;
mod ways;

use crate::Settings;
use crate::error::Result;
use crate::load::programs::compiled;
use crate::not_measured::NotMeasured;
use crate::program::Compiler;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use rounds::Turns;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What every part needs.
struct Bench<'a, 'o> {
    settings: &'a Settings,
    /// A server on epoll.
    http: PathBuf,
    /// Calls on a descriptor of the kernel.
    calls: PathBuf,
    /// Configurations, and what programs write.
    files: PathBuf,
    output: &'a mut Output<'o>,
    rounds: usize,
    /// Of one turn: in general, and where opening all connections takes a part of it.
    seconds: u64,
    seconds_of_many: u64,
    found: BTreeMap<&'static str, Turns>,
    not_measured: Vec<NotMeasured>,
}

impl Bench<'_, '_> {
    fn missing(&mut self, what: &str, reason: &str) {
        self.not_measured.push(NotMeasured::new(what, reason));
    }

    fn sample(&mut self, fields: Value) -> Result<()> {
        Ok(self.output.sample(fields)?)
    }
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let settings = &settings.seen_from_the_root()?;
    let compiler = Compiler::of_the_system();
    let files = settings.build_dir.join("stack");
    let http = include_str!("../stack/http.c");
    let mut bench = Bench {
        settings,
        http: compiled(&files, &compiler, "http", http)?,
        calls: compiled(&files, &compiler, "calls", include_str!("calls.c"))?,
        files,
        output: &mut output,
        rounds: settings.pick(1, 3, 7),
        seconds: settings.pick(1, 1, 2),
        seconds_of_many: settings.pick(2, 5, 10),
        found: BTreeMap::new(),
        not_measured: Vec::new(),
    };
    calls::measure(&mut bench)?;
    requests::measure(&mut bench)?;
    redis::measure(&mut bench)?;
    streams::measure(&mut bench)?;
    let summary = headline::summary(&bench);
    drop(bench);
    Ok(output.summary(&host, summary)?)
}
