//! What comes nearly in the order of time, in that order.
use std::collections::BTreeMap;

/// Holds each item until what is earlier has come, for a bounded time and in a bounded number.
pub(super) struct InOrder<T> {
    window_ns: u64,
    most: usize,
    held: BTreeMap<(u64, u64), T>,
    /// Tells items of one instant apart, in the order in which they came.
    next: u64,
    now_ns: u64,
    given_ns: u64,
    late: u64,
}

impl<T> InOrder<T> {
    pub(super) fn new(window_ns: u64, most: usize) -> InOrder<T> {
        InOrder {
            window_ns,
            most,
            held: BTreeMap::new(),
            next: 0,
            now_ns: 0,
            given_ns: 0,
            late: 0,
        }
    }

    pub(super) fn push(&mut self, at_ns: u64, item: T) {
        self.late += u64::from(at_ns < self.given_ns);
        self.now(at_ns);
        self.held.insert((at_ns, self.next), item);
        self.next += 1;
    }

    pub(super) fn now(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// The earliest, once it has waited long enough or there are too many.
    pub(super) fn pop_due(&mut self) -> Option<T> {
        let ((at_ns, _), _) = self.held.first_key_value()?;
        let is_due = self.now_ns.saturating_sub(*at_ns) >= self.window_ns;
        (is_due || self.held.len() > self.most).then(|| self.pop())?
    }

    /// The earliest, due or not.
    pub(super) fn pop(&mut self) -> Option<T> {
        let ((at_ns, _), item) = self.held.pop_first()?;
        self.given_ns = self.given_ns.max(at_ns);
        Some(item)
    }

    /// Items that came after a later one had been given.
    pub(super) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(held: &mut InOrder<u64>) -> Vec<u64> {
        std::iter::from_fn(|| held.pop_due()).collect()
    }

    #[test]
    fn items_within_the_window_are_sorted() {
        let mut held = InOrder::new(100, 10);
        for at in [50, 20, 40, 130] {
            held.push(at, at);
        }
        assert_eq!(due(&mut held), [20]);
        held.now(150);
        assert_eq!(due(&mut held), [40, 50]);
        assert_eq!((held.pop(), held.pop()), (Some(130), None));
        assert_eq!(held.late(), 0);
    }

    #[test]
    fn what_comes_too_late_is_given_and_counted() {
        let mut held = InOrder::new(100, 2);
        for at in [10, 11, 12] {
            held.push(at, at);
        }
        assert_eq!(due(&mut held), [10], "too many");
        held.push(5, 5);
        assert_eq!(due(&mut held), [5]);
        assert_eq!(held.late(), 1);
    }

    #[test]
    fn items_of_one_instant_keep_their_order() {
        let mut held = InOrder::new(0, 10);
        held.push(7, 1);
        held.push(7, 2);
        assert_eq!(due(&mut held), [1, 2]);
    }
}
