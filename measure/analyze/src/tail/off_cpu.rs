//! When threads did not run.
use hopscope_event::{OffCpu, ThreadIx, Tsc};
use std::collections::HashMap;

#[derive(Debug, Clone, Default)]
pub(super) struct OffCpuSpans {
    threads: HashMap<ThreadIx, Vec<OffCpu>>,
}

impl OffCpuSpans {
    pub(super) fn extend(&mut self, of: ThreadIx, spans: impl IntoIterator<Item = OffCpu>) {
        let known = self.threads.entry(of).or_default();
        known.extend(spans);
        known.sort_unstable_by_key(|s| (s.out, s.back));
    }

    pub(super) fn is_known(&self, of: ThreadIx) -> bool {
        self.threads.contains_key(&of)
    }

    /// The parts of `from..to` in which the thread was off the CPU, ascending.
    pub(super) fn within(
        &self,
        of: ThreadIx,
        from: Tsc,
        to: Tsc,
    ) -> impl Iterator<Item = OffCpu> + '_ {
        let spans = self.threads.get(&of).map_or(&[][..], |s| s);
        let first = spans.partition_point(|s| s.back <= from);
        let until = move |s: &&OffCpu| s.out < to;
        spans[first..]
            .iter()
            .take_while(until)
            .map(move |s| OffCpu {
                out: s.out.max(from),
                back: s.back.min(to),
                preempted: s.preempted,
            })
    }

    /// Part of `from..to` in which the thread slept although it had been awake with a packet there
    /// since `waiting`: it had woken up after that, or went to sleep later than it takes to notice
    /// (`soon`). A thread that was asleep when the packet came and woke late is none of these.
    pub(super) fn slept_again(
        &self,
        of: ThreadIx,
        waiting: Tsc,
        soon: i64,
        from: Tsc,
        to: Tsc,
    ) -> i64 {
        let spans = self.threads.get(&of).map_or(&[][..], |s| s);
        let first = spans.partition_point(|s| s.back <= waiting);
        let (mut woke, mut slept) = (false, 0);
        for s in spans[first..].iter().take_while(|s| s.out < to) {
            if !s.preempted && s.out > waiting && (woke || s.out - waiting > soon) {
                slept += (s.back.min(to) - s.out.max(from)).max(0);
            }
            woke = true;
        }
        slept
    }

    /// Part of `from..to` in which the thread slept, for whatever reason.
    pub(super) fn slept_ticks(&self, of: ThreadIx, from: Tsc, to: Tsc) -> i64 {
        let spans = self.within(of, from, to).filter(|s| !s.preempted);
        spans.map(|s| s.back - s.out).sum()
    }

    pub(super) fn preempted_ticks(&self, of: ThreadIx, from: Tsc, to: Tsc) -> i64 {
        let spans = self.within(of, from, to).filter(|s| s.preempted);
        spans.map(|s| s.back - s.out).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_with_a_packet_there_is_told_from_a_late_wake_up() {
        let thread = ThreadIx(0);
        let slept = |spans: &[(u64, u64, bool)], from| {
            let mut off = OffCpuSpans::default();
            let spans = spans.iter().map(|(out, back, preempted)| OffCpu {
                out: Tsc(*out),
                back: Tsc(*back),
                preempted: *preempted,
            });
            off.extend(thread, spans);
            off.slept_again(thread, Tsc(100), 20, Tsc(from), Tsc(900))
        };
        // Asleep when it came, and woke late; fell asleep just as it came.
        assert_eq!(slept(&[(50, 800, false)], 100), 0);
        assert_eq!(slept(&[(110, 800, false)], 100), 0);
        // Woke up for it and slept again; was awake and went to sleep.
        assert_eq!(slept(&[(50, 105, false), (110, 800, false)], 100), 690);
        assert_eq!(slept(&[(150, 800, false)], 100), 650);
        // For a packet that came meanwhile, and up to where its run begins.
        assert_eq!(slept(&[(150, 950, false)], 700), 200);
        // Taken off its processor is no sleep.
        assert_eq!(slept(&[(150, 800, true)], 100), 0);
    }
}
