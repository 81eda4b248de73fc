//! No tunables: an entry is held back for at most the price of the notification that this may save.
//!
//! Whoever may pay a price now or wait without knowing how long pays at most twice the least possible
//! when it waits as long as the price is worth (the ski rental problem). The price is measured: what
//! notifications that woke the peer took. The wait happens only while the expected gap to the next entry
//! is shorter than the price, and while notifications take more than half of the time between entries.
//! With a share of s, entries wait for this end to be back from them for s / (2 (1 - s)) of a price in the
//! mean (M/D/1, Pollaczek and Khinchine); holding one back costs half a price. Below one half it is dearer.
//!
//! Entries at hand are published before the peer is told, for up to eight times the price: then
//! notifications take at most a ninth of this end's time, and the peer begins while the rest of a long
//! backlog is still to be published. So the size of a batch is an outcome as well.
use super::{Peer, Rule, Seen, Wish};
use crate::Ns;

/// Until the first one is measured: what waking a sleeping thread costs on ordinary machines.
pub(crate) const PRICE_FIRST: Ns = Ns(3_000);
/// Time that a batch may take to be published, in prices.
const BATCH_PRICES: u64 = 8;
/// A notifier that lost its processor meanwhile measured something else.
pub(crate) const PRICE_MAX: Ns = Ns::from_us(50);

pub(super) struct Adaptive {
    price: Average,
    gap: Average,
    /// On notifications, for an entry.
    spent: Average,
    spent_since: Ns,
    last: Option<Ns>,
}

impl Default for Adaptive {
    fn default() -> Adaptive {
        Adaptive {
            price: Average::of(PRICE_FIRST),
            gap: Average::default(),
            spent: Average::default(),
            spent_since: Ns(0),
            last: None,
        }
    }
}

impl Adaptive {
    fn is_worth_a_wait(&self, price: Ns) -> bool {
        // No gap is known before the second entry: one that comes alone is not held back.
        let gap = self.gap.now();
        self.gap.known() && gap < price && self.spent.now().0 > gap.0 / 2
    }
}

impl Rule for Adaptive {
    fn published(&mut self, now: Ns) {
        if let Some(last) = self.last {
            self.gap.add(now.since(last));
            self.spent.add(std::mem::take(&mut self.spent_since));
        }
        self.last = Some(now);
    }

    fn notified(&mut self, cost: Ns, woke: bool) {
        let cost = cost.min(PRICE_MAX);
        self.spent_since = self.spent_since + cost;
        if woke {
            self.price.add(cost);
        }
    }

    fn wish(&mut self, seen: Seen) -> Wish {
        let price = self.price.now();
        if seen.peer == Peer::Awake {
            return Wish::Ask;
        }
        if seen.waiting > 0 {
            // Whoever was held back waits no longer than promised, whatever comes behind.
            let prices = if seen.held { 1 } else { BATCH_PRICES };
            return if seen.now.since(seen.oldest).0 < prices * price.0 {
                Wish::Batch
            } else {
                Wish::Ask
            };
        }
        let due = seen.oldest + price;
        if seen.now < due && self.is_worth_a_wait(price) {
            Wish::Wait(due)
        } else {
            Wish::Ask
        }
    }

    fn bound(&self) -> Ns {
        self.price.now()
    }
}

/// Exponentially weighted, 1/8 for the newest, in eighths of a nanosecond: whole numbers are the same
/// on every machine.
#[derive(Default)]
pub(crate) struct Average {
    eighths: Option<u64>,
}

impl Average {
    pub(crate) fn of(value: Ns) -> Average {
        Average {
            eighths: Some(value.0 * 8),
        }
    }

    pub(crate) fn known(&self) -> bool {
        self.eighths.is_some()
    }

    pub(crate) fn now(&self) -> Ns {
        Ns(self.eighths.unwrap_or(0) / 8)
    }

    pub(crate) fn add(&mut self, value: Ns) {
        // An idle hour must not overflow, nor count for more than it is: later entries are far enough.
        let value = value.0.min(u64::MAX / 16);
        self.eighths = Some(match self.eighths {
            None => value * 8,
            Some(sum) => sum - sum / 8 + value,
        });
    }
}
