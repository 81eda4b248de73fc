//! A thread that checks whether a call on an eventfd blocks, and unblocks it: a full one is emptied, an empty one
//! signalled. It begins with the first eventfd, when privileges are given up already, and ends after the last.
use super::do_not_wait;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Reading and writing take a microsecond where they do not wait.
const LOOK: Duration = Duration::from_millis(50);

pub(super) struct Watched {
    pub(super) file: File,
    /// Odd: within a call that may wait.
    pub(super) turns: AtomicU64,
    /// It was waited for.
    pub(super) waited: AtomicBool,
}

impl Watched {
    pub(super) fn new(file: File) -> Watched {
        Watched {
            file,
            turns: AtomicU64::new(0),
            waited: AtomicBool::new(false),
        }
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
    /// With the turn that the last look saw.
    eventfds: Vec<(Weak<Watched>, u64)>,
    is_watched: bool,
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
    all.eventfds.push((Arc::downgrade(eventfd), 0));
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
        all.eventfds.retain_mut(|(eventfd, seen)| {
            let Some(eventfd) = eventfd.upgrade() else {
                return false;
            };
            let turns = eventfd.turns.load(Ordering::Relaxed);
            if turns % 2 == 1 && turns == *seen {
                // What cannot be ended now is tried at the next look.
                let _ = eventfd.end_wait();
            }
            *seen = turns;
            true
        });
        if all.eventfds.is_empty() {
            all.is_watched = false;
            return;
        }
    }
}
