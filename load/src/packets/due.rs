//! When the next packet is due: by a model, as a capture has it, or at once.
use hopscope_openloop::Schedule;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum Due {
    Model(Schedule),
    /// Offsets of a capture's frames in ticks, again and again.
    Recorded(Recorded),
    /// Whenever the port has room. There is no intended time then but that of sending: latency
    /// under this says nothing of how long a packet would have waited.
    AtOnce,
}

#[derive(Debug, Clone)]
pub struct Recorded {
    offsets: Arc<[u64]>,
    /// From one pass to the next.
    period: u64,
    next: usize,
    passed: u64,
}

impl Recorded {
    /// `offsets` count from the first frame and never fall; there is at least one. The pass after
    /// the last begins one mean gap later.
    pub fn new(offsets: Arc<[u64]>) -> Recorded {
        let last = offsets[offsets.len() - 1];
        let gap = last / (offsets.len() as u64 - 1).max(1);
        Recorded {
            period: last + gap.max(1),
            offsets,
            next: 0,
            passed: 0,
        }
    }
}

impl Due {
    /// True where [`Due::next_ticks`] means nothing.
    #[inline]
    pub fn at_once(&self) -> bool {
        matches!(self, Due::AtOnce)
    }

    /// Ticks from the start of the run.
    #[inline]
    pub fn next_ticks(&mut self) -> u64 {
        match self {
            Due::Model(schedule) => schedule.next_due(),
            Due::Recorded(recorded) => {
                let at = recorded.passed + recorded.offsets[recorded.next];
                recorded.next += 1;
                if recorded.next == recorded.offsets.len() {
                    recorded.next = 0;
                    recorded.passed += recorded.period;
                }
                at
            }
            Due::AtOnce => 0,
        }
    }

    /// Packets due from one time to another on average, in ticks from the start; `None` where no
    /// rate was asked for.
    pub fn expected(&self, from: u64, to: u64) -> Option<f64> {
        match self {
            Due::Model(schedule) => {
                Some(schedule.expected_until(to) - schedule.expected_until(from))
            }
            Due::Recorded(recorded) => Some(recorded.until(to) - recorded.until(from)),
            Due::AtOnce => None,
        }
    }
}

impl Recorded {
    fn until(&self, ticks: u64) -> f64 {
        let whole = ticks / self.period * self.offsets.len() as u64;
        let part = self.offsets.partition_point(|at| *at < ticks % self.period);
        (whole + part as u64) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_repeated_in_its_own_timing() {
        let mut due = Due::Recorded(Recorded::new(vec![0, 10, 40].into()));
        let times: Vec<u64> = (0..7).map(|_| due.next_ticks()).collect();
        assert_eq!(times, [0, 10, 40, 60, 70, 100, 120]);
        assert_eq!(due.expected(0, 60), Some(3.0));
        assert_eq!(due.expected(5, 70), Some(3.0));
        let mut single = Due::Recorded(Recorded::new(vec![0].into()));
        assert_eq!([single.next_ticks(), single.next_ticks()], [0, 1]);
    }
}
