//! The keeper: a small process beside an accelerator that outlives it. When the accelerator ends,
//! killed or not, joined sockets hold the programs, and bytes may lie in queues that go with the map: the
//! keeper has every message take TCP, and takes each socket out of the map once its queue is read.
use anyhow::Context;
use clap::Args;
use hopscope_splice::cgroup::Group;
use hopscope_splice::pairing::{self, Restored};
use hopscope_splice::programs::{Count, End, Ends, Placing, Running, running};
use nix::errno::Errno;
use nix::poll::{PollTimeout, poll};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LOOK_AGAIN_MS: u8 = 20;
/// Half a second.
const LOOKS_FOR_LATE_ONES: u32 = 25;
/// Then it says for whom it waits.
const SAY_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Process ID of the accelerator
    of: u32,
    /// Remove this cgroup at the end
    group: Option<PathBuf>,
    /// Move its processes to this cgroup
    home: Option<PathBuf>,
}

pub(super) fn run(args: &KeepArgs) -> anyhow::Result<ExitCode> {
    ignore_signals()?;
    let found = running().into_iter().find(|one| one.pid == args.of);
    let of = found.with_context(|| format!("process {} accelerates nothing", args.of))?;
    let ends = of.ends_seen()?;
    let home = args.home.as_deref().map(File::open).transpose()?;
    let group = match (&args.group, &home) {
        (Some(path), Some(home)) => Some(Group::of_another(path, home)?),
        _ => None,
    };
    // The accelerator's programs end with it, and threads go on to make others.
    let placing = of.placed.as_ref().map(Placing::beside).transpose()?;
    std::io::stdout().write_all(b"ready\n")?;
    // Ends when the accelerator does, in whatever way.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let restored = placing.as_ref().map(restore_masks).transpose();
    drain(&of, &ends)?;
    restored?;
    placing.as_ref().map(restore_late_ones).transpose()?;
    if let Some(group) = group {
        let moved = group.leave()?;
        if moved > 0 {
            crate::status::say!("{moved} processes of the command still run and continue over TCP");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `killall`, a service manager and the kernel, where it was stopped and its accelerator ends, signal it too: it ends with
/// its accelerator only, and has work to do then.
fn ignore_signals() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default()).context("taking over signals")?;
    }
    Ok(())
}

