//! Readers that peek and wait for what they are not shown: redirected bytes hide TCP's behind them until they are read
//! (`bpf/gather.h`).
use crate::programs::{End, Order};
use std::collections::HashMap;

/// So many looks nothing was read.
const STUCK_LOOKS: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unread {
    queued: u64,
    copied: u32,
}

/// What was unread of them at the last looks, by their cookies.
#[derive(Debug, Default)]
pub(crate) struct Peeking {
    known: HashMap<u64, (Unread, u32)>,
}

impl Peeking {
    pub(crate) fn look(&mut self, ends: &[End]) -> Vec<(u64, Order)> {
        let all = [End::JOINED, End::PEEKED, End::QUEUED, End::UNREAD];
        // One that sleeps in TCP's receive would not be woken by what is put elsewhere.
        let may_wait = |end: &&End| {
            all.iter().all(|flag| end.is(*flag)) && !end.is(End::GATHERED) && end.asleep == 0
        };
        let mut known = HashMap::new();
        let mut orders = Vec::new();
        for end in ends.iter().filter(may_wait) {
            let now = Unread {
                queued: end.queued,
                copied: end.copied,
            };
            let before = self
                .known
                .get(&end.cookie)
                .filter(|(unread, _)| *unread == now);
            let looks = before.map_or(1, |(_, looks)| looks + 1);
            known.insert(end.cookie, (now, looks));
            if looks >= STUCK_LOOKS {
                orders.push((end.cookie, Order::Gather));
            }
        }
        self.known = known;
        orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUCK: u32 = End::JOINED | End::PEEKED | End::QUEUED | End::UNREAD;

    fn end(queued: u64, flags: u32) -> End {
        End {
            cookie: 1,
            queued,
            flags,
            ..End::default()
        }
    }

    fn gathers_after(each: impl Fn(u32) -> End) -> Option<u32> {
        let mut peeking = Peeking::default();
        (1..=20).find(|look| !peeking.look(&[each(*look)]).is_empty())
    }

    #[test]
    fn who_reads_nothing_is_shown_the_rest() {
        assert_eq!(gathers_after(|_| end(10, STUCK)), Some(STUCK_LOOKS));
        assert_eq!(gathers_after(|_| end(10, STUCK | End::GATHERED)), None);
    }

    #[test]
    fn who_reads_or_has_nothing_hidden_is_left() {
        assert_eq!(gathers_after(|look| end(u64::from(look), STUCK)), None);
        for flag in [End::PEEKED, End::QUEUED, End::UNREAD] {
            assert_eq!(gathers_after(|_| end(10, STUCK & !flag)), None);
        }
    }
}
