//! Calls of a thread that lie in no run, kept until the next run begins: a packet may have waited
//! for them.
use crate::pair::Call;
use crate::run::OutsideCall;
use hopscope_event::Tsc;

/// So many are told apart; of more, the earlier ones become one.
pub(super) const OUTSIDE_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct OutsideCalls {
    /// Ascending; none lies within another.
    calls: Vec<OutsideCall>,
    /// When the last run of the thread ended.
    run_end: Tsc,
}

impl OutsideCalls {
    /// Callees end before their caller, so what began after its entry is its own.
    #[inline]
    pub(super) fn ended(&mut self, call: &Call, own_ticks: i64) {
        if call.inclusive <= 0 {
            return;
        }
        let exit = Tsc(call.entry.wrapping_add_signed(call.inclusive));
        // Of a call that encloses a run: what follows the run.
        let entry = Tsc(call.entry).max(self.run_end);
        if entry >= exit {
            return;
        }
        let mut outside = OutsideCall::new(entry, exit);
        let within = self.calls.iter().rev().take_while(|c| c.entry >= entry);
        let first = self.calls.len() - within.count();
        for inner in self.calls.drain(first..) {
            for (function, ticks) in inner.own_ticks {
                outside.add(function, ticks);
            }
        }
        let room = (exit - entry - outside.ticks()).max(0);
        outside.add(call.function, own_ticks.clamp(0, room));
        self.calls.push(outside);
        if self.calls.len() >= OUTSIDE_MAX {
            self.halve();
        }
    }

    /// Neighbours become one: the longer ago, the coarser.
    #[cold]
    fn halve(&mut self) {
        let pairs = self.calls.chunks(2).map(|pair| {
            let (first, last) = (pair[0], pair[pair.len() - 1]);
            let mut both = OutsideCall::new(first.entry, last.exit);
            for (function, ticks) in pair.iter().flat_map(|c| c.own_ticks) {
                both.add(function, ticks);
            }
            both
        });
        self.calls = pairs.collect();
    }

    /// A run begins: what was before it goes with it.
    pub(super) fn give(&mut self, to: &mut Vec<OutsideCall>) {
        to.clear();
        std::mem::swap(&mut self.calls, to);
    }

    pub(super) fn run_ended(&mut self, at: Tsc) {
        self.run_end = self.run_end.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::FunctionId;

    const COMMAND: u32 = 1;
    const WALK: u32 = 2;

    fn call(function: u32, entry: u64, exit: u64, callee_ticks: i64) -> Call {
        Call {
            function: FunctionId(function),
            mark: Default::default(),
            entry,
            inclusive: (exit - entry) as i64,
            callee_ticks,
            callees: 0.into(),
            descendants: 0.into(),
            fused: false,
            suspended_ticks: 0,
            tail: false,
        }
    }

    fn given(calls: &[Call], run_end: u64) -> Vec<OutsideCall> {
        let mut outside = OutsideCalls::default();
        outside.run_ended(Tsc(run_end));
        for c in calls {
            outside.ended(c, c.inclusive - c.callee_ticks);
        }
        let mut to = Vec::new();
        outside.give(&mut to);
        to
    }

    fn own(call: &OutsideCall, function: u32) -> i64 {
        let its = call.own_ticks.iter().filter(|(f, _)| f.0 == function);
        its.map(|(_, ticks)| ticks).sum()
    }

    #[test]
    fn a_call_takes_in_what_it_called() {
        let inner = call(WALK, 110, 190, 0);
        let got = given(&[inner, call(COMMAND, 100, 200, 80)], 0);
        assert_eq!(
            (got.len(), got[0].entry, got[0].exit),
            (1, Tsc(100), Tsc(200))
        );
        assert_eq!((own(&got[0], COMMAND), own(&got[0], WALK)), (20, 80));
        let half: Vec<_> = got[0].within(Tsc(150), Tsc(500)).collect();
        assert!(half.contains(&(FunctionId(WALK), 40)), "{half:?}");
    }

    #[test]
    fn what_encloses_a_run_counts_from_its_end() {
        let got = given(&[call(COMMAND, 100, 1000, 870)], 980);
        assert_eq!((got[0].entry, own(&got[0], COMMAND)), (Tsc(980), 20));
        assert_eq!(given(&[call(COMMAND, 100, 900, 0)], 980), []);
    }

    #[test]
    fn many_callees_stay_bounded_and_keep_their_time() {
        let walks = (0..10_000).map(|n| call(WALK, 1000 + n * 10, 1008 + n * 10, 0));
        let mut calls: Vec<_> = walks.collect();
        assert!(given(&calls, 0).len() < OUTSIDE_MAX);
        calls.push(call(COMMAND, 990, 101_010, 80_000));
        let got = given(&calls, 0);
        assert_eq!((got.len(), own(&got[0], WALK)), (1, 80_000));
        assert_eq!(own(&got[0], COMMAND), 20_020);
    }
}
