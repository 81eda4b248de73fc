//! What is to be recorded, until when, and where to.
use crate::attach::AttachRequest;
use hopscope_probe::live::install::Stores;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct RecordRequest {
    pub attach: AttachRequest,
    /// A command that is started, and recorded from its first instruction.
    pub command: Vec<String>,
    pub stores: Stores,
    pub output: PathBuf,
    pub mode: u32,
    pub duration: Option<Duration>,
    pub calls: Option<u64>,
    pub max_overhead_percent: f64,
    /// Ends it at once for its targets' sake.
    pub distress: DistressRequest,
    /// Functions are left out whose probes take more than this of the targets' time, together.
    pub budget_percent: Option<f64>,
    /// Children that targets fork are measured, too.
    pub follow_forks: bool,
    /// What matches is measured, too, when targets load it later.
    pub follow_dlopen: bool,
    /// Where names and unwind tables of the copies go.
    pub symbols: Option<PathBuf>,
    /// How long the probe cost is measured in the targets, afterwards.
    pub check_cost: Option<Duration>,
    /// What a run begins with.
    pub root: Option<String>,
    /// Each Nth run is kept.
    pub every: Option<u64>,
    pub flight: Option<FlightRequest>,
    pub no_off_cpu: bool,
    /// Packets that are sliced, too: a filter expression.
    pub with_slices: Option<String>,
    pub slice_regions: String,
    /// What would be measured is listed, and nothing attached.
    pub dry_run: bool,
    /// All threads are stopped once, with nothing done meanwhile.
    pub dry_stop: bool,
    pub json: bool,
}

/// What the targets are left alone for.
#[derive(Debug, Clone, Default)]
pub struct DistressRequest {
    /// Of the records of a second.
    pub max_loss_percent: Option<f64>,
    /// A file that is touched as long as all is well, and how often it is at least.
    pub heartbeat: Option<(PathBuf, Duration)>,
    /// Calls that take too long: `FUNCTION > TIME`.
    pub calls: Vec<String>,
}

/// A flight recorder: what lies around a trigger is saved.
#[derive(Debug, Clone)]
pub struct FlightRequest {
    pub before: Duration,
    pub after: Duration,
    pub triggers: Vec<String>,
    pub cool_down: Duration,
    /// Files; a new one replaces the oldest.
    pub keep: usize,
    pub memory: usize,
}

impl RecordRequest {
    pub(super) fn triggers(&self) -> &[String] {
        self.flight.as_ref().map_or(&[], |flight| &flight.triggers)
    }

    /// Whether SIGUSR1 is a trigger: the recorder's parent passes it on then.
    pub fn takes_signal(&self) -> bool {
        let is_signal = |trigger: &String| trigger.trim() == super::trigger::SIGNAL;
        self.triggers().iter().any(is_signal)
    }
}
