//! The keeper: a small process beside an accelerator that outlives it. When the accelerator ends,
//! killed or not, joined sockets hold the programs, and bytes may lie in queues that go with the map: the
//! keeper has every message take TCP, and takes each socket out of the map once its queue is read.
use anyhow::Context;
use clap::Args;
use hopscope_splice::cgroup::Group;
use hopscope_splice::load::{Queues, Running, running};
use nix::poll::{PollTimeout, poll};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const LOOK_AGAIN_MS: u8 = 20;
/// Then it says for whom it waits.
const SAY_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct KeepArgs {
    /// The accelerator's process
    of: u32,
    /// A control group to be removed at the end
    group: Option<PathBuf>,
    /// Where its processes go
    home: Option<PathBuf>,
}

pub(super) fn run(args: &KeepArgs) -> anyhow::Result<ExitCode> {
    let found = running().into_iter().find(|one| one.pid == args.of);
    let of = found.with_context(|| format!("process {} accelerates nothing", args.of))?;
    let queues = of.queues()?;
    std::io::stdout().write_all(b"ready\n")?;
    // Ends when the accelerator does, in whatever way.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drain(&of, &queues)?;
    if let (Some(path), Some(home)) = (&args.group, &args.home) {
        let (path, home) = (path.clone(), home.clone());
        let moved = Group { path, home }.leave()?;
        if moved > 0 {
            crate::status::say!("{moved} processes of the command still run, and go on over TCP");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn drain(of: &Running, queues: &Queues) -> anyhow::Result<()> {
    of.stop()?;
    let begun = Instant::now();
    let mut is_said = false;
    // Seen empty once. A message whose way was chosen before the stop is in its queue by the next look.
    let mut empty: HashSet<u64> = HashSet::new();
    loop {
        let waiting = queues.waiting()?;
        let is_waiting = |cookie: &u64| waiting.iter().any(|one| one.cookie == *cookie);
        let here: HashSet<u64> = of.sockets().into_iter().collect();
        if here.is_empty() {
            return Ok(());
        }
        let now_empty: HashSet<u64> = here.into_iter().filter(|one| !is_waiting(one)).collect();
        for cookie in now_empty.intersection(&empty) {
            of.release(*cookie);
        }
        empty = now_empty;
        if !is_said && begun.elapsed() > SAY_AFTER && !waiting.is_empty() {
            is_said = true;
            let bytes: u64 = waiting.iter().map(|one| one.bytes).sum();
            crate::status::say!(
                "{} sockets have {bytes} bytes that their programs have not read; \
                 waiting for them (a second Ctrl-C gives that up)",
                waiting.len()
            );
        }
        poll(&mut [], PollTimeout::from(LOOK_AGAIN_MS))?;
    }
}

/// The keeper, seen from the accelerator.
pub(super) struct Keeper(Child);

impl Keeper {
    pub(super) fn start(group: Option<&Group>) -> anyhow::Result<Keeper> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["splice", "__keep", &std::process::id().to_string()]);
        if let Some(group) = group {
            command.arg(&group.path).arg(&group.home);
        }
        // Ctrl-C is for the accelerator, which ends the keeper in order.
        command.process_group(0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the keeper")?;
        let mut line = [0; 6];
        let mut stdout = child.stdout.take().context("the keeper's pipe")?;
        if stdout.read_exact(&mut line).is_err() {
            let status = child.wait()?;
            anyhow::bail!("the keeper ended at once ({status})");
        }
        Ok(Keeper(child))
    }

    /// Tells it that the accelerator ends; true once it has done its work.
    pub(super) fn is_done(&mut self) -> anyhow::Result<bool> {
        drop(self.0.stdin.take());
        Ok(self.0.try_wait()?.is_some())
    }

    pub(super) fn give_up(mut self) {
        // It may have ended meanwhile.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
