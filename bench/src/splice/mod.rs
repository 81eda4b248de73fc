//! `bench splice`: echo servers in user space and in the kernel, plain and accelerated, each in turn under
//! the same load; programs as they are, plain and joined; and why published comparisons of them come out as they do.
pub mod guest;
mod one_way;
mod pairs;
mod programs;
mod released;
mod report;
mod request_rates;
mod servers;
mod sockets;

use crate::Settings;
use crate::error::Result;
use crate::load::network::{Namespace, processors};
use crate::load::programs::compiled;
use crate::load::{Cable, SERVER};
use crate::not_measured::NotMeasured;
use crate::program::Compiler;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use released::Shape;
use request_rates::Path;
use serde_json::Value;
use servers::{BACKLOG, Running, ServerKind};
use std::path::PathBuf;

/// What every part needs.
struct Bench<'a, 'o> {
    settings: &'a Settings,
    /// The client of standing connections.
    ask: PathBuf,
    /// Ready files and the like, of this run.
    files: PathBuf,
    output: &'a mut Output<'o>,
    rounds: usize,
    /// Of one window.
    milliseconds: u64,
}

/// The processors of a server and of a client, where there is one for each.
fn a_processor_each(what: &str, missing: &mut Vec<NotMeasured>) -> Option<(String, String)> {
    let (first, last) = processors();
    if first == last {
        missing.push(NotMeasured::new(
            what,
            "each end needs a processor of its own",
        ));
        return None;
    }
    Some((first, last))
}

impl Bench<'_, '_> {
    fn say(&self, what: &str, round: usize) {
        self.settings.say(&format!("{what}, {}", round + 1));
    }

    fn sample(&mut self, fields: Value) -> Result<()> {
        Ok(self.output.sample(fields)?)
    }

    /// A program of the bench's own, in C.
    fn program(&self, name: &str, text: &str) -> Result<PathBuf> {
        let dir = self.settings.build_dir.join("splice");
        compiled(&dir, &Compiler::of_the_system(), name, text)
    }

    fn start(
        &self,
        at: &Namespace,
        host: &str,
        kinds: &[ServerKind],
        missing: &mut Vec<NotMeasured>,
    ) -> Vec<Running> {
        let start = |kind: &ServerKind| {
            let binary = &self.settings.hopscope;
            Running::start(binary, &self.files, at, host, *kind, BACKLOG, false)
        };
        let mut running = Vec::new();
        for kind in kinds {
            match start(kind) {
                Ok(server) => running.push(server),
                Err(error) => missing.push(NotMeasured::new(
                    format!("server {} on {host}", kind.name()),
                    error,
                )),
            }
        }
        running
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
    let dir = settings.build_dir.join("splice");
    let ask = compiled(
        &dir,
        &Compiler::of_the_system(),
        "ask",
        include_str!("ask.c"),
    )?;
    let mut bench = Bench {
        settings,
        ask,
        files: settings
            .build_dir
            .join(format!("splice-{}", std::process::id())),
        output: &mut output,
        rounds: settings.pick(1, 3, 9),
        milliseconds: settings.pick(20, 80, 200),
    };
    let mut figures = report::Figures::default();
    let here = Namespace::new()?;
    let path = Path {
        name: "here",
        client: &here,
        server: &here,
        host: "127.0.0.1",
    };
    one_path(&mut bench, &path, true, &mut figures)?;
    queues(&mut bench, &path, &mut figures)?;
    let missing = &mut figures.not_measured;
    figures.programs = programs::measure(&mut bench, &path, missing)?;
    figures.sockets = sockets::measure(&mut bench, &path, missing)?;
    figures.pairs = pairs::measure(&mut bench, &path, missing)?;
    figures.one_way = one_way::measure(&mut bench, &path, missing)?;
    let cable = Cable::lay()?;
    let path = Path {
        name: "across",
        client: &cable.client,
        server: &cable.server,
        host: SERVER,
    };
    one_path(&mut bench, &path, false, &mut figures)?;
    drop(bench);
    Ok(output.summary(&host, figures.summary())?)
}

/// All servers on one path, under both kinds of load.
fn one_path(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    is_here: bool,
    figures: &mut report::Figures,
) -> Result<()> {
    let kinds = &ServerKind::ALL;
    let servers = bench.start(path.server, path.host, kinds, &mut figures.not_measured);
    let (rows, all) = request_rates::measure(bench, path, &servers)?;
    figures.standing.extend(rows);
    if is_here {
        figures.headline = report::Headline::of(&all);
    }
    let thousand = Shape {
        clients: 1000,
        backlog: BACKLOG,
        one_processor: false,
        rounds: bench.settings.pick(1, 2, 8),
    };
    let rows = released::measure(bench, path, &servers, &thousand)?;
    figures.released.extend(rows);
    // The most that have been seen to be open at once in the published text's successor.
    let many = Shape {
        clients: bench.settings.pick(1000, 3000, 9000),
        rounds: bench.settings.pick(1, 1, 3),
        ..thousand
    };
    let rows = released::measure(bench, path, &servers, &many)?;
    figures.many.extend(rows);
    for server in servers {
        let summary = server.finish()?;
        figures.failures_of_servers += summary["failed"].as_f64().unwrap_or(0.0);
    }
    Ok(())
}

/// The same server with the accept queue of the published one and with ours. Client and server share a
/// processor, so that a thousand clients come before one is accepted, as they do to a slow server.
fn queues(bench: &mut Bench<'_, '_>, path: &Path<'_>, figures: &mut report::Figures) -> Result<()> {
    for backlog in [128, BACKLOG] {
        let binary = &bench.settings.hopscope;
        let start = |kind| {
            let (at, host) = (path.server, path.host);
            Running::start(binary, &bench.files, at, host, kind, backlog, true)
        };
        let mut servers = vec![start(ServerKind::User)?];
        match start(ServerKind::KernelEgress) {
            Ok(server) => servers.push(server),
            Err(error) => figures.not_measured.push(NotMeasured::new(
                format!("kernel_egress with an accept queue of {backlog}"),
                error,
            )),
        }
        let shape = Shape {
            clients: 1000,
            backlog,
            one_processor: true,
            rounds: bench.settings.pick(1, 2, 8),
        };
        let rows = released::measure(bench, path, &servers, &shape)?;
        figures.queues.extend(rows);
    }
    Ok(())
}
