//! The highest rate without (or with little) loss: the binary search of RFC 2544, 26.1.
use super::run::RunResult;
use serde::Serialize;

/// What a trial showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Passed,
    /// More was lost than allowed.
    Lost,
    /// The generator did not send all that was due: says nothing of what is tested.
    GeneratorTooSlow,
    /// The receiving port dropped frames by itself: what is tested may not have.
    ReceiverTooSlow,
}

impl Verdict {
    /// `threshold` is the share of packets that may be lost.
    pub fn of(outcome: &RunResult, threshold: f64) -> Verdict {
        let lost = outcome.total.lost as f64;
        let loss_is_ours = outcome.receiver_port.receive_dropped > 0;
        match () {
            () if outcome.sender.unsent > 0 || outcome.total.sent == 0 => Verdict::GeneratorTooSlow,
            () if lost <= threshold * outcome.total.sent as f64 => Verdict::Passed,
            () if loss_is_ours => Verdict::ReceiverTooSlow,
            () => Verdict::Lost,
        }
    }
}

/// Which rate to try next. Knows nothing of packets.
#[derive(Debug, Clone)]
pub struct Search {
    passed: f64,
    failed: Option<f64>,
    next: Option<f64>,
    /// Of the failed one.
    resolution: f64,
    least: f64,
    why: Option<Verdict>,
}

impl Search {
    /// Begins with `highest`; ends when what passed and what failed are within `resolution`
    /// (a share of the latter), or when `least` fails.
    pub fn new(least: f64, highest: f64, resolution: f64) -> Search {
        Search {
            passed: 0.0,
            failed: None,
            next: Some(highest),
            resolution,
            least,
            why: None,
        }
    }

    /// `None` at the end.
    pub fn rate(&self) -> Option<f64> {
        self.next
    }

    /// The highest rate that passed.
    pub fn found(&self) -> Option<f64> {
        (self.passed > 0.0).then_some(self.passed)
    }

    /// Why the lowest rate that failed did; `None` when the highest passed: the limit is above.
    pub fn limited_by(&self) -> Option<Verdict> {
        self.why
    }

    pub fn result(&mut self, verdict: Verdict) {
        let Some(rate) = self.next else { return };
        match verdict {
            Verdict::Passed => self.passed = rate,
            _ => (self.failed, self.why) = (Some(rate), Some(verdict)),
        }
        self.next = match self.failed {
            None => None,
            Some(failed) if failed - self.passed <= self.resolution * failed => None,
            Some(failed) if failed <= self.least => None,
            Some(failed) => Some(((self.passed + failed) / 2.0).max(self.least)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: f64, highest: f64, resolution: f64) -> (Search, u32) {
        let mut search = Search::new(1.0, highest, resolution);
        let mut trials = 0;
        while let Some(rate) = search.rate() {
            search.result(if rate <= limit {
                Verdict::Passed
            } else {
                Verdict::Lost
            });
            trials += 1;
        }
        (search, trials)
    }

    #[test]
    fn finds_any_limit_within_the_resolution() {
        for limit in [1.0, 2.5, 777.0, 123_456.7, 999_999.0] {
            let (search, trials) = search(limit, 1e6, 0.01);
            let found = search.found().expect("above the least");
            assert!(found <= limit && found >= limit * 0.985, "{found} {limit}");
            assert!(trials < 40, "{trials}");
            assert_eq!(search.limited_by(), Some(Verdict::Lost));
        }
    }

    #[test]
    fn ends_at_once_where_the_highest_passes_and_at_the_least_where_nothing_does() {
        let (highest, trials) = search(1e7, 1e6, 0.01);
        assert_eq!(
            (highest.found(), highest.limited_by(), trials),
            (Some(1e6), None, 1)
        );
        let (none, _) = search(0.5, 1e6, 0.01);
        assert_eq!(none.found(), None);
    }
}
