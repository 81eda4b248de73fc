//! What one pass of the data path over a batch did: the calls, the captured values, the time.
use hopscope_event::{FunctionId, ThreadIx, Tsc};

/// Runs are numbered from 0 in the order in which they are given out: by their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RunIx(pub u64);

/// What makes a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RootChoice {
    /// Each outermost call of this function, from its entry to its exit.
    Function(FunctionId),
    /// Each return to the polling loop: from the entry of this function, which the loop calls
    /// first and which has no measured caller, to the end of the last call that the loop makes
    /// before it calls this function again. A pass that called nothing else polled in vain and is
    /// counted, not given out.
    PollingLoop(FunctionId),
}

impl RootChoice {
    /// The function that a run begins with.
    pub fn function(self) -> FunctionId {
        match self {
            RootChoice::Function(f) | RootChoice::PollingLoop(f) => f,
        }
    }
}

/// A root, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub choice: RootChoice,
    /// `None` when the user named it; else what in the recording speaks for it, in words.
    pub suggested_because: Option<String>,
}

/// One pass of the data path. Times of the probes' clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub ix: RunIx,
    pub thread: ThreadIx,
    pub root: FunctionId,
    pub start: Tsc,
    /// Of an incomplete run: the last stamp that is known to be its.
    pub end: Tsc,
    /// False when it is not known whole: records were lost in it, it was left without an exit
    /// (longjmp, escape, end of the recording), or it has more calls than are kept.
    pub complete: bool,
    /// In order of entry, each after its caller.
    pub calls: Vec<RunCall>,
    /// In order of capture.
    pub values: Vec<Captured>,
    /// Part of `start..end` in which the thread did not run; 0 without context-switch records.
    pub off_cpu_ticks: u64,
    /// Calls beyond those kept; they are in no field of this run but its length.
    pub calls_left_out: u64,
    /// What its thread called since the run before it, outside of any run. In order of time.
    pub outside: Vec<OutsideCall>,
}

/// Functions of an [`OutsideCall`] that are told apart; the one with the least time is left out.
pub const OUTSIDE_FUNCTIONS: usize = 4;

/// A call that no run encloses, with what it called; or, of many, some that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutsideCall {
    pub entry: Tsc,
    pub exit: Tsc,
    /// Own ticks of the functions in it; unused places have none.
    pub own_ticks: [(FunctionId, i64); OUTSIDE_FUNCTIONS],
}

impl OutsideCall {
    pub fn new(entry: Tsc, exit: Tsc) -> OutsideCall {
        OutsideCall {
            entry,
            exit,
            own_ticks: [(FunctionId(0), 0); OUTSIDE_FUNCTIONS],
        }
    }

    pub fn add(&mut self, function: FunctionId, ticks: i64) {
        let known = self.own_ticks.iter_mut();
        let mut known = known.filter(|(f, sum)| *f == function && *sum > 0);
        if let Some((_, sum)) = known.next() {
            *sum += ticks;
            return;
        }
        let least = self.own_ticks.iter_mut().min_by_key(|(_, sum)| *sum);
        if let Some(least) = least
            && least.1 < ticks
        {
            *least = (function, ticks);
        }
    }

    /// Ticks of all functions that are told apart.
    pub fn ticks(&self) -> i64 {
        self.own_ticks.iter().map(|(_, ticks)| ticks).sum()
    }

    /// What of them lies between these two: in proportion, when the call is only in part.
    pub fn within(&self, from: Tsc, to: Tsc) -> impl Iterator<Item = (FunctionId, i64)> {
        let overlap = (self.exit.min(to) - self.entry.max(from)).max(0);
        let span = (self.exit - self.entry).max(1);
        let of = move |(function, ticks): (FunctionId, i64)| {
            let its = i128::from(ticks) * i128::from(overlap) / i128::from(span);
            (function, its as i64)
        };
        let own = self.own_ticks.into_iter().map(of);
        own.filter(|(_, ticks)| *ticks > 0)
    }
}

/// A call within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCall {
    pub function: FunctionId,
    /// 0 of the root, and of every call that a polling loop makes.
    pub depth: u16,
    /// Index of the caller in `Run::calls`.
    pub parent: Option<u32>,
    pub entry: Tsc,
    /// When the call's end is not known, as far as it is: the last exit of a callee, or the entry.
    pub exit: Tsc,
    /// Its entry has the stamp of the exit before it; of calls that have ended.
    pub fused: bool,
    /// Inclusive time minus that of the measured callees, as measured.
    pub own_ticks: i64,
    /// The same with the median probe cost taken out; equal to `own_ticks` where it is not known.
    pub own_corrected: i64,
    pub off_cpu_ticks: u64,
}

impl Run {
    /// From begin to end, as measured.
    pub fn ticks(&self) -> i64 {
        self.end - self.start
    }
}

impl RunCall {
    /// From entry to exit, as measured.
    pub fn ticks(&self) -> i64 {
        self.exit - self.entry
    }
}

/// A value that a probe captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured {
    /// Index in `Run::calls` of the call that it belongs to.
    pub call: u32,
    /// Number of the capture within its function.
    pub capture: u16,
    /// Index within a captured array; 0 otherwise.
    pub element: u16,
    pub value: u64,
}
