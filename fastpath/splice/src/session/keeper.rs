//! The keeper: a small process beside an accelerator that outlives it. When the accelerator ends,
//! killed or not, joined sockets hold the programs, and bytes may lie in queues that go with the map: the
//! keeper has every message take TCP, and takes each socket out of the map once its queue is read.
use super::drained::Drained;
use super::error::SessionError;
use super::{Helper, HelperCommand, Say};
use crate::cgroup::Group;
use crate::edges::Edges;
use crate::pairing::{self, Restored};
use crate::programs::{Count, Ends, Placing, Running, SpliceError, running};
use crate::unseen::Unseen;
use nix::errno::Errno;
use nix::poll::{PollTimeout, poll};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const LOOK_AGAIN_MS: u8 = 20;
/// Half a second.
const LOOKS_FOR_LATE_ONES: u32 = 25;
/// Then it says for whom it waits.
const SAY_AFTER: Duration = Duration::from_secs(1);

/// The keeper's whole life. `group`: of the accelerator's command, and where its processes go when it is removed.
///
/// # Errors
/// There is nothing to keep, or it cannot be done.
pub fn keep(
    of: u32,
    group: Option<(&Path, &Path)>,
    helper: HelperCommand,
    say: Say,
) -> Result<(), SessionError> {
    let found = running().into_iter().find(|one| one.pid == of);
    let of = found.ok_or(SessionError::NothingToKeep(of))?;
    let ends = of.ends_seen()?;
    // The accelerator has said where it cannot be.
    let edges = Edges::start(helper(Helper::Edges), of.edge_maps()?).ok();
    let home = group.map(|(_, home)| File::open(home)).transpose()?;
    let group = match (group, &home) {
        (Some((path, _)), Some(home)) => Some(Group::of_another(path, home)?),
        _ => None,
    };
    // The accelerator's programs end with it, and threads go on to make others.
    let placing = of.placed.as_ref().map(Placing::beside).transpose()?;
    std::io::stdout().write_all(b"ready\n")?;
    // Ends when the accelerator does, in whatever way.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let restored = placing.as_ref().map(restore_masks).transpose();
    drain(&of, &ends, edges, say)?;
    restored?;
    placing.as_ref().map(restore_late_ones).transpose()?;
    if let Some(group) = group {
        let moved = group.leave()?;
        if moved > 0 {
            say(format_args!(
                "{moved} processes of the command still run and continue over TCP"
            ));
        }
    }
    Ok(())
}

