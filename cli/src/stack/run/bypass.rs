//! With `--trace`: what by-passes the hooks, as another process sees it from the kernel. It is no child of the command's, and none
//! of its descriptors stay open there.
use crate::status::on_stderr;
use anyhow::{Context, bail};
use clap::Args;
use hopscope_stack_bypass::{Command as Watched, Watch};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

const READY: &str = "ready";

#[derive(Args)]
pub struct BypassArgs {
    /// Process ID of the command
    process: u32,
    /// Process ID of the instance
    #[arg(long)]
    instance: Option<u32>,
    /// Be the process that watches; otherwise the one that starts it, and ends
    #[arg(long)]
    watcher: bool,
}

/// From when it returns, this process is watched.
pub(super) fn watch(instance: Option<u32>) {
    if let Err(why) = start(instance) {
        on_stderr(format_args!(
            "--trace: what by-passes the hooks is not looked for: {why:#}"
        ));
    }
}

fn start(instance: Option<u32>) -> anyhow::Result<()> {
    let mut starter = myself(std::process::id(), instance)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting a process")?;
    let answer = starter.stdout.take().context("no pipe")?;
    starter.wait().context("waiting for a process")?;
    let mut line = String::new();
    BufReader::new(answer).read_line(&mut line)?;
    match line.trim_end() {
        READY => Ok(()),
        "" => bail!("the process that watches has ended"),
        why => bail!("{why}"),
    }
}

fn myself(process: u32, instance: Option<u32>) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["stack", "__bypass", &process.to_string()]);
    command.args(instance.map(|process| format!("--instance={process}")));
    command
}

pub(in crate::stack) fn run(args: &BypassArgs) -> anyhow::Result<ExitCode> {
    if !args.watcher {
        // In a group of its own: Ctrl-C is the command's.
        let mut command = myself(args.process, args.instance);
        command.arg("--watcher").process_group(0).spawn()?;
        return Ok(ExitCode::SUCCESS);
    }
    close_inherited()?;
    ignore_signals()?;
    let answer = |text: &str| writeln!(std::io::stdout(), "{text}");
    let command = Watched {
        process: args.process,
        instance: args.instance,
    };
    let watch = match Watch::start(command) {
        Ok(watch) => watch,
        Err(why) => {
            answer(&why.to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    answer(READY)?;
    watch.run(|line| on_stderr(format_args!("{line}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The command's: ports, claims and whatever its starter left open. Others would wait for their ends.
fn close_inherited() -> anyhow::Result<()> {
    let entries = std::fs::read_dir("/proc/self/fd").context("/proc/self/fd")?;
    let numbers: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&fd| fd > 2)
        .collect();
    for fd in numbers {
        // That of the folder is closed already.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// `killall` and a terminal that is closed signal it too: it ends with the command.
fn ignore_signals() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default()).context("taking over signals")?;
    }
    Ok(())
}
