//! The bounded table of neighbours. Peers can make entries: by asking for our address, and by making us answer to spoofed
//! addresses of the link. Neither kind can push out a neighbour that answers.
use super::entry::{Entry, State};
use crate::Counters;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Linux' gc_thresh3.
pub(super) const MAX_ENTRIES: usize = 1024;
/// Half of the table is for neighbours that answered.
pub(super) const MAX_INCOMPLETE: usize = MAX_ENTRIES / 2;
/// Entries that are looked at for one that can go.
const EVICTION_SCAN: usize = 16;

/// Where a neighbour is in the table, for who sends to it often. One of nobody at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    index: u32,
    generation: u32,
}

impl Default for Hop {
    fn default() -> Hop {
        Hop {
            index: u32::MAX,
            generation: 0,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub entries: Vec<Entry>,
    free: Vec<usize>,
    by_address: HashMap<IpAddr, usize>,
    /// Those that became Incomplete, in that order, some of which are not any more.
    incomplete: VecDeque<Hop>,
    /// Where the next search for a victim begins.
    hand: usize,
}

impl Table {
    pub(super) fn find(&self, address: IpAddr) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    pub(super) fn hop(&self, index: usize) -> Hop {
        Hop {
            index: index as u32,
            generation: self.entries.get(index).map_or(0, |e| e.generation),
        }
    }

    pub(super) fn index_of(&self, hop: Hop) -> Option<usize> {
        let index = hop.index as usize;
        let entry = self.entries.get(index)?;
        (entry.generation == hop.generation && entry.state != State::Free).then_some(index)
    }

    /// For a neighbour that we send to. Evicts the one that does not answer for longest, or one that is stale; `evicted` sees
    /// it first.
    pub(super) fn insert_used(
        &mut self,
        address: IpAddr,
        counters: &mut Counters,
        evicted: impl FnOnce(&Entry),
    ) -> Option<usize> {
        let victim = if self.incomplete.len() >= MAX_INCOMPLETE {
            self.oldest_incomplete()
        } else {
            None
        };
        let victim = match victim {
            None if self.is_full() => {
                let stale = self.victim(|e| e.state == State::Stale);
                let victim = stale.or_else(|| self.oldest_incomplete());
                // Without one the caller's frame is dropped.
                Some(victim?)
            }
            victim => victim,
        };
        if let Some(victim) = victim {
            let entry = &mut self.entries[victim];
            evicted(entry);
            counters.neighbor_evicted += 1;
            counters.neighbor_queue_drop += entry.take_waiting().len() as u64;
            self.remove(victim);
        }
        let index = self.insert(address);
        self.entries[index].used = true;
        self.entries[index].enter(State::Incomplete, None);
        self.incomplete.push_back(self.hop(index));
        Some(index)
    }

    /// Forgets those before it that got an answer or failed.
    fn oldest_incomplete(&mut self) -> Option<usize> {
        while let Some(hop) = self.incomplete.pop_front() {
            if let Some(index) = self.index_of(hop)
                && self.entries[index].state == State::Incomplete
            {
                return Some(index);
            }
        }
        None
    }

    /// For a neighbour that sends to us: takes a free place, or that of another that nobody sent to.
    pub(super) fn insert_learned(
        &mut self,
        address: IpAddr,
        counters: &mut Counters,
    ) -> Option<usize> {
        if self.is_full() {
            let victim = self.victim(|e| e.state == State::Stale && !e.used)?;
            counters.neighbor_evicted += 1;
            self.remove(victim);
        }
        Some(self.insert(address))
    }

    fn is_full(&self) -> bool {
        self.free.is_empty() && self.entries.len() == MAX_ENTRIES
    }

    fn victim(&mut self, dispensable: impl Fn(&Entry) -> bool) -> Option<usize> {
        for _ in 0..EVICTION_SCAN {
            self.hand = (self.hand + 1) % self.entries.len().max(1);
            if self.entries.get(self.hand).is_some_and(&dispensable) {
                return Some(self.hand);
            }
        }
        None
    }

    /// The caller made room and sets the state.
    fn insert(&mut self, address: IpAddr) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::free());
            self.entries.len() - 1
        });
        self.entries[index].address = address;
        self.entries[index].used = false;
        self.by_address.insert(address, index);
        index
    }

    pub(super) fn remove(&mut self, index: usize) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        self.by_address.remove(&entry.address);
        entry.enter(State::Free, None);
        entry.take_waiting();
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index);
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let entry = size_of::<Entry>() + size_of::<(IpAddr, usize)>();
        (self.entries.capacity() * entry) as u64
    }
}
