//! What is kept of the calls of one function, module, thread or process.
use crate::balance::Balance;
use crate::correct::{Corrected, Correction};
use crate::counter_stats::CounterStats;
use crate::counts::CallCounts;
use crate::distribution::Distribution;
use crate::measured::Measured;
use crate::off_cpu::OffCpuShare;
use crate::sink::Call;

/// Bounded statistics over calls. In TSC ticks, as measured unless named "corrected".
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub balance: Balance,
    /// Paired calls with a usable time.
    pub timed: u64,
    /// Of these: their entry has the stamp of the exit before it.
    pub fused: u64,
    /// Inclusive time of each outermost call (recursion counts once), and their descendants.
    pub outer_calls: u64,
    outer_fused: u64,
    pub outer_ticks: i128,
    pub outer_descendants: Measured,
    pub self_ticks: i128,
    /// For so long at least the stacks of these calls were left, and others of the thread ran: in their
    /// total time, not in their own. And of how many calls.
    pub suspended_ticks: i128,
    pub suspended_calls: u64,
    pub callees: Measured,
    /// Of the outermost calls.
    pub off_cpu: OffCpuSum,
    pub inclusive: Distribution,
    pub own: Distribution,
    /// With the median probe cost taken out; empty when the cost is not known.
    pub inclusive_corrected: Distribution,
    pub own_corrected: Distribution,
    /// Calls without measured callees: both times are one, and recorded once.
    leaf: Distribution,
    leaf_corrected: Distribution,
    /// By the counter's number; empty where no call has one.
    counters: Vec<CounterStats>,
}

/// What calls were without a processor, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuSum {
    pub calls: u64,
    pub ticks: u128,
    /// Of these: another task was put in its place.
    pub preempted_ticks: u128,
    /// Calls of which not all switches are known.
    pub incomplete_calls: u64,
}

impl OffCpuSum {
    pub(crate) fn add(&mut self, share: OffCpuShare) {
        self.calls += u64::from(share.ticks > 0);
        self.ticks += u128::from(share.ticks);
        self.preempted_ticks += u128::from(share.preempted_ticks);
        self.incomplete_calls += u64::from(share.incomplete);
    }
}

/// Which inclusive times make the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inclusive {
    EveryCall,
    /// Calls from outside only: for keys whose calls nest in each other as a rule.
    Outermost,
}

impl Stats {
    pub(crate) fn add(
        &mut self,
        call: &Call,
        outermost: bool,
        inclusive: Inclusive,
        correction: Option<&Correction>,
    ) {
        let own = call.inclusive - call.callee_ticks;
        self.timed += 1;
        self.fused += u64::from(call.fused);
        self.self_ticks += i128::from(own);
        self.suspended_ticks += i128::from(call.suspended_ticks);
        self.suspended_calls += u64::from(call.suspended_ticks > 0);
        self.callees += call.callees;
        if outermost {
            self.outer_calls += 1;
            self.outer_fused += u64::from(call.fused);
            self.outer_ticks += i128::from(call.inclusive);
            self.outer_descendants += call.descendants;
        }
        let in_distribution = outermost || inclusive == Inclusive::EveryCall;
        let leaf = call.callees.calls == 0 && call.callee_ticks == 0 && in_distribution;
        match leaf {
            true => self.leaf.record(own),
            false => {
                self.own.record(own);
                if in_distribution {
                    self.inclusive.record(call.inclusive);
                }
            }
        }
        let Some(correction) = correction else {
            return;
        };
        let own = correction.own(own, call.fused, call.callees);
        if leaf {
            self.leaf_corrected.record(own);
            return;
        }
        self.own_corrected.record(own);
        if in_distribution {
            let ticks = correction.inclusive(call.inclusive, call.fused, call.descendants);
            self.inclusive_corrected.record(ticks);
        }
    }

    pub(crate) fn counted(&mut self, counts: &CallCounts, outermost: bool) {
        if self.counters.is_empty() {
            self.counters.resize(counts.len(), CounterStats::default());
        }
        for (stats, count) in self.counters.iter_mut().zip(counts) {
            if let Some(count) = count {
                stats.add(count, outermost);
            }
        }
    }

    /// `None`: no ended call has this counter.
    pub fn counter(&self, number: u8) -> Option<&CounterStats> {
        let stats = self.counters.get(usize::from(number));
        stats.filter(|stats| stats.calls > 0)
    }

    /// Brings the leaf calls to where they are read.
    pub(crate) fn settle(&mut self) {
        for (leaf, places) in [
            (&mut self.leaf, [&mut self.own, &mut self.inclusive]),
            (
                &mut self.leaf_corrected,
                [&mut self.own_corrected, &mut self.inclusive_corrected],
            ),
        ] {
            for place in places {
                place.add(leaf);
            }
            *leaf = Distribution::default();
        }
    }

    pub fn corrected_total(&self, correction: &Correction) -> Corrected {
        let calls = Measured {
            calls: self.outer_calls,
            fused: self.outer_fused,
        };
        correction.inclusive_sum(self.outer_ticks, calls, self.outer_descendants)
    }

    pub fn corrected_self(&self, correction: &Correction) -> Corrected {
        let calls = Measured {
            calls: self.timed,
            fused: self.fused,
        };
        correction.own_sum(self.self_ticks, calls, self.callees)
    }
}
