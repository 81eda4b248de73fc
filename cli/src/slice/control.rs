//! `hopscope slice stat|set`: NetSlice's settings and statistics, of slicers that run.
use super::args::Control;
use crate::json::tagged;
use crate::units::parse_time;
use anyhow::{Context, bail, ensure};
use hopscope_session::slice::SlicerStat;
use hopscope_slice::programs::{Running, running};
use std::io::Write;
use std::process::ExitCode;

pub(super) fn run(control: &Control) -> anyhow::Result<ExitCode> {
    match control {
        Control::Stat { of, json } => stat(*of, *json),
        Control::Set { of, settings } => set(*of, settings),
    }
}

fn stat(of: Option<u32>, json: bool) -> anyhow::Result<ExitCode> {
    let found = chosen(of)?;
    let mut out = std::io::stdout().lock();
    for one in &found {
        let stat = SlicerStat::of(one)?;
        if json {
            writeln!(out, "{}", tagged("slice_stat", &stat)?)?;
        } else {
            stat.write(&mut out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn set(of: Option<u32>, settings: &[String]) -> anyhow::Result<ExitCode> {
    let found = chosen(of)?;
    ensure!(
        found.len() == 1,
        "{} slicers run: say which with --of PID",
        found.len()
    );
    for setting in settings {
        let (name, value) = setting
            .split_once('=')
            .with_context(|| format!("`{setting}`: expected NAME=VALUE"))?;
        apply(&found[0], name, value)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn apply(to: &Running, name: &str, value: &str) -> anyhow::Result<()> {
    match name {
        "enable" => match value {
            "0" => to.set_enabled(false)?,
            "1" => to.set_enabled(true)?,
            _ => bail!("enable={value}: expected 0 or 1"),
        },
        "min-latency" | "min_latency" => {
            let time = parse_time(value).map_err(|why| anyhow::anyhow!("{name}={value}: {why}"))?;
            to.set_min_latency(u64::try_from(time.as_nanos())?)?;
        }
        "buffer-size" | "buffer_size" | "event" | "mode" => {
            bail!("{name}: is fixed while packets are under way; start hopscope slice with another")
        }
        _ => bail!("no setting is called `{name}`: enable, min-latency"),
    }
    Ok(())
}

fn chosen(of: Option<u32>) -> anyhow::Result<Vec<Running>> {
    let mut found = running();
    if let Some(pid) = of {
        found.retain(|one| one.pid == pid);
    }
    match (found.is_empty(), of) {
        (false, _) => Ok(found),
        (true, Some(pid)) => bail!("process {pid} runs no slice, or access to it is denied"),
        (true, None) => bail!("no running hopscope slice is accessible"),
    }
}
