//! How long the recorder sleeps: long enough to cost nothing, short enough that no ring fills.
use std::time::Duration;

const SHORTEST: Duration = Duration::from_micros(200);
const LONGEST: Duration = Duration::from_millis(20);

/// Sleep until the fastest ring is about a quarter full, by its rate since the last visit.
#[derive(Debug, Clone)]
pub struct Pace {
    ring_records: u64,
    current: Duration,
}

impl Pace {
    pub fn new(ring_records: u64) -> Pace {
        Pace {
            ring_records,
            current: Duration::from_millis(1),
        }
    }

    /// `most` = records that the busiest ring gained in the `elapsed` time since the last visit.
    pub fn next(&mut self, most: u64, elapsed: Duration) -> Duration {
        let quarter = self.ring_records / 4;
        let wanted = if most == 0 {
            self.current * 2
        } else {
            elapsed.mul_f64((quarter as f64 / most as f64).min(1e6))
        };
        // Growing slowly keeps a burst after a quiet time from finding the recorder asleep.
        self.current = wanted.min(self.current * 2).clamp(SHORTEST, LONGEST);
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_ring_is_visited_before_it_is_half_full() {
        let mut pace = Pace::new(1 << 16);
        let visit = Duration::from_millis(1);
        // 20 records a microsecond
        let sleep = pace.next(20_000, visit);
        assert!(sleep.as_micros() * 20 <= (1 << 15));
    }

    #[test]
    fn a_quiet_ring_lets_the_recorder_sleep() {
        let mut pace = Pace::new(1 << 16);
        let last = (0..20).map(|_| pace.next(0, LONGEST)).last();
        assert_eq!(last, Some(LONGEST));
    }
}