fn wait_a_little() -> nix::Result<()> {
    match poll(&mut [], PollTimeout::from(LOOK_AGAIN_MS)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Threads that were placed on a processor: all of them where the accelerator was killed; otherwise those that were
/// being made when it restored the others.
fn restore_masks(placing: &Placing) -> anyhow::Result<Restored> {
    let restored = pairing::restore(&placing.threads, None)?;
    placing
        .threads
        .count(Count::MasksChanged, restored.changed)?;
    Ok(restored)
}

/// A thread has its maker's mask from the beginning of fork(2) on, and is known at its end.
fn restore_late_ones(placing: &Placing) -> anyhow::Result<()> {
    let mut looks_without_any = 0;
    while looks_without_any < LOOKS_FOR_LATE_ONES && !placing.threads.of(None).is_empty() {
        wait_a_little()?;
        let found = restore_masks(placing)?.threads > 0;
        looks_without_any = if found { 0 } else { looks_without_any + 1 };
    }
    pairing::forget(&placing.threads, None);
    Ok(())
}

fn drain(of: &Running, ends: &Ends) -> anyhow::Result<()> {
    of.stop()?;
    let begun = Instant::now();
    let mut is_said = false;
    let mut drained = Drained::default();
    loop {
        let here = ends.look()?;
        let state = drained.look(&here);
        for cookie in &state.release {
            of.release(*cookie);
        }
        if state.waits_for.is_empty() && state.release.is_empty() {
            if !state.asleep.is_empty() && begun.elapsed() < SAY_AFTER {
                wait_a_little()?;
                continue;
            }
            if !state.asleep.is_empty() {
                crate::status::say!(
                    "{} sockets stay in the map until they are closed, since somebody waits in recv or send \
                     there: nothing is redirected any more",
                    state.asleep.len()
                );
            }
            return Ok(());
        }
        if !is_said && begun.elapsed() > SAY_AFTER && !state.waits_for.is_empty() {
            is_said = true;
            let bytes: u64 = state.waits_for.iter().map(|one| one.queued).sum();
            crate::status::say!(
                "{} sockets have {bytes} bytes that their programs have not read, or a send under way; \
                 waiting for them (a second Ctrl-C gives that up)",
                state.waits_for.len()
            );
        }
        wait_a_little()?;
    }
}

/// What is known, look after look, of ends whose messages all take TCP now.
#[derive(Default)]
struct Drained {
    /// Nobody held its psock once since then: no send that began before is under way.
    free: HashSet<u64>,
}

#[derive(Default)]
struct State {
    /// Nothing lies in their queues, and nothing comes.
    release: Vec<u64>,
    /// Their connections have unread bytes, or may be about to.
    waits_for: Vec<End>,
    /// Their connections have none, and may only have calls that sleep: they are not released, since it
    /// cannot be told which calls these are.
    asleep: Vec<u64>,
}

impl Drained {
    fn look(&mut self, ends: &[End]) -> State {
        let here = || ends.iter().filter(|end| end.is(End::JOINED));
        let by_cookie: HashMap<u64, &End> = here().map(|end| (end.cookie, end)).collect();
        // A client that has not sent yet does not know its server.
        let mut peers: HashMap<u64, u64> = HashMap::new();
        for end in here().filter(|end| end.is(End::SERVER)) {
            peers.insert(end.cookie, end.peer);
            peers.insert(end.peer, end.cookie);
        }
        let mut state = State::default();
        for end in here() {
            let peer = peers.get(&end.cookie).and_then(|peer| by_cookie.get(peer));
            let both = || std::iter::once(&end).chain(peer);
            let is_queued = both().any(|one| one.is(End::QUEUED));
            let is_free = both().all(|one| self.free.contains(&one.cookie));
            let may_sleep = both().all(|one| {
                self.free.contains(&one.cookie) || (one.users > 0 && one.users <= one.asleep)
            });
            match (is_queued, is_free, may_sleep) {
                (false, true, _) => state.release.push(end.cookie),
                (false, false, true) => state.asleep.push(end.cookie),
                _ => state.waits_for.push(*end),
            }
        }
        self.free
            .extend(here().filter(|end| end.users == 0).map(|end| end.cookie));
        state
    }
}

/// What the keeper waits for the end of. Made before everything else: the kernel closes descriptors in their order
/// when a process ends, and those of programs and their links may take long.
pub(super) struct Line(PipeReader, PipeWriter);

impl Line {
    pub(super) fn new() -> anyhow::Result<Line> {
        let (read, write) = std::io::pipe().context("a pipe to the keeper")?;
        Ok(Line(read, write))
    }
}

/// The keeper, seen from the accelerator.
pub(super) struct Keeper(Child, Option<PipeWriter>);

impl Keeper {
    pub(super) fn start(line: Line, group: Option<&Group>) -> anyhow::Result<Keeper> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["splice", "__keep", &std::process::id().to_string()]);
        if let Some(group) = group {
            command.arg(&group.path).arg(&group.home);
        }
        // Ctrl-C is for the accelerator, which ends the keeper in order.
        command.process_group(0);
        let Line(read, write) = line;
        let mut child = command
            .stdin(read)
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the keeper")?;
        let mut line = [0; 6];
        let mut stdout = child.stdout.take().context("the keeper's pipe")?;
        if stdout.read_exact(&mut line).is_err() {
            let status = child.wait()?;
            anyhow::bail!("the keeper ended at once ({status})");
        }
        Ok(Keeper(child, Some(write)))
    }

    /// Tells it that the accelerator ends; true once it has done its work.
    pub(super) fn is_done(&mut self) -> anyhow::Result<bool> {
        drop(self.1.take());
        Ok(self.0.try_wait()?.is_some())
    }

    /// It has not ended by itself.
    pub(super) fn is_there(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }

    pub(super) fn give_up(mut self) {
        // It may have ended meanwhile.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> [End; 2] {
        let end = |cookie, peer, flags| End {
            cookie,
            peer,
            flags: flags | End::JOINED,
            ..End::default()
        };
        [end(1, 0, 0), end(2, 1, End::SERVER)]
    }

    #[test]
    fn nothing_is_released_while_a_send_may_be_under_way() {
        let mut drained = Drained::default();
        let mut two = ends();
        two[1].users = 1;
        for _ in 0..10 {
            let state = drained.look(&two);
            assert_eq!((state.release.len(), state.waits_for.len()), (0, 2));
        }
        two[1].users = 0;
        assert!(drained.look(&two).release.is_empty());
        // What it put there before it ended.
        two[0].flags |= End::QUEUED;
        assert!(drained.look(&two).release.is_empty());
        two[0].flags &= !End::QUEUED;
        two[1].users = 1;
        assert_eq!(drained.look(&two).release, [1, 2]);
    }

    #[test]
    fn sleepers_are_left() {
        let mut drained = Drained::default();
        let mut two = ends();
        (two[0].users, two[0].asleep) = (1, 1);
        drained.look(&two);
        let state = drained.look(&two);
        assert_eq!((state.release.len(), state.asleep.len()), (0, 2));
        two[0].flags |= End::QUEUED;
        assert_eq!(drained.look(&two).waits_for.len(), 2);
    }
}
