//! How a recording ended, and what came of it.
use super::RingCounts;
use super::alternate::Alternated;
use super::following::MakePlan;
use super::governor::Distress;
use hopscope_event::table::TargetStops;
use hopscope_event::{ClockSync, LeftOutEntry, OffCpuEntry};
use std::time::Duration;

/// Why a recording ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    Asked,
    Duration,
    Calls,
    TargetsGone,
    /// None runs what was measured any more, and some run on after an exec.
    TargetsReplaced,
    Overhead {
        percent: f64,
        limit: f64,
    },
    /// The targets are left alone.
    Distress(Distress),
    /// A module was loaded because of which measured functions may be unwound.
    MayUnwind(String),
    /// Probes take more than their budget, and could not be taken away.
    NotLeftOut(String),
    WriteFailed(String),
}

impl Ended {
    /// The targets run on as before.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self, Ended::Asked | Ended::Duration | Ended::Calls)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Asked => write!(f, "stopped by the user"),
            Ended::Duration => write!(f, "duration limit reached"),
            Ended::Calls => write!(f, "call limit reached"),
            Ended::TargetsGone => write!(f, "all targets have exited"),
            Ended::TargetsReplaced => write!(
                f,
                "no target runs its measured program any more; some have replaced it by exec and run on"
            ),
            Ended::Overhead { percent, limit } => {
                write!(
                    f,
                    "the estimated slowdown of {percent:.0} % is above the limit of {limit:.0} % (--max-overhead)"
                )
            }
            Ended::Distress(why) => why.fmt(f),
            Ended::MayUnwind(who) => {
                write!(
                    f,
                    "a module was loaded that may unwind what is measured: {who}; record again, or \
                     with --assume-no-exceptions"
                )
            }
            Ended::NotLeftOut(e) => {
                write!(f, "probes take more than the budget: {e}")
            }
            Ended::WriteFailed(e) => write!(f, "the trace file cannot be written: {e}"),
        }
    }
}

/// Everything that the summary needs.
pub struct RecorderResult {
    pub ended: Ended,
    pub counts: RingCounts,
    pub threads: u64,
    pub calls_unmeasured: u64,
    pub detach_pauses: Vec<Duration>,
    /// To add what targets loaded.
    pub dlopen_stops: Vec<TargetStops>,
    pub detach_stops: Vec<TargetStops>,
    /// Processes that are still patched, with the reason.
    pub not_restored: Vec<i32>,
    /// Frozen processes that still have copies and rings mapped, with a note.
    pub not_unmapped: Vec<i32>,
    /// `None` when context switches were not recorded.
    pub off_cpu: Option<OffCpuEntry>,
    /// When recording ended, where the targets were measured on.
    pub until: Option<ClockSync>,
    /// `None` if the cost was not measured in place.
    pub alternated: Option<Alternated>,
    /// For the budget's sake, while recording.
    pub left_out: Vec<LeftOutEntry>,
    /// Functions whose probes stay on when those of their thread are off.
    pub functions_not_switched: u64,
    pub notes: Vec<String>,
    /// With the tables as they are at the end, where the targets' loads were followed.
    pub plan: Option<MakePlan>,
}
