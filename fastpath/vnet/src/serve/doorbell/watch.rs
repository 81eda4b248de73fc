//! A thread that looks whether a bell is waited for, and makes the wait end: a full one is emptied, an empty one rung.
//! It begins with the first bell, when privileges are given up already, and ends after the last.
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

    /// A full bell is emptied whatever its flags are; an empty one is one that was read.
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
struct Bells {
    /// With the turn that the last look saw.
    all: Vec<(Weak<Watched>, u64)>,
    is_watched: bool,
}

static BELLS: Mutex<Bells> = Mutex::new(Bells {
    all: Vec::new(),
    is_watched: false,
});

fn bells() -> MutexGuard<'static, Bells> {
    BELLS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn add(bell: &Arc<Watched>) -> io::Result<()> {
    let mut bells = bells();
    bells.all.push((Arc::downgrade(bell), 0));
    if !bells.is_watched {
        let watch = std::thread::Builder::new().name("doorbells".into());
        watch.spawn(watch_all)?;
        bells.is_watched = true;
    }
    Ok(())
}

fn watch_all() {
    loop {
        std::thread::sleep(LOOK);
        let mut bells = bells();
        bells.all.retain_mut(|(bell, seen)| {
            let Some(bell) = bell.upgrade() else {
                return false;
            };
            let turns = bell.turns.load(Ordering::Relaxed);
            if turns % 2 == 1 && turns == *seen {
                // What cannot be ended now is tried at the next look.
                let _ = bell.end_wait();
            }
            *seen = turns;
            true
        });
        if bells.all.is_empty() {
            bells.is_watched = false;
            return;
        }
    }
}
