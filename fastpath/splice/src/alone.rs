//! Ends in the map whose other end has left it: that was closed, or shut down. Nothing is redirected to them any more, so they
//! leave it, too, once all is read.
use crate::programs::{End, Order};
use std::collections::{HashMap, HashSet};

/// An end may be seen before the other one that joined at the same time.
const LOOKS: u32 = 2;

#[derive(Debug, Default)]
struct Known {
    looks: u32,
    /// Nothing comes into its queue any more.
    is_settled: bool,
}

/// What was seen of them so far, by their cookies.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    known: HashMap<u64, Known>,
}

impl Alone {
    pub(crate) fn look(&mut self, ends: &[End]) -> Vec<(u64, Order)> {
        let here = || ends.iter().filter(|end| end.is(End::JOINED));
        let joined: HashSet<u64> = here().map(|end| end.cookie).collect();
        // A client may not know its server yet.
        let is_alone = |end: &&End| end.peer != 0 && !joined.contains(&end.peer);
        let mut known = HashMap::new();
        let mut orders = Vec::new();
        for end in here().filter(is_alone) {
            let mut seen = self.known.remove(&end.cookie).unwrap_or_default();
            seen.looks += 1;
            if seen.looks >= LOOKS && !end.is(End::LEAVING) {
                orders.push((end.cookie, Order::Leave));
            }
            if seen.is_settled && end.is(End::LEAVING) && !end.is(End::QUEUED) {
                orders.push((end.cookie, Order::Release));
            }
            seen.is_settled |= end.is(End::LEAVING) && !end.is(End::COMING);
            known.insert(end.cookie, seen);
        }
        self.known = known;
        orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(cookie: u64, peer: u64, flags: u32) -> End {
        End {
            cookie,
            peer,
            flags: flags | End::JOINED,
            ..End::default()
        }
    }

    #[test]
    fn it_leaves_once_all_is_read_and_nothing_comes() {
        let mut alone = Alone::default();
        assert_eq!(alone.look(&[end(1, 2, 0), end(2, 1, End::SERVER)]), []);
        assert_eq!(alone.look(&[end(2, 1, 0)]), []);
        assert_eq!(alone.look(&[end(2, 1, 0)]), [(2, Order::Leave)]);
        let mut left = end(2, 1, End::LEAVING | End::COMING);
        for _ in 0..10 {
            assert_eq!(alone.look(&[left]), []);
        }
        left.flags = End::JOINED | End::LEAVING | End::QUEUED;
        assert_eq!(alone.look(&[left]), []);
        assert_eq!(alone.look(&[left]), []);
        left.flags &= !End::QUEUED;
        assert_eq!(alone.look(&[left]), [(2, Order::Release)]);
    }

    #[test]
    fn who_does_not_know_the_other_end_or_is_seen_first_stays() {
        let mut alone = Alone::default();
        for _ in 0..10 {
            assert_eq!(alone.look(&[end(1, 0, 0)]), []);
        }
        assert_eq!(alone.look(&[end(2, 1, 0)]), []);
        for _ in 0..10 {
            assert_eq!(alone.look(&[end(1, 2, 0), end(2, 1, 0)]), []);
        }
    }
}
