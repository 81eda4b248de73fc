//! `hopscope splice run -- COMMAND`.
use super::args::RunArgs;
use super::session::{Signals, start, write};
use crate::json::tagged;
use anyhow::Context;
use hopscope_splice::cgroup::{self, Group};
use hopscope_splice::programs::Count;
use hopscope_splice::readers;
use hopscope_splice::session::{Kernel, POLL, Session};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};

pub(super) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    args.common.refuse_test_hooks()?;
    let signals = Signals::take()?;
    let word = &args.command[0];
    let program = readers::program_of(Path::new(word));
    let program =
        program.with_context(|| format!("cannot start {}: no such program", word.display()))?;
    let mut groups = Vec::new();
    for path in &args.with {
        groups.push(cgroup::checked(path)?);
    }
    cgroup::remove_stale();
    let kernel = Kernel::try_out()?;
    kernel.judge_command(&program, &args.common.allow)?;
    let group = Group::create("")?;
    groups.push(group.path.clone());
    match within(args, &signals, &kernel, &group, groups) {
        Ok(code) => Ok(code),
        Err(error) => {
            // The keeper removes it otherwise.
            if group.path.exists()
                && let Err(also) = group.leave()
            {
                log::warn!("{also}");
            }
            Err(error)
        }
    }
}

fn within(
    args: &RunArgs,
    signals: &Signals,
    kernel: &Kernel,
    group: &Group,
    groups: Vec<PathBuf>,
) -> anyhow::Result<ExitCode> {
    let mut session = start(&args.common, groups, Some(group), kernel)?;
    let mut child = Command::new("/proc/self/exe")
        .args(["splice", "__enter"])
        .arg(&group.path)
        .arg("--")
        .args(&args.command)
        .spawn()
        .context("starting the command")?;
    let status = follow(&mut child, &mut session, signals);
    let counts = session.end(&|| signals.count())?;
    write(&mut std::io::stderr().lock(), &counts, args.json)?;
    if let Some(path) = &args.summary {
        let line = format!("{}\n", tagged("splice_summary", &counts)?);
        std::fs::write(path, line).with_context(|| path.display().to_string())?;
    }
    status?;
    if counts.get(Count::Mismatched) > 0 {
        return Ok(ExitCode::from(1));
    }
    crate::command::exit_code_of(child.wait())
}

fn follow(child: &mut Child, session: &mut Session<'_>, signals: &Signals) -> anyhow::Result<()> {
    let mut passed_on = 0;
    while child.try_wait()?.is_none() {
        session.look()?;
        let count = signals.count();
        if count > passed_on {
            passed_on = count;
            // A terminal's Ctrl-C has reached it already; what another process sent has not.
            let pid = Pid::from_raw(child.id() as i32);
            kill(pid, Signal::SIGTERM).context("ending the command")?;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
