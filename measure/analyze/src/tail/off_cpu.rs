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

    pub(super) fn preempted_ticks(&self, of: ThreadIx, from: Tsc, to: Tsc) -> i64 {
        let spans = self.within(of, from, to).filter(|s| s.preempted);
        spans.map(|s| s.back - s.out).sum()
    }
}
