//! How much of a span a thread did not run.
use hopscope_event::Tsc;

/// Spans of one thread, ascending, none overlapping.
#[derive(Debug, Default)]
pub(super) struct OffCpuSpans {
    spans: Vec<(Tsc, Tsc)>,
}

impl OffCpuSpans {
    pub(super) fn extend(&mut self, spans: impl IntoIterator<Item = (Tsc, Tsc)>) {
        self.spans.extend(spans);
        // A batch that was written late may begin before the end of the one before it.
        self.spans.sort_unstable();
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(super) fn within(&self, start: Tsc, end: Tsc) -> u64 {
        let first = self.spans.partition_point(|(_, back)| *back <= start);
        let overlap = |(out, back): &(Tsc, Tsc)| {
            let (from, to) = ((*out).max(start), (*back).min(end));
            (to - from).max(0) as u64
        };
        let spans = self.spans[first..].iter();
        spans.take_while(|(out, _)| *out < end).map(overlap).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_within_counts() {
        let mut off = OffCpuSpans::default();
        off.extend([(40, 50), (10, 20)].map(|(a, b)| (Tsc(a), Tsc(b))));
        let within = |a, b| off.within(Tsc(a), Tsc(b));
        assert_eq!(within(0, 100), 20);
        assert_eq!(within(15, 45), 10);
        assert_eq!(within(12, 14), 2);
        assert_eq!(within(20, 40), 0);
        assert_eq!(within(50, 60), 0);
    }
}
