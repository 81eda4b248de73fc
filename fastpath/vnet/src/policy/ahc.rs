//! Adaptive hypercall coalescing (Cheng, Yao and Hu, SAC 2015), as we read it: its full text was not
//! at hand. The first entry starts a timer; its end, or a number of entries, kicks.
use super::{Rule, Seen, Wish};
use crate::Ns;

/// A fixed time.
pub(super) struct Ahc {
    pub(super) time: Ns,
    pub(super) limit: u32,
}

impl Rule for Ahc {
    fn wish(&mut self, seen: Seen) -> Wish {
        wish(self.time, self.limit, seen)
    }

    fn bound(&self) -> Ns {
        self.time
    }
}

fn wish(time: Ns, limit: u32, seen: Seen) -> Wish {
    let due = seen.oldest + time;
    if seen.unannounced >= limit || seen.now >= due {
        Wish::Force
    } else {
        Wish::Wait(due)
    }
}

/// The time follows the rate of the last window, which is `time_max` long: `limit` entries at that rate,
/// and none at all where they would take longer than `time_max`.
pub(super) struct AhcWindow {
    time_max: Ns,
    limit: u32,
    time: Ns,
    began: Ns,
    entries: u64,
}

impl AhcWindow {
    pub(super) fn new(time_max: Ns, limit: u32) -> AhcWindow {
        AhcWindow {
            time_max,
            limit,
            time: Ns(0),
            began: Ns(0),
            entries: 0,
        }
    }
}

impl Rule for AhcWindow {
    fn published(&mut self, now: Ns) {
        let lasted = now.since(self.began);
        if lasted >= self.time_max && lasted.0 > 0 {
            let filled = lasted.0.saturating_mul(self.limit.into());
            let time = filled.checked_div(self.entries).unwrap_or(u64::MAX);
            self.time = if time <= self.time_max.0 {
                Ns(time)
            } else {
                Ns(0)
            };
            (self.began, self.entries) = (now, 0);
        }
        self.entries += 1;
    }

    fn wish(&mut self, seen: Seen) -> Wish {
        wish(self.time, self.limit, seen)
    }

    fn bound(&self) -> Ns {
        self.time_max
    }
}
