//! The demo firewall on packets from memory. It is part of the source tree, so the bench has it only
//! there, or where `--demo` says.
use super::BATCH;
use super::counter::Counter;
use super::processors::Processors;
use super::running::{Running, start as start_program};
use crate::Settings;
use crate::error::{Error, Result};
use crate::program::run;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WORKER: &str = "worker-0";

pub(super) fn start(
    settings: &Settings,
    processors: &Processors,
    demo: Option<&PathBuf>,
) -> Result<Running> {
    let program = match demo {
        Some(program) => program.clone(),
        None => built(settings)?,
    };
    let dir = settings.build_dir.join("density");
    fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
    let ready = dir.join("firewall.ready");
    let _ = fs::remove_file(&ready);
    let mut command = Command::new("taskset");
    command.args(["-c", &processors.worker.to_string()]);
    command.arg(&program).args(["--source", "memory"]);
    command.args(["--burst", &BATCH.to_string(), "--ready-file"]);
    command.arg(&ready).stdout(Stdio::piped());
    let log = dir.join("firewall.log");
    let mut child = start_program(&mut command, &log, || ready.exists())?;
    let Some(stdout) = child.stdout.take() else {
        unreachable!("asked for as a pipe")
    };
    let counter = Counter::Lines {
        pid: child.id() as i32,
        answers: BufReader::new(stdout),
    };
    Ok(Running::new("firewall", child, WORKER, counter))
}

fn built(settings: &Settings) -> Result<PathBuf> {
    let source = Path::new("demo");
    if !source.join("Makefile").exists() {
        return Err(Error::File {
            doing: "find the source of the demo firewall (run from the source tree, or give --demo PROGRAM)",
            path: source.into(),
            source: std::io::ErrorKind::NotFound.into(),
        });
    }
    let out = settings.build_dir.join("demo");
    let mut make = Command::new("make");
    make.args(["-s", "-C", "demo"]);
    run(make.arg(format!("BUILD={}", out.display())))?;
    Ok(out.join("hopscope-demo"))
}
