//! Functions of modules that targets load while they are recorded (`--follow-dlopen`). They are looked for and added in a
//! thread of its own: reading a large file takes seconds, in which rings would overflow.
//!
//! A module's copies lie in an arena of their own, which writes into the rings of the recording (`live::shared_rings`): it
//! comes and goes like a recording's, with the same steps, so that whoever finds it after this process was killed can undo
//! it.
mod added;
mod notes;
mod sentinels;
mod target;

pub use target::Followed;

use super::rows::NewRows;
use crate::instrument::capture::parse::Selection;
use crate::live::install::{InstallOptions, Installed};
use crate::plan::Plan;
use hopscope_event::RecordingMeta;
use hopscope_event::table::TargetStops;
use notes::Notes;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Between two looks at what a target has mapped, each of some 20 us.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Waited for at the end.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// What is added to targets, and how.
pub struct Follow {
    pub selections: Vec<Selection>,
    pub options: InstallOptions,
    pub meta: RecordingMeta,
    /// Goes on from the tables that the recording began with.
    pub plan: MakePlan,
}

pub type MakePlan = Box<dyn FnOnce() -> Plan + Send>;

/// The thread that follows the targets of a recording.
pub struct Following {
    told: Arc<Told>,
    targets: Vec<Arc<Beside>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread tells the recorder, of all targets.
#[derive(Default)]
pub struct Told {
    ends: AtomicBool,
    has_rows: AtomicBool,
    rows: Mutex<NewRows>,
    /// The tables as they are since the last load.
    plan: Mutex<Option<MakePlan>>,
}

/// What was added to one target. Whoever holds it may stop the target's threads, or add to it.
#[derive(Default)]
pub struct Beside {
    additions: Mutex<Vec<Installed>>,
    notes: Mutex<Notes>,
}

/// What came of following.
pub struct Followings {
    /// With the tables as they are now; `None`: as they were.
    pub plan: Option<MakePlan>,
    /// What the user should know.
    pub notes: Vec<String>,
    pub stops: Vec<TargetStops>,
}

impl Told {
    /// Rows that no sink has: of functions whose probes may be there by now.
    pub(super) fn take_rows(&self) -> Option<NewRows> {
        // Set before the first probe, and read behind what the probes wrote.
        if !self.has_rows.swap(false, Ordering::AcqRel) {
            return None;
        }
        Some(std::mem::take(&mut *lock(&self.rows)))
    }

    fn add_rows(&self, rows: &NewRows) {
        if !rows.is_empty() {
            lock(&self.rows).append(rows);
            self.has_rows.store(true, Ordering::Release);
        }
    }

    fn is_over(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }
}

impl Beside {
    /// Keeps the thread from stopping the target's threads; `None`: it is about to add something.
    pub(super) fn hold(&self) -> Option<MutexGuard<'_, Vec<Installed>>> {
        match self.additions.try_lock() {
            Ok(held) => Some(held),
            Err(std::sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn take(&self) -> Vec<Installed> {
        std::mem::take(&mut *lock(&self.additions))
    }
}

impl Following {
    /// # Errors
    /// There can be no further thread.
    pub fn begin(follow: Follow, targets: Vec<Followed>) -> io::Result<Following> {
        let told = Arc::new(Told::default());
        let sides = targets.iter().map(|target| {
            Arc::new(Beside {
                notes: Mutex::new(Notes::of(target.pid())),
                ..Beside::default()
            })
        });
        let sides: Vec<Arc<Beside>> = sides.collect();
        let (its_told, its_sides) = (told.clone(), sides.clone());
        let thread = Builder::new().name("modules".into()).spawn(move || {
            let mut targets: Vec<_> = targets.into_iter().zip(its_sides).collect();
            run(follow, &mut targets, &its_told);
        })?;
        Ok(Following {
            told,
            targets: sides,
            thread: Some(thread),
        })
    }

    /// What the recorder needs of it for each target, in their order.
    pub fn sides(&self) -> impl Iterator<Item = (Arc<Told>, Arc<Beside>)> {
        self.targets
            .iter()
            .map(|side| (self.told.clone(), side.clone()))
    }

    pub(super) fn take_rows(&self) -> Option<NewRows> {
        self.told.take_rows()
    }

    /// Nothing is added any more. What was is with each target ([`Beside`]).
    pub(super) fn end(&self) {
        self.told.ends.store(true, Ordering::Release);
        // Whoever adds something now has it when this returns.
        self.targets
            .iter()
            .for_each(|side| drop(lock(&side.additions)));
    }

    /// Waits a while for the thread, which may be reading a file, and does nothing to any target any more.
    pub(super) fn finish(mut self) -> Followings {
        self.end();
        let thread = self.thread.take().expect("is there until it is joined");
        thread.thread().unpark();
        let began = Instant::now();
        while !thread.is_finished() && began.elapsed() < LAST_LOOK {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        let failed = thread.is_finished() && thread.join().is_err();
        let notes = self.targets.iter().map(|side| lock(&side.notes));
        let (mut text, mut stops) = (Vec::new(), Vec::new());
        for notes in notes {
            text.extend(notes.text());
            stops.extend(notes.stops());
        }
        if failed {
            text.push(
                "modules loaded while recording were not followed to the end: an error of hopscope"
                    .to_owned(),
            );
        }
        Followings {
            plan: lock(&self.told.plan).take(),
            notes: text,
            stops,
        }
    }
}

/// A panic of the recorder: what was added is detached before what it was added to.
impl Drop for Following {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
            for side in &self.targets {
                side.take().clear();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(follow: Follow, targets: &mut [(Followed, Arc<Beside>)], told: &Told) {
    let Follow {
        selections,
        options,
        meta,
        plan,
    } = follow;
    let mut rows = added::Rows::of(plan());
    let adding = target::Adding {
        selections: &selections,
        options: &options,
        meta: &meta,
        told,
    };
    while !told.is_over() {
        hopscope_process::detach_late_stoppers();
        for (target, side) in targets.iter_mut() {
            if target.look(&adding, &mut rows, side) {
                *lock(&told.plan) = Some(Box::new(rows.plan.going_on()));
            }
        }
        std::thread::park_timeout(BETWEEN_LOOKS);
    }
}
