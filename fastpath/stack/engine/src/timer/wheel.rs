//! One timer per index. Setting, clearing and expiring are O(1), and no call looks at timers that are not due.
use crate::Ns;

/// A tick is 4.096 µs: a timer expires up to so much late, never early.
const TICK_BITS: u32 = 12;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// 2⁴⁸ ticks are 36 years.
const LEVELS: usize = 8;
const LAST_TICK: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;
const NONE: u32 = u32::MAX;
const UNSET: u16 = u16::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    tick: u64,
    next: u32,
    previous: u32,
    /// Level × 64 + slot.
    place: u16,
}

const IDLE: Node = Node {
    tick: 0,
    next: NONE,
    previous: NONE,
    place: UNSET,
};

/// Timers named by small indices; each has at most one expiry.
#[derive(Debug)]
pub(crate) struct Wheel {
    heads: Vec<u32>,
    occupied: [u64; LEVELS],
    nodes: Vec<Node>,
    /// All before it expired.
    tick: u64,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel {
            heads: vec![NONE; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            nodes: Vec::new(),
            tick: 0,
        }
    }
}

impl Wheel {
    /// Makes `index` expire at `at`, and not when it was to before.
    pub(crate) fn set(&mut self, index: u32, at: Ns) {
        let tick = at.0.div_ceil(1 << TICK_BITS).min(LAST_TICK);
        if self.nodes.len() <= index as usize {
            self.nodes.resize(index as usize + 1, IDLE);
        }
        self.unlink(index);
        self.link(index, tick);
    }

    pub(crate) fn clear(&mut self, index: u32) {
        if (index as usize) < self.nodes.len() {
            self.unlink(index);
        }
    }

    /// When [`Wheel::pop`] has something to do. It may be early for a timer that is far away, which then moves to a finer level.
    pub(crate) fn next(&self) -> Option<Ns> {
        self.first().map(|(_, start)| Ns(start << TICK_BITS))
    }

    /// A timer that is due, which is unset by this.
    pub(crate) fn pop(&mut self, now: Ns) -> Option<u32> {
        let now = (now.0 >> TICK_BITS).min(LAST_TICK);
        loop {
            match self.first() {
                Some((place, start)) if start <= now => {
                    self.tick = self.tick.max(start);
                    if place < SLOTS {
                        let index = self.heads[place];
                        self.unlink(index);
                        return Some(index);
                    }
                    self.cascade(place);
                }
                _ => {
                    self.tick = self.tick.max(now);
                    return None;
                }
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>() + self.heads.len() * 4) as u64
    }

    /// The first slot that holds something, and the first tick of it. Finer levels are earlier.
    fn first(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let shift = SLOT_BITS * level as u32;
        let block = self.tick >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
        Some((
            level * SLOTS + slot as usize,
            block | u64::from(slot) << shift,
        ))
    }

    fn cascade(&mut self, place: usize) {
        while self.heads[place] != NONE {
            let index = self.heads[place];
            let tick = self.nodes[index as usize].tick;
            self.unlink(index);
            self.link(index, tick);
        }
    }

    fn link(&mut self, index: u32, tick: u64) {
        let tick = tick.max(self.tick);
        let differing = (tick ^ self.tick) | (SLOTS as u64 - 1);
        let level = ((63 - differing.leading_zeros()) / SLOT_BITS) as usize;
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize & (SLOTS - 1);
        let place = level * SLOTS + slot;
        let head = self.heads[place];
        self.nodes[index as usize] = Node {
            tick,
            next: head,
            previous: NONE,
            place: place as u16,
        };
        if head != NONE {
            self.nodes[head as usize].previous = index;
        }
        self.heads[place] = index;
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, index: u32) {
        let node = std::mem::replace(&mut self.nodes[index as usize], IDLE);
        if node.place == UNSET {
            return;
        }
        let place = usize::from(node.place);
        if node.next != NONE {
            self.nodes[node.next as usize].previous = node.previous;
        }
        if node.previous != NONE {
            self.nodes[node.previous as usize].next = node.next;
            return;
        }
        self.heads[place] = node.next;
        if node.next == NONE {
            self.occupied[place / SLOTS] &= !(1 << (place % SLOTS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn expires_in_order_and_never_early() {
        let mut wheel = Wheel::default();
        for (index, at) in [(0, 5_000_000), (1, 3), (2, 70_000_000_000), (3, 300_000)] {
            wheel.set(index, Ns(at));
        }
        let mut order = Vec::new();
        while let Some(at) = wheel.next() {
            if let Some(index) = wheel.pop(at) {
                order.push((index, at.0));
            }
        }
        let order: Vec<u32> = order.iter().map(|o| o.0).collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }

    proptest! {
        /// Against a sorted map: what is due, and nothing else.
        #[test]
        fn does_what_a_sorted_map_does(steps in prop::collection::vec((0u32..40, 0u64..1 << 44, 0u64..1 << 40), 1..200)) {
            let (mut wheel, mut model, mut now) = (Wheel::default(), BTreeMap::new(), 0);
            for (index, after, pass) in steps {
                wheel.set(index, Ns(now + (after >> (index % 44))));
                model.insert(index, now + (after >> (index % 44)));
                now += pass >> (index % 40);
                while let Some(due) = wheel.pop(Ns(now)) {
                    let at = model.remove(&due);
                    prop_assert!(at.is_some_and(|at| at <= now));
                }
                let late = model.values().filter(|&&at| at + (1 << TICK_BITS) <= now).count();
                prop_assert_eq!(late, 0);
                let first = model.values().min().copied();
                prop_assert_eq!(wheel.next().is_some(), first.is_some());
                if let (Some(next), Some(first)) = (wheel.next(), first) {
                    prop_assert!(next.0 <= first + (1 << TICK_BITS));
                }
            }
        }
    }
}
