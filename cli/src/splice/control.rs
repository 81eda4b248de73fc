//! `hopscope splice list|stat|detach`: accelerators that run, found by what they hold open.
use crate::json::tagged;
use anyhow::{Context, bail, ensure};
use clap::Args;
use hopscope_splice::programs::{Running, running};
use nix::poll::{PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct StatArgs {
    /// Process ID, if several run
    #[arg(long, value_name = "PID")]
    of: Option<u32>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Process ID, if several run
    #[arg(long, value_name = "PID", conflicts_with = "all")]
    of: Option<u32>,
    /// Stop all accelerators
    #[arg(long)]
    all: bool,
}

fn row(one: &Running, kind: &str) -> anyhow::Result<serde_json::Value> {
    let mut line = tagged(kind, &one.counts()?)?;
    line["pid"] = one.pid.into();
    line["ports"] = one.ports.clone().into();
    line["sockets"] = one.ends()?.into();
    let (in_map, waiting) = one.entries();
    line["sockets_in_map"] = in_map.into();
    line["clients_not_told"] = waiting.into();
    line["ends_watched"] = one.watched().into();
    line["connections_max"] = one.connections_max.into();
    line["limit_bytes"] = one.limit_bytes.into();
    line["guard"] = one.has_guard.into();
    line["verify"] = one.verifies.into();
    line["pair"] = one.placed.is_some().into();
    Ok(line)
}

fn ports(one: &Running) -> String {
    let ports: Vec<String> = one.ports.iter().map(u16::to_string).collect();
    if ports.is_empty() {
        "every port".to_owned()
    } else {
        format!("port {}", ports.join(", "))
    }
}

pub(super) fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for one in running() {
        if args.json {
            writeln!(out, "{}", row(&one, "splice")?)?
        } else {
            writeln!(
                out,
                "process {}: {}, {} sockets accelerated",
                one.pid,
                ports(&one),
                one.ends()?
            )?
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn stat(args: &StatArgs) -> anyhow::Result<ExitCode> {
    let found = chosen(args.of)?;
    let mut out = std::io::stdout().lock();
    for one in &found {
        if args.json {
            writeln!(out, "{}", row(one, "splice_stat")?)?;
            continue;
        }
        let (ends, most) = (one.ends()?, one.connections_max);
        writeln!(
            out,
            "hopscope splice, process {}: {}, {ends} sockets accelerated, at most {most} connections",
            one.pid,
            ports(one)
        )?;
        write!(out, "{}", one.counts()?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// As Ctrl-C there would: what is unread is waited for.
pub(super) fn detach(args: &DetachArgs) -> anyhow::Result<ExitCode> {
    let found = chosen(args.of)?;
    ensure!(
        found.len() == 1 || args.all,
        "{} accelerators run: say which with --of PID, or --all",
        found.len()
    );
    for one in &found {
        let pid = Pid::from_raw(i32::try_from(one.pid)?);
        kill(pid, Signal::SIGINT).with_context(|| format!("process {pid}"))?;
    }
    for one in found {
        // Until it holds nothing any more: who started it may take a while to take note of its end.
        while running().iter().any(|other| other.pid == one.pid) {
            poll(&mut [], PollTimeout::from(5u8))?;
        }
        println!("process {}: detached", one.pid);
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(of: Option<u32>) -> anyhow::Result<Vec<Running>> {
    let mut found = running();
    if let Some(pid) = of {
        found.retain(|one| one.pid == pid);
    }
    match (found.is_empty(), of) {
        (false, _) => Ok(found),
        (true, Some(pid)) => bail!("process {pid} runs no accelerator, or access to it is denied"),
        (true, None) => bail!("no running hopscope splice is accessible"),
    }
}
