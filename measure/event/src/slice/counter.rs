//! What is counted while packets are sliced: NetSlice's packets and drops, and everything that
//! keeps identity honest.
use serde::{Deserialize, Serialize};

macro_rules! counters {
    ($($variant:ident = $id:literal $name:literal $what:literal),* $(,)?) => {
        /// Index into the kernel's array of counters; part of the contract with the kernel programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Counter {
            $(#[doc = $what] $variant = $id),*
        }

        impl Counter {
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),*];
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name),* }
            }
            pub const fn what(self) -> &'static str {
                match self { $(Counter::$variant => $what),* }
            }
        }
    };
}

// created = written + ring_full + too_fast + other_process + aged + stale_ended + split_parents + queue_full + in flight at
// the end.
counters! {
    Seen = 0 "seen" "packets at their first point",
    Unmatched = 1 "unmatched" "of those, packets that the filter did not choose",
    NoSlot = 2 "no_slot" "chosen packets that found no free slot: not traced (NetSlice's drops)",
    Created = 3 "created" "records begun",
    Written = 4 "written" "records handed over",
    RingFull = 5 "ring_full" "records lost because the reader was too slow",
    TooFast = 6 "too_fast" "records below the minimum latency: not reported",
    OtherProcess = 7 "other_process" "records of other processes: not reported",
    Aged = 8 "aged" "records given up because their packet was not seen for too long",
    StaleEnded = 9 "stale_ended" "records given up because their packet's buffer had begun another packet",
    StaleRefused = 10 "stale_refused" "stamps refused because the buffer held another packet",
    Split = 11 "split" "segments cut by software GSO",
    Merged = 12 "merged" "packets merged by GRO",
    Coalesced = 13 "coalesced" "packets merged in the socket's queue",
    CrossCpu = 14 "cross_cpu" "stamps on another processor than the one before",
    Dropped = 15 "dropped" "records that end in a drop",
    QueueFull = 16 "queue_full" "records given up because too many packets waited in their socket's queue",
    CallLost = 17 "call_lost" "system calls forgotten because another thread took their place",
    Unreadable = 18 "unreadable" "packets whose headers could not be read, or that are not IP",
    Hits = 19 "hits" "runs of all kernel programs",
    CostNs = 20 "cost_ns" "what those runs cost, by calibration",
    BytesLost = 21 "bytes_lost" "packets whose bytes were lost, their record not",
    OutOfOrder = 22 "out_of_order" "stamps refused because a later point of the packet had been passed",
    OtherWoken = 23 "other_woken" "packets that woke another thread than the one that read them",
    SplitParents = 24 "split_parents" "records given up for those of the segments that software GSO cut from their packet",
    Ambiguous = 25 "ambiguous" "UDP packets whose reader is not known: two processors delivered to one socket at once, or its descriptor is shared (dup, fork, threads in calls)",
    Peeked = 26 "peeked" "packets that a call with MSG_PEEK copied before they were read",
    OfoQueued = 27 "ofo_queued" "TCP segments that waited in their receiver's out-of-order queue",
    Reordered = 28 "reordered" "TCP segments that came after bytes that follow theirs",
    TxUnseen = 29 "tx_unseen" "records begun where this kernel's own packet is received: its sending side was not followed",
    PlacedLate = 30 "placed_late" "packets in no_slot that were counted again: where they are received, or as segments",
}

impl Counter {
    pub const MAX: usize = 32;
}

/// Values of all counters, and of what only user space knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub alloc::collections::BTreeMap<alloc::string::String, u64>);

impl Counters {
    pub fn from_values(values: &[u64]) -> Counters {
        let named = Counter::ALL.iter().map(|counter| {
            let value = values.get(*counter as usize).copied().unwrap_or(0);
            (counter.name().into(), value)
        });
        Counters(named.collect())
    }

    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter.name()).copied().unwrap_or(0)
    }

    /// Packets that were chosen, segments of one each; tcpdump's "received by filter".
    pub fn received(&self) -> u64 {
        let chosen = self.get(Counter::Created) + self.get(Counter::NoSlot);
        let twice = self.get(Counter::SplitParents) + self.get(Counter::PlacedLate);
        chosen.saturating_sub(twice)
    }

    /// Chosen packets that have no record because there was no room for one.
    pub fn lost(&self) -> u64 {
        let no_slot = self
            .get(Counter::NoSlot)
            .saturating_sub(self.get(Counter::PlacedLate));
        no_slot + self.get(Counter::RingFull) + self.get(Counter::QueueFull)
    }

    /// Records begun and not accounted for otherwise: their packets were under way at the end.
    /// Negative when the account does not add up.
    pub fn in_flight(&self) -> i64 {
        let ended = [
            Counter::Written,
            Counter::RingFull,
            Counter::TooFast,
            Counter::OtherProcess,
            Counter::Aged,
            Counter::StaleEnded,
            Counter::SplitParents,
            Counter::QueueFull,
        ];
        let ended: u64 = ended.iter().map(|counter| self.get(*counter)).sum();
        self.get(Counter::Created) as i64 - ended as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_positions() {
        assert!(Counter::ALL.len() <= Counter::MAX);
        for (at, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, at);
        }
    }

    #[test]
    fn what_is_under_way_is_what_is_left() {
        let mut values = [0; Counter::MAX];
        values[Counter::Created as usize] = 10;
        values[Counter::Written as usize] = 6;
        values[Counter::Aged as usize] = 3;
        assert_eq!(Counters::from_values(&values).in_flight(), 1);
    }

    #[test]
    fn a_packet_without_a_slot_is_one_packet() {
        let mut values = [0; Counter::MAX];
        values[Counter::Created as usize] = 7;
        values[Counter::NoSlot as usize] = 5;
        // Two of the five have a record that begins on the receiving side, three have none.
        values[Counter::PlacedLate as usize] = 2;
        values[Counter::QueueFull as usize] = 1;
        let counters = Counters::from_values(&values);
        assert_eq!((counters.received(), counters.lost()), (10, 4));
        assert_eq!(counters.in_flight(), 6);
    }
}
