//! How long entries stay with the device: from the look at the available ring that first found an entry until it
//! is given back.
//!
//! When the driver made it available is nowhere written. So an entry that comes while this end sleeps counts
//! from the look after the kick that woke it; what the kick took is not in it. A split ring says at each look
//! how far the driver is, a packed ring says of the next entry only: there the time is that of handling, and
//! of waiting for the port, at least.
use super::Times;
use crate::Ns;
use std::collections::VecDeque;

/// Entries have to be given back in the order in which they were taken.
#[derive(Default)]
pub struct Sojourn {
    /// Each look that found more than those before: entries up to this number, and when.
    looks: VecDeque<(u64, Ns)>,
    found: u64,
    used: u64,
    pub times: Times,
    /// Looks that found more than before, and the whole ring available: the driver could add nothing.
    pub full: u64,
}

impl Sojourn {
    /// A queue of `size` entries begins. A look that finds something new finds an entry, so there are never more
    /// looks than entries, and nothing is allocated later.
    pub fn begin(&mut self, size: u16) {
        self.looks.clear();
        self.looks.reserve(size.into());
        (self.found, self.used) = (0, 0);
    }

    /// Entries of this end now, taken or not, after a look at or after `at`.
    pub fn look(&mut self, there: u16, size: u16, at: Ns) {
        let found = self.used + u64::from(there);
        if found > self.found {
            self.found = found;
            self.looks.push_back((found, at));
            self.full += u64::from(there >= size);
        }
    }

    /// The oldest entry is used.
    pub fn used(&mut self, now: Ns) {
        self.used += 1;
        if let Some((upto, at)) = self.looks.front() {
            self.times.record(now.since(*at));
            if *upto <= self.used {
                self.looks.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_counts_from_the_look_that_found_it() {
        let mut sojourn = Sojourn::default();
        sojourn.begin(4);
        sojourn.look(2, 4, Ns(100));
        // The same two: nothing new.
        sojourn.look(2, 4, Ns(150));
        sojourn.used(Ns(200));
        // One left of them, and three that came meanwhile.
        sojourn.look(4, 4, Ns(1_000));
        for _ in 0..4 {
            sojourn.used(Ns(2_000));
        }
        assert_eq!((sojourn.times.count(), sojourn.full), (5, 1));
        // 100, 1900, and three times 1000.
        assert_eq!(sojourn.times.max(), Ns(1_900));
        for part in [0.4, 0.8] {
            let found = sojourn.times.quantile(part).expect("some").0;
            assert!((990..=1_010).contains(&found), "{part}: {found}");
        }
        assert!(sojourn.looks.is_empty());
    }
}
