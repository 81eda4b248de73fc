//! From the kernel's monotonic clock to the time of day.
use hopscope_event::ClockSync;

/// What both clocks showed at the same instants. Between two of them the difference is
/// interpolated, before the first and after the last it is theirs.
#[derive(Debug, Clone)]
pub struct RealTime {
    /// Monotonic ns, and realtime minus monotonic; by time, never empty.
    points: Vec<(u64, i128)>,
}

impl RealTime {
    pub fn new(start: ClockSync, others: &[ClockSync]) -> RealTime {
        let point = |sync: &ClockSync| {
            let apart = i128::from(sync.realtime_ns) - i128::from(sync.monotonic_ns);
            (sync.monotonic_ns, apart)
        };
        let mut points: Vec<_> = std::iter::once(&start).chain(others).map(point).collect();
        points.sort_unstable();
        points.dedup_by_key(|(at, _)| *at);
        RealTime { points }
    }

    /// Since 1970; a time before that is 1970, one that no counter of 64 bits holds the latest.
    pub fn realtime_ns(&self, monotonic_ns: u64) -> u64 {
        let after = self.points.partition_point(|(at, _)| *at <= monotonic_ns);
        let (before, next) = (after.checked_sub(1), self.points.get(after));
        let apart = match (before.map(|at| self.points[at]), next) {
            (Some((a, from)), Some((b, to))) => {
                let (into, width) = (i128::from(monotonic_ns - a), i128::from(b - a));
                from + (to - from) * into / width
            }
            (Some((_, apart)), None) | (None, Some(&(_, apart))) => apart,
            (None, None) => 0,
        };
        let at = i128::from(monotonic_ns) + apart;
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::Tsc;

    fn sync(monotonic_ns: u64, realtime_ns: u64) -> ClockSync {
        ClockSync {
            tsc: Tsc(0),
            monotonic_ns,
            realtime_ns,
            window_ticks: 0,
        }
    }

    #[test]
    fn between_two_instants_the_difference_is_spread() {
        let time = RealTime::new(sync(100, 1_100), &[sync(300, 1_400), sync(200, 1_200)]);
        let at = [0, 100, 150, 200, 250, 300, 400].map(|ns| time.realtime_ns(ns));
        assert_eq!(at, [1_000, 1_100, 1_150, 1_200, 1_300, 1_400, 1_500]);
    }

    #[test]
    fn times_that_no_clock_shows_are_survived() {
        let time = RealTime::new(sync(u64::MAX, 5), &[sync(u64::MAX, 9)]);
        assert_eq!((time.realtime_ns(7), time.realtime_ns(u64::MAX)), (0, 5));
        let time = RealTime::new(sync(5, u64::MAX), &[]);
        assert_eq!(time.realtime_ns(u64::MAX), u64::MAX);
    }
}
