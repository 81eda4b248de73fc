//! Instants of the probes' clock on the clocks of the system, for formats that have only those.
use hopscope_event::{ClockSync, RecordingMeta, Tsc, TscFrequency};

/// Between two points that the recorder took, times are interpolated; outside, they go on at the
/// measured frequency. Durations never come from here: they are ticks by the frequency.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Strictly ascending on both clocks; never empty.
    points: Vec<ClockSync>,
    frequency: TscFrequency,
    start: Tsc,
}

impl Timeline {
    /// `clocks` in any order; what contradicts an earlier point (a damaged file) is left out.
    pub fn new(meta: &RecordingMeta, clocks: &[ClockSync], end: Option<ClockSync>) -> Timeline {
        let mut all: Vec<ClockSync> = clocks.iter().copied().chain(end).collect();
        all.sort_by_key(|c| c.tsc);
        let mut points = vec![meta.start];
        for point in all {
            let last = points[points.len() - 1];
            if point.tsc > last.tsc && point.monotonic_ns > last.monotonic_ns {
                points.push(point);
            }
        }
        Timeline {
            points,
            frequency: meta.tsc_frequency,
            start: meta.start.tsc,
        }
    }

    pub fn points(&self) -> &[ClockSync] {
        &self.points
    }

    /// Since the recording's start, by the frequency; negative before it.
    pub fn since_start_ns(&self, at: Tsc) -> i64 {
        self.frequency.ns(at - self.start)
    }

    /// How long so many ticks are, to a tenth of a nanosecond, as everywhere.
    pub(crate) fn tenths_ns(&self, ticks: i64) -> f64 {
        tenths_ns(self.frequency, ticks)
    }

    pub fn monotonic_ns(&self, at: Tsc) -> u64 {
        self.on(at, |p| p.monotonic_ns)
    }

    pub fn realtime_ns(&self, at: Tsc) -> u64 {
        self.on(at, |p| p.realtime_ns)
    }

    fn on(&self, at: Tsc, clock: impl Fn(&ClockSync) -> u64) -> u64 {
        let after = self.points.partition_point(|p| p.tsc <= at);
        let from = self.points[after.saturating_sub(1)];
        let ticks = at - from.tsc;
        let ns = match (after > 0, self.points.get(after)) {
            (true, Some(to)) => {
                let (whole, span) = (to.tsc - from.tsc, clock(to).wrapping_sub(clock(&from)));
                (i128::from(ticks) * i128::from(span as i64) / i128::from(whole)) as i64
            }
            _ => self.frequency.ns(ticks),
        };
        clock(&from).saturating_add_signed(ns)
    }
}

pub(crate) fn tenths_ns(frequency: TscFrequency, ticks: i64) -> f64 {
    let ns = ticks as f64 * 1e9 / frequency.0.max(1) as f64;
    (ns * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(tsc: u64, monotonic_ns: u64, realtime_ns: u64) -> ClockSync {
        ClockSync {
            tsc: Tsc(tsc),
            monotonic_ns,
            realtime_ns,
            window_ticks: 0,
        }
    }

    fn meta() -> RecordingMeta {
        RecordingMeta {
            hopscope_version: String::new(),
            command_line: vec![],
            host: String::new(),
            kernel: String::new(),
            cpu: String::new(),
            cpus_online: 1,
            tsc_frequency: TscFrequency(2_000_000_000),
            tsc_invariant: true,
            start: point(1_000, 500, 70_000),
            stride: 16,
            ring_records: 1,
            probe_cost: None,
        }
    }

    #[test]
    fn between_points_interpolated_and_outside_by_the_frequency() {
        // Between the points the monotonic clock was slewed: 2,000 ticks took 1,100 ns.
        let points = [point(3_000, 1_600, 71_000), point(2_500, 9_999, 0)];
        let t = Timeline::new(&meta(), &points[..1], None);
        assert_eq!(t.monotonic_ns(Tsc(1_000)), 500);
        assert_eq!(t.monotonic_ns(Tsc(2_000)), 1_050);
        assert_eq!(t.realtime_ns(Tsc(2_000)), 70_500);
        assert_eq!(t.monotonic_ns(Tsc(3_000)), 1_600);
        assert_eq!(t.monotonic_ns(Tsc(3_200)), 1_700);
        assert_eq!(t.monotonic_ns(Tsc(800)), 400);
        assert_eq!(t.since_start_ns(Tsc(800)), -100);
        let t = Timeline::new(&meta(), &points, None);
        assert_eq!(t.points().len(), 2, "a point that contradicts is left out");
    }
}
