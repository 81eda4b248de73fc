//! What a call counted on a counter, and why that is not known of some.
use crate::correct::Taken;
use hopscope_event::counter::{COUNT_BITS, COUNTERS_MAX};
use hopscope_event::{Content, Count, CounterEntry};

/// No processor counts more events than this in one tick of its time-stamp counter.
const EVENTS_A_TICK_LOG2: u32 = 4;

/// How two readings of a counter make a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterKind {
    bits: u8,
    unbroken_only: bool,
}

impl CounterKind {
    pub fn of(entry: &CounterEntry) -> CounterKind {
        CounterKind {
            bits: match entry.bits {
                bits if (1..=COUNT_BITS).contains(&bits.into()) => bits,
                _ => COUNT_BITS as u8,
            },
            unbroken_only: entry.counts_unbroken_only(),
        }
    }

    /// What was counted in a call that took so many ticks.
    pub(crate) fn counted(
        self,
        entry: Option<Reading>,
        end: Option<Reading>,
        ticks: i64,
    ) -> Result<u64, LeftOut> {
        let (Some(entry), Some(end)) = (entry, end) else {
            return Err(LeftOut::Incomplete);
        };
        let (entry, end) = (entry?, end?);
        if !self.unbroken_only {
            return Ok(end.since(entry, self.bits));
        }
        if entry.updates != end.updates {
            return Err(LeftOut::Rescheduled);
        }
        let longest = u32::from(self.bits).saturating_sub(EVENTS_A_TICK_LOG2);
        match ticks.unsigned_abs().checked_shr(longest) {
            None | Some(0) => Ok(end.since(entry, self.bits)),
            Some(_) => Err(LeftOut::MayHaveWrapped),
        }
    }

    /// The second reading was made after the first, or that is not known.
    pub(crate) fn follows(self, first: Option<Reading>, second: Option<Reading>) -> bool {
        match (first, second) {
            (Some(Ok(first)), Some(Ok(second))) => {
                let half = 1 << (self.bits - 1);
                first.updates != second.updates || second.since(first, self.bits) < half
            }
            _ => true,
        }
    }
}

/// What a probe read, or why it could not.
pub(crate) type Reading = Result<Count, LeftOut>;

pub(crate) fn reading(read: Result<Count, Content>) -> Reading {
    read.map_err(|content| match content {
        Content::NotCounting => LeftOut::NotCounting,
        Content::NotOpened => LeftOut::NotOpened,
        _ => LeftOut::Incomplete,
    })
}

/// Why a call's count is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// The kernel took the event off its counter and put it back: the thread lost its processor or moved to another
    /// one, or another event had the counter meanwhile.
    Rescheduled,
    /// At one end the event had no counter of the processor.
    NotCounting,
    /// The thread's event was not opened yet when the call began.
    NotOpened,
    /// A reading is missing, is there twice, or has a content that this version does not know.
    Incomplete,
    /// The call took so long that its counter may have come round.
    MayHaveWrapped,
    /// Of an own count: the call's stack was left, and what others counted meanwhile is not known.
    Suspended,
    /// Of an own count: that of a measured call made by it is not known.
    Callee,
}

impl LeftOut {
    pub const ALL: [LeftOut; 7] = [
        LeftOut::Rescheduled,
        LeftOut::NotCounting,
        LeftOut::NotOpened,
        LeftOut::Incomplete,
        LeftOut::MayHaveWrapped,
        LeftOut::Suspended,
        LeftOut::Callee,
    ];

    /// As in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LeftOut::Rescheduled => "rescheduled",
            LeftOut::NotCounting => "not_counting",
            LeftOut::NotOpened => "not_opened",
            LeftOut::Incomplete => "incomplete",
            LeftOut::MayHaveWrapped => "may_have_wrapped",
            LeftOut::Suspended => "suspended",
            LeftOut::Callee => "callee",
        }
    }
}

/// What the nearest measured calls below a call counted that have the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Callees {
    pub(crate) count: u64,
    pub(crate) calls: u64,
    /// Measured calls made by those in turn.
    pub(crate) descendants: u64,
    /// The count of one of them is not known.
    pub(crate) unknown: bool,
    /// The stack was left in this call, or in one made by it that does not have the counter.
    pub(crate) suspended: bool,
}

impl Callees {
    pub(crate) fn add(&mut self, other: &Callees) {
        self.count = self.count.wrapping_add(other.count);
        self.calls += other.calls;
        self.descendants += other.descendants;
        self.unknown |= other.unknown;
        self.suspended |= other.suspended;
    }
}

/// What a call counted on one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCount {
    /// With all that it called, as read.
    pub total: Result<u64, LeftOut>,
    pub(crate) callees: Callees,
    /// Measured calls below it, with the counter or without.
    pub(crate) descendants: u64,
}

impl CallCount {
    /// Without the measured calls that have the counter, as read.
    pub fn own(&self) -> Result<i64, LeftOut> {
        let total = self.total?;
        if self.callees.suspended {
            return Err(LeftOut::Suspended);
        }
        if self.callees.unknown {
            return Err(LeftOut::Callee);
        }
        Ok(total.wrapping_sub(self.callees.count) as i64)
    }

    /// What the probes counted in `total`.
    pub(crate) fn in_total(&self) -> Taken {
        Taken {
            biases: 1,
            pairs: self.descendants.into(),
        }
    }

    /// What the probes counted in the own count: the callees' readings took out what was between them.
    pub(crate) fn in_own(&self) -> Taken {
        Taken {
            biases: 1 - i128::from(self.callees.calls),
            pairs: i128::from(self.descendants) - i128::from(self.callees.descendants),
        }
    }

    /// Measured calls without the counter are in the own count.
    pub(crate) fn is_mixed(&self) -> bool {
        self.descendants != self.callees.calls + self.callees.descendants
    }
}

/// By the counter's number; `None`: the function does not have it.
pub type CallCounts = [Option<CallCount>; COUNTERS_MAX];