fn wait_a_little() -> io::Result<()> {
    match poll(&mut [], PollTimeout::from(LOOK_AGAIN_MS)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Threads that were placed on a processor: all of them where the accelerator was killed; otherwise those that were
/// being made when it restored the others.
fn restore_masks(placing: &Placing) -> Result<Restored, SpliceError> {
    let restored = pairing::restore(&placing.threads, None)?;
    placing
        .threads
        .count(Count::MasksChanged, restored.changed)?;
    Ok(restored)
}

/// A thread has its maker's mask from the beginning of fork(2) on, and is known at its end.
fn restore_late_ones(placing: &Placing) -> Result<(), SessionError> {
    let mut looks_without_any = 0;
    while looks_without_any < LOOKS_FOR_LATE_ONES && !placing.threads.of(None).is_empty() {
        wait_a_little()?;
        let found = restore_masks(placing)?.threads > 0;
        looks_without_any = if found { 0 } else { looks_without_any + 1 };
    }
    pairing::forget(&placing.threads, None);
    Ok(())
}

fn drain(
    of: &Running,
    ends: &Ends,
    mut edges: Option<Edges>,
    say: Say,
) -> Result<(), SessionError> {
    of.stop()?;
    let begun = Instant::now();
    let mut done = None;
    let mut is_said = false;
    let mut drained = Drained::default();
    let mut unseen = Unseen::default();
    loop {
        let here = ends.look()?;
        if let Some(edges) = &mut edges {
            unseen.look(&here, edges);
        }
        let state = drained.look(&here);
        for cookie in &state.release {
            of.release(*cookie);
        }
        if state.waits_for.is_empty() && state.release.is_empty() {
            // It may wait for a reader that stopped in its call.
            let done = *done.get_or_insert_with(Instant::now);
            let owed = edges.as_mut().map_or(0, |edges| unseen.owes(edges));
            if owed > 0 && done.elapsed() < SAY_AFTER {
                wait_a_little()?;
                continue;
            }
            if let Some(edges) = edges.as_mut().filter(|_| owed > 0) {
                unseen.leave(edges);
                let namespaces = if owed == 1 { "namespace" } else { "namespaces" };
                say(format_args!(
                    "readers of {owed} network {namespaces} that wait for edges (EPOLLET) are told of what came by TCP \
                     once another reader there goes on, which has stopped in its receive"
                ));
            }
            if !state.asleep.is_empty() && begun.elapsed() < SAY_AFTER {
                wait_a_little()?;
                continue;
            }
            if !state.asleep.is_empty() {
                say(format_args!(
                    "{} sockets stay in the map until they are closed, since somebody waits in recv or send \
                     there: nothing is redirected any more",
                    state.asleep.len()
                ));
            }
            return Ok(());
        }
        if !is_said && begun.elapsed() > SAY_AFTER && !state.waits_for.is_empty() {
            is_said = true;
            let bytes: u64 = state.waits_for.iter().map(|one| one.queued).sum();
            say(format_args!(
                "{} sockets have {bytes} bytes that their programs have not read, or a send under way; \
                 waiting for them (a second Ctrl-C gives that up)",
                state.waits_for.len()
            ));
        }
        wait_a_little()?;
    }
}

/// What the keeper waits for the end of. Made before everything else: the kernel closes descriptors in their order
/// when a process ends, and those of programs and their links may take long.
pub(super) struct Line(PipeReader, PipeWriter);

impl Line {
    pub(super) fn new() -> Result<Line, SessionError> {
        let (read, write) = io::pipe().map_err(SessionError::os("a pipe to the keeper"))?;
        Ok(Line(read, write))
    }
}

/// The keeper, seen from the accelerator.
pub(super) struct Keeper {
    child: Child,
    /// For another one that takes its place: the line is what the kernel closes first.
    read: PipeReader,
    write: Option<PipeWriter>,
}

impl Keeper {
    /// `command`: that of a program that calls [`keep`] with the words which are added.
    pub(super) fn start(
        command: Command,
        line: Line,
        group: Option<&Group>,
    ) -> Result<Keeper, SessionError> {
        let Line(read, write) = line;
        Ok(Keeper {
            child: spawn(command, &read, group)?,
            read,
            write: Some(write),
        })
    }

    /// It has ended: another one.
    pub(super) fn replace(
        &mut self,
        command: Command,
        group: Option<&Group>,
    ) -> Result<u32, SessionError> {
        self.child = spawn(command, &self.read, group)?;
        Ok(self.child.id())
    }

    /// Tells it that the accelerator ends.
    pub(super) fn tell(&mut self) {
        drop(self.write.take());
    }

    /// How it has ended, if it has.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    pub(super) fn give_up(mut self) {
        // It may have ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Until it keeps.
fn spawn(
    mut command: Command,
    line: &PipeReader,
    group: Option<&Group>,
) -> Result<Child, SessionError> {
    command.arg(std::process::id().to_string());
    if let Some(group) = group {
        command.arg(&group.path).arg(&group.home);
    }
    // Ctrl-C is for the accelerator, which ends the keeper in order.
    command.process_group(0);
    let mut child = command
        .stdin(line.try_clone()?)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(SessionError::os("starting the keeper"))?;
    let mut line = [0; 6];
    let read = child.stdout.take().map(|mut out| out.read_exact(&mut line));
    if !matches!(read, Some(Ok(()))) {
        return Err(SessionError::KeeperEnded(child.wait()?));
    }
    Ok(child)
}
