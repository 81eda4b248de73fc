//! What made packets late, and what speaks for it.
use super::brief::Place;
use crate::run::RunIx;
use hopscope_event::StreamIx;

/// A cause of late packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// This function was slow against its own distribution at that batch size, in some runs, and
    /// not for certain flows only. Packets behind those runs are late too.
    SlowFunction(Place),
    /// This function is called in or before few runs, and each time holds up the packets that come
    /// meanwhile for longer than an ordinary run takes.
    RareFunction(Place),
    /// This function is slow whenever packets of certain flows come.
    ExpensiveInput(Place),
    /// More packets came at a time than chance brings at their mean rate. No run was slow.
    Burst,
    /// Packets were let gather and handled in one large batch, at the ordinary cost of each.
    BigBatch,
    /// The thread was taken off its processor although it could have run on.
    Preempted,
    /// For some time several functions were slower, without more calls, while packets of the same
    /// flow were farther apart: caches and tables served them worse.
    CacheHostile,
    /// The generator sent them late.
    GeneratorLate,
    /// Before the first run that could have taken them, with nothing under way.
    BeforeNf,
    /// After their run.
    WayOut,
    Unknown(Reason),
}

/// Why no cause is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No single part of the latency dominates.
    NothingStandsOut,
    /// What took long took longer than usual, but so much is to be expected once in a recording of this size.
    OrdinarySpread,
    /// Waiting behind ordinary runs, with arrivals as dense as chance brings them at this rate.
    OrdinaryQueueing,
    /// Waiting behind ordinary runs, or a batch larger than others; when packets arrived is not
    /// known, so neither is whether they came thick.
    ArrivalsNotSeen,
    /// Single runs were interrupted here and there, in proportion to the time spent there: of the
    /// machine, not of a function. Also when there are too few to tell.
    Hiccups,
    /// The thread was asleep when packets came, and woke later than ordinarily: another process, the
    /// machine, or whoever should have woken it.
    WokenLate,
    /// Everything was slower for a while and the order of the packets was no different: a slower
    /// clock, or a neighbour on the same core.
    SlowerForAWhile,
    /// The runs that it leads back to are not known whole: records were lost.
    RunNotWhole,
    /// The history did not reach back to the begin.
    HistoryCut,
    /// More events than are told apart.
    TooManyEvents,
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Cause::SlowFunction(_) => "slow_function",
            Cause::RareFunction(_) => "rare_function",
            Cause::ExpensiveInput(_) => "expensive_input",
            Cause::Burst => "burst",
            Cause::BigBatch => "big_batch",
            Cause::Preempted => "preempted",
            Cause::CacheHostile => "cache_hostile",
            Cause::GeneratorLate => "generator_late",
            Cause::BeforeNf => "before_nf",
            Cause::WayOut => "way_out",
            Cause::Unknown(_) => "unknown",
        }
    }

    pub fn place(self) -> Option<Place> {
        match self {
            Cause::SlowFunction(place)
            | Cause::RareFunction(place)
            | Cause::ExpensiveInput(place) => Some(place),
            _ => None,
        }
    }

    pub fn is_known(self) -> bool {
        !matches!(self, Cause::Unknown(_))
    }
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::NothingStandsOut => "nothing_stands_out",
            Reason::OrdinarySpread => "ordinary_spread",
            Reason::OrdinaryQueueing => "ordinary_queueing",
            Reason::ArrivalsNotSeen => "arrivals_not_seen",
            Reason::Hiccups => "hiccups",
            Reason::WokenLate => "woken_late",
            Reason::SlowerForAWhile => "slower_for_a_while",
            Reason::RunNotWhole => "run_not_whole",
            Reason::HistoryCut => "history_cut",
            Reason::TooManyEvents => "too_many_events",
        }
    }
}

/// One step from a packet back to the cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link {
    /// It waited so long behind this run of so many packets.
    WaitedBehind {
        run: RunIx,
        packets: u32,
        ticks: i64,
    },
    /// It was one of so many packets in its run.
    InBatch { run: RunIx, packets: u32 },
}

/// What speaks for an event's cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Evidence {
    /// In this run the place took `ticks` where `ordinary_ticks` is its median for the batch.
    Slow {
        run: RunIx,
        ticks: i64,
        ordinary_ticks: i64,
    },
    /// This place took `ticks` in this run, or before it outside of any (`in_run`); of `of` runs with
    /// packets it is so with `runs`.
    Rare {
        run: RunIx,
        ticks: i64,
        in_run: bool,
        runs: u64,
        of: u64,
    },
    /// So many packets within so long, where the mean rate brings `expected`.
    Arrivals {
        packets: u64,
        within_ticks: i64,
        expected: f64,
    },
    /// Batch size, the median one, and how long the oldest waited while no run was under way.
    Batch {
        run: RunIx,
        packets: u32,
        ordinary: u32,
        gathered_ticks: i64,
    },
    /// Preempted in this run (`in_run`) or before it.
    OffCpu {
        run: RunIx,
        ticks: i64,
        in_run: bool,
    },
    /// Runs around took `ratio` times as long; packets of a flow were `reuse` apart (geometric
    /// mean, in packets), ordinarily `ordinary_reuse`. 0: not known.
    Slower {
        run: RunIx,
        ratio: f64,
        reuse: f64,
        ordinary_reuse: f64,
    },
    /// So long in this part, ordinarily so long.
    Part {
        ticks: i64,
        ordinary_ticks: i64,
    },
    /// In so many of the runs with packets of this flow the function was slow.
    Flow {
        stream: StreamIx,
        flow: u32,
        slow_runs: u32,
        runs: u32,
    },
    None,
}
