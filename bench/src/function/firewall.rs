//! The demo firewall on packets from memory. It is part of the source tree, so the bench has it only
//! there, or where `--demo` says.
use super::BATCH;
use super::Processors;
use super::Running;
use super::counter::Counter;
use super::ready_process::{Started, start as start_program};
use crate::Settings;
use crate::error::{Error, Result};
use crate::program::run;
use std::fs;
use std::io::BufReader;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WORKER: &str = "worker-0";

pub(crate) fn start(
    settings: &Settings,
    processors: &Processors,
    demo: Option<&PathBuf>,
) -> Result<Running> {
    on_packets_from_memory(settings, processors, demo, "firewall", &[])
}

/// With more options, under a name of its own.
pub(crate) fn on_packets_from_memory(
    settings: &Settings,
    processors: &Processors,
    demo: Option<&PathBuf>,
    name: &'static str,
    options: &[&str],
) -> Result<Running> {
    let program = program(settings, demo)?;
    let dir = folder(settings)?;
    let ready = dir.join(format!("{name}.ready"));
    let _ = fs::remove_file(&ready);
    let mut command = Command::new("taskset");
    command.args(["-c", &processors.worker.to_string()]);
    command
        .arg(&program)
        .args(["--source", "memory"])
        .args(options);
    command.args(["--burst", &BATCH.to_string(), "--ready-file"]);
    command.arg(&ready).stdout(Stdio::piped());
    let log = dir.join(format!("{name}.log"));
    let mut program = start_program(&mut command, &log, || ready.exists())?;
    let Some(stdout) = program.stdout() else {
        unreachable!("asked for as a pipe")
    };
    let counter = Counter::Lines {
        pid: program.pid(),
        answers: BufReader::new(stdout),
    };
    Ok(Running::new(name, program, WORKER, counter))
}

fn folder(settings: &Settings) -> Result<PathBuf> {
    let dir = settings.build_dir.join("network-functions");
    fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
    Ok(dir)
}

/// The firewall with two ports, `nf0` and `nf1`; `taskset` is the command that starts it there.
pub(crate) fn between_ports(
    settings: &Settings,
    taskset: &mut Command,
    processors: &Processors,
    demo: Option<&PathBuf>,
    rules: &Path,
    options: &[&str],
) -> Result<Started> {
    let program = std::path::absolute(program(settings, demo)?);
    let dir = folder(settings)?;
    let ready = dir.join("ports.ready");
    let _ = fs::remove_file(&ready);
    taskset.args(["-c", &processors.worker.to_string()]);
    taskset.arg(program.map_err(Error::file("find", &dir))?);
    taskset
        .args(["--port", "nf0", "--port", "nf1", "--rules"])
        .arg(rules);
    taskset
        .args(options)
        .arg("--ready-file")
        .arg(&ready)
        .stdout(Stdio::null());
    let log = dir.join("ports.log");
    start_program(taskset, &log, || ready.exists())
}

pub(crate) fn program(settings: &Settings, demo: Option<&PathBuf>) -> Result<PathBuf> {
    match demo {
        Some(program) => Ok(program.clone()),
        None => built(settings),
    }
}

fn built(settings: &Settings) -> Result<PathBuf> {
    let source = Path::new("demo");
    if !source.join("Makefile").exists() {
        let doing = "find the source of the demo firewall (run from the source tree, or give --demo PROGRAM)";
        return Err(Error::file(doing, source)(ErrorKind::NotFound.into()));
    }
    let out = settings.build_dir.join("demo");
    let mut make = Command::new("make");
    make.args(["-s", "-C", "demo"]);
    run(make.arg(format!("BUILD={}", out.display())))?;
    Ok(out.join("hopscope-demo"))
}
