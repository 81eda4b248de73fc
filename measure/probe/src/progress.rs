//! Progress of a long attach. Phases follow each other; whoever shows them
//! looks from another thread.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What is done before anything is measured, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The files of a process.
    Files,
    /// Where functions were inlined, by file.
    Inlined,
    /// Functions: which can be measured.
    Functions,
    /// Functions are copied.
    Copies,
    /// Entries are made the target's own, by memory page.
    Pages,
    /// Entries are replaced.
    Entries,
}

const PHASES: [Phase; 6] = [
    Phase::Files,
    Phase::Inlined,
    Phase::Functions,
    Phase::Copies,
    Phase::Pages,
    Phase::Entries,
];

impl Phase {
    pub fn words(self) -> &'static str {
        match self {
            Phase::Files => "reading files",
            Phase::Inlined => "reading debugging information",
            Phase::Functions => "looking at functions",
            Phase::Copies => "copying functions",
            Phase::Pages => "preparing entries",
            Phase::Entries => "replacing entries",
        }
    }
}

/// The number of the phase plus one; 0: none.
static PHASE: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
static ALL: AtomicU64 = AtomicU64::new(0);

/// A phase begins, of so many steps.
pub(crate) fn begin(phase: Phase, all: usize) {
    DONE.store(0, Ordering::Relaxed);
    ALL.store(all as u64, Ordering::Relaxed);
    PHASE.store(phase as usize + 1, Ordering::Relaxed);
}

pub(crate) fn step(steps: usize) {
    DONE.fetch_add(steps as u64, Ordering::Relaxed);
}

/// What is being done, how many steps of how many are. A phase that has just begun may be shown with
/// the steps of the one before.
pub fn now() -> Option<(Phase, u64, u64)> {
    let phase = PHASES.get(PHASE.load(Ordering::Relaxed).checked_sub(1)?)?;
    let all = ALL.load(Ordering::Relaxed);
    Some((*phase, DONE.load(Ordering::Relaxed).min(all), all))
}
