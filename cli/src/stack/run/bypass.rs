//! With `--trace`: what by-passes the hooks, as another process sees it from the kernel. It is no child of the command's, and has
//! none of its descriptors but standard error.
use crate::status::on_stderr;
use anyhow::{Context, bail};
use clap::Args;
use hopscope_stack_bypass::{Command as Watched, Watch};
use hopscope_stack_instance::handed::ENVIRONMENT;
use nix::sys::prctl;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
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

/// From when it returns, this process is watched. `preloaded`: what LD_PRELOAD was for this process itself.
pub(super) fn watch(instance: Option<u32>, preloaded: Option<OsString>) {
    if let Err(why) = start(instance, preloaded) {
        on_stderr(format_args!(
            "--trace: what by-passes the hooks is not looked for: {why:#}"
        ));
    }
}

fn start(instance: Option<u32>, preloaded: Option<OsString>) -> anyhow::Result<()> {
    // It would be this process's child.
    if std::process::id() == 1 || prctl::get_child_subreaper().unwrap_or(false) {
        bail!("this process has the children of those that end (it is PID 1, or a subreaper)");
    }
    let mut starter = myself(std::process::id(), instance);
    match preloaded {
        Some(preloaded) => starter.env("LD_PRELOAD", preloaded),
        None => starter.env_remove("LD_PRELOAD"),
    };
    let mut starter = starter
        .env_remove(ENVIRONMENT)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting a process")?;
    let answer = starter.stdout.take().context("no pipe")?;
    // Where SIGCHLD is ignored the kernel has reaped it.
    let _ = starter.wait();
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
    command
        .arg0("hopscope")
        .args(["stack", "__bypass", &process.to_string()]);
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
    // Or a file system could not be unmounted. Its name would be that of /proc/self/exe.
    std::env::set_current_dir("/").context("/")?;
    prctl::set_name(c"hopscope").context("naming this process")?;
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
    let heard = Heard::new();
    watch.run(
        |line| on_stderr(format_args!("{line}")),
        |left| heard.is_of_one_of(left),
    )?;
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

/// Standard error, where somebody may wait for its end: a pipe or a socket.
struct Heard(Option<Metadata>);

impl Heard {
    fn new() -> Heard {
        let ends = |meta: &Metadata| meta.file_type().is_fifo() || meta.file_type().is_socket();
        Heard(std::fs::metadata("/proc/self/fd/2").ok().filter(ends))
    }

    /// Of processes that have it, too.
    fn is_of_one_of(&self, processes: &[u32]) -> bool {
        let Some(own) = &self.0 else {
            return true;
        };
        let is_own = |path| {
            std::fs::metadata(path).is_ok_and(|of| (of.dev(), of.ino()) == (own.dev(), own.ino()))
        };
        processes.iter().any(|process| {
            let entries = std::fs::read_dir(format!("/proc/{process}/fd"));
            entries.is_ok_and(|mut entries| {
                entries.any(|entry| entry.is_ok_and(|entry| is_own(entry.path())))
            })
        })
    }
}

/// `killall` and a terminal that is closed signal it too: it ends with the command.
fn ignore_signals() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default()).context("taking over signals")?;
    }
    Ok(())
}
