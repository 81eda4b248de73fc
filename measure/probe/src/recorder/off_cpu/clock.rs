//! The kernel's stamps on the probes' clock: between two readings of both clocks, on a straight line.
use hopscope_event::{RawSync, Tsc, TscFrequency};
use std::collections::VecDeque;

/// Readings that are kept: more than lie between a switch and its being looked at.
const READINGS: usize = 256;

#[derive(Debug, Default)]
pub struct SwitchClock {
    readings: VecDeque<RawSync>,
    widest_window_ticks: u64,
    /// How far a reading lay from the line between its neighbours, at most.
    farthest_ticks: u64,
}

impl SwitchClock {
    pub fn add(&mut self, sync: RawSync) {
        if let Some(last) = self.readings.back()
            && sync.raw_ns <= last.raw_ns
        {
            return;
        }
        let neighbours = self
            .readings
            .len()
            .checked_sub(2)
            .map(|at| self.readings[at]);
        if let (Some(before), Some(middle)) = (neighbours, self.readings.back()) {
            let off = between(before, sync, middle.raw_ns) - middle.tsc;
            self.farthest_ticks = self.farthest_ticks.max(off.unsigned_abs());
        }
        self.widest_window_ticks = self.widest_window_ticks.max(sync.window_ticks);
        self.readings.push_back(sync);
        if self.readings.len() > READINGS {
            self.readings.pop_front();
        }
    }

    /// Stamps up to here lie between readings.
    pub fn known_until_ns(&self) -> u64 {
        self.readings.back().map_or(0, |last| last.raw_ns)
    }

    /// `None` before there are two readings.
    pub fn tsc(&self, raw_ns: u64) -> Option<Tsc> {
        let after = self.readings.partition_point(|r| r.raw_ns < raw_ns);
        let last = self.readings.len().checked_sub(1).filter(|n| *n > 0)?;
        let at = after.clamp(1, last);
        let (from, to) = (self.readings.get(at - 1)?, self.readings.get(at)?);
        Some(between(*from, *to, raw_ns))
    }

    /// See [`hopscope_event::OffCpuEntry::clock_error_ns`].
    pub fn error_ns(&self, frequency: TscFrequency) -> u64 {
        let ticks = self.widest_window_ticks.div_ceil(2) + self.farthest_ticks;
        frequency.ns(ticks as i64) as u64
    }
}

fn between(from: RawSync, to: RawSync, raw_ns: u64) -> Tsc {
    let ticks = i128::from(to.tsc - from.tsc);
    let ns = i128::from(to.raw_ns - from.raw_ns).max(1);
    let since = i128::from(raw_ns) - i128::from(from.raw_ns);
    Tsc(from.tsc.0.wrapping_add((since * ticks / ns) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sync(raw_ns: u64, tsc: u64, window_ticks: u64) -> RawSync {
        RawSync {
            tsc: Tsc(tsc),
            raw_ns,
            window_ticks,
        }
    }

    #[test]
    fn a_stamp_lies_on_the_line_between_its_readings() {
        let mut clock = SwitchClock::default();
        assert_eq!(clock.tsc(5), None);
        clock.add(sync(1_000, 50_000, 60));
        assert_eq!(clock.tsc(1_000), None);
        clock.add(sync(2_000, 52_500, 80));
        clock.add(sync(3_000, 55_000, 40));
        assert_eq!(clock.tsc(1_400), Some(Tsc(51_000)));
        assert_eq!(clock.tsc(2_000), Some(Tsc(52_500)));
        assert_eq!(clock.tsc(2_002), Some(Tsc(52_505)));
        assert_eq!(clock.known_until_ns(), 3_000);
        assert_eq!(clock.error_ns(TscFrequency(1_000_000_000)), 40);
    }

    #[test]
    fn a_reading_off_the_line_widens_the_error() {
        let mut clock = SwitchClock::default();
        for (raw, tsc) in [(1_000, 50_000), (2_000, 52_800), (3_000, 55_000)] {
            clock.add(sync(raw, tsc, 0));
        }
        assert_eq!(clock.error_ns(TscFrequency(1_000_000_000)), 300);
    }
}
