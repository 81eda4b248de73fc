//! A thread that checks whether a call on an eventfd blocks, and unblocks it: a full one is emptied, an empty one
//! signalled. It begins with the first eventfd, when privileges are given up already, and ends after the last.
//!
//! A thread that has no processor within such a call looks the same from here: what decides is whether the call can wait
//! at all, by the description's flags and by whether the eventfd is ready.
use super::do_not_wait;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Reading and writing take a microsecond where they do not wait.
const LOOK: Duration = Duration::from_millis(50);
/// Two seconds in which this thread had a processor: so long a call that begins to wait may hide it, by O_NONBLOCK that is set again.
const LOOKS_MAX: u32 = 40;

pub(super) struct Watched {
    pub(super) file: File,
    /// Odd: within a call that may wait.
    pub(super) turns: AtomicU64,
    /// The call within is a write(2), which waits for a full one; else a read(2), which waits for an empty one.
    pub(super) writes: AtomicBool,
    /// It was waited for.
    pub(super) waited: AtomicBool,
}

impl Watched {
    pub(super) fn new(file: File) -> Watched {
        Watched {
            file,
            turns: AtomicU64::new(0),
            writes: AtomicBool::new(false),
            waited: AtomicBool::new(false),
        }
    }

    /// Whether a call that is within for `looks` looks waits.
    fn is_waited_for(&self, looks: u32) -> io::Result<bool> {
        let flags = OFlag::from_bits_retain(fcntl(&self.file, FcntlArg::F_GETFL)?);
        if flags.contains(OFlag::O_NONBLOCK) && looks < LOOKS_MAX {
            return Ok(false);
        }
        let ready = if self.writes.load(Ordering::Relaxed) {
            PollFlags::POLLOUT
        } else {
            PollFlags::POLLIN
        };
        let mut polled = [PollFd::new(self.file.as_fd(), ready)];
        poll(&mut polled, PollTimeout::ZERO)?;
        Ok(!polled[0].any().unwrap_or(true))
    }

    /// A full eventfd is emptied whatever its flags are; an empty one is one that was read.
    fn end_wait(&self) -> io::Result<()> {
        self.waited.store(true, Ordering::Relaxed);
        do_not_wait(&self.file)?;
        match (&self.file).read(&mut [0; 8]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                (&self.file).write_all(&1u64.to_ne_bytes())
            }
            done => done.map(drop),
        }
    }
}

#[derive(Default)]
struct All {
    eventfds: Vec<Seen>,
    is_watched: bool,
}

struct Seen {
    eventfd: Weak<Watched>,
    /// The turn that the last look saw, and how many looks saw it.
    turn: u64,
    looks: u32,
}

static ALL: Mutex<All> = Mutex::new(All {
    eventfds: Vec::new(),
    is_watched: false,
});

fn all() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn add(eventfd: &Arc<Watched>) -> io::Result<()> {
    let mut all = all();
    all.eventfds.push(Seen {
        eventfd: Arc::downgrade(eventfd),
        turn: 0,
        looks: 0,
    });
    if !all.is_watched {
        let watch = std::thread::Builder::new().name("doorbells".into());
        watch.spawn(watch_all)?;
        all.is_watched = true;
    }
    Ok(())
}

fn watch_all() {
    loop {
        std::thread::sleep(LOOK);
        let mut all = all();
        look(&mut all);
        if all.eventfds.is_empty() {
            all.is_watched = false;
            return;
        }
    }
}

fn look(all: &mut All) {
    all.eventfds.retain_mut(|seen| {
        let Some(eventfd) = seen.eventfd.upgrade() else {
            return false;
        };
        let turn = eventfd.turns.load(Ordering::Relaxed);
        seen.looks = if turn == seen.turn { seen.looks + 1 } else { 0 };
        seen.turn = turn;
        if turn % 2 == 1 && seen.looks > 0 {
            // What cannot be ended now is tried at the next look.
            let _ = eventfd
                .is_waited_for(seen.looks)
                .and_then(|waits| if waits { eventfd.end_wait() } else { Ok(()) });
        }
        true
    });
}

/// As often as the thread looks in `looks` times 50 ms.
#[cfg(test)]
pub(super) fn look_often(looks: u32) {
    for _ in 0..looks {
        look(&mut all());
    }
}
