//! `--kick-policy adaptive`: this end busy-polls before it enables kicks, for no longer than a kick costs.
//!
//! Whoever sends pays for a kick, and this end for waking up. Both are spared when the next entry comes while this
//! end still looks. As in [`crate::policy::PolicyKind::Adaptive`], it looks on for at most the price of one notification,
//! and only while the expected gap to the next entry is shorter. What a kick costs the driver is not to be seen from
//! here: the price is what this end's own calls cost, which take the same way through the kernel.
use crate::Ns;
use crate::policy::{Average, PRICE_FIRST, PRICE_MAX};

pub(super) struct BusyPoll {
    price: Average,
    /// Between two entries.
    gap: Average,
    last: Option<Ns>,
}

impl Default for BusyPoll {
    fn default() -> BusyPoll {
        BusyPoll {
            price: Average::of(PRICE_FIRST),
            gap: Average::default(),
            last: None,
        }
    }
}

impl BusyPoll {
    /// What a call cost that woke the driver.
    pub(super) fn learn(&mut self, cost: Ns) {
        self.price.add(cost.min(PRICE_MAX));
    }

    /// Nothing is there, after `served` entries since this was last asked. How long to look on; `None`: ask for a
    /// kick now.
    pub(super) fn look_on(&mut self, served: u32, now: Ns) -> Option<Ns> {
        if served == 0 {
            // The last look found nothing.
            return None;
        }
        if let Some(last) = self.last.replace(now) {
            self.gap.add(Ns(now.since(last).0 / u64::from(served)));
        }
        let price = self.price.now();
        (self.gap.known() && self.gap.now() < price).then_some(price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_on_for_a_price_while_gaps_are_shorter_and_once() {
        let mut linger = BusyPoll::default();
        let us = Ns::from_us;
        // No gap is known yet.
        assert_eq!(linger.look_on(1, us(0)), None);
        assert_eq!(linger.look_on(1, us(1)), Some(PRICE_FIRST));
        assert_eq!(linger.look_on(0, us(4)), None);
        // Ten in 20 us are 2 us each.
        assert_eq!(linger.look_on(10, us(21)), Some(PRICE_FIRST));
        let mut now = us(21);
        let looks = (0..20).filter(|_| {
            now = now + us(100);
            linger.look_on(1, now).is_some()
        });
        assert_eq!(looks.count(), 0, "gaps of 100 us");
    }

    #[test]
    fn the_price_is_what_calls_cost_and_no_more_than_50_us() {
        let mut linger = BusyPoll::default();
        for _ in 0..200 {
            linger.learn(Ns::from_us(1_000));
        }
        linger.look_on(1, Ns(0));
        let price = linger.look_on(1, Ns(100)).unwrap();
        assert!(price <= PRICE_MAX && price > Ns::from_us(45), "{price:?}");
    }
}
