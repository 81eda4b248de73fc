//! Reading the shared pool: the recorder's side of [`crate::layout`].
//!
//! The memory belongs to another process, which may scribble anything into it at any time. It is
//! seen as atomics, sizes are the reader's own, and every index is bounded.
use crate::layout::{CONSUMED_AT, RING_HEADER_AT, RING_HEADER_BYTES, RingHeader};
use crate::layout::{CONTEXTS_MAX, FREE_QUEUE_OFFSET, PoolHeader, pool_bytes, ring_offset};
use crate::record::{Record, STRIDE};
use alloc::vec::Vec;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

/// A pool as 64-bit words, and the sizes it was made with.
#[derive(Clone, Copy)]
pub struct Pool<'a> {
    words: &'a [AtomicU64],
    contexts: usize,
    ring_records_log2: u32,
}

/// How far the reader of one ring is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Free-running index of the next record to read.
    pub next: u64,
}

/// What one visit to a ring found. Recorded, lost and torn add up to the slots reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Index of the first record appended.
    pub first_index: u64,
    /// Overwritten before they could be read; they precede the records of this visit.
    pub lost: u64,
    /// Reserved and never stored, among or before the records of this visit.
    pub torn: u64,
    /// The producer's counter ran backwards: the memory was overwritten by the target.
    pub damaged: bool,
    /// Slots reserved and not yet stored, left for the next visit.
    pub pending: u64,
}

/// Whether more records can still come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// The owner runs: a slot that is not stored yet is waited for.
    Live,
    /// The owner is gone or detached: what is not stored never will be.
    Final,
}

impl<'a> Pool<'a> {
    /// `None` when `words` is too short for a pool of that size.
    pub fn new(
        words: &'a [AtomicU64],
        contexts: usize,
        ring_records_log2: u32,
    ) -> Option<Pool<'a>> {
        let fits = contexts <= CONTEXTS_MAX
            && (4..=32).contains(&ring_records_log2)
            && words.len() * 8 >= pool_bytes(contexts, ring_records_log2);
        fits.then_some(Pool {
            words,
            contexts,
            ring_records_log2,
        })
    }

    pub fn contexts(&self) -> usize {
        self.contexts
    }

    pub fn ring_records(&self) -> u64 {
        1 << self.ring_records_log2
    }

    pub fn ring(&self, index: usize) -> Option<Ring<'a>> {
        if index >= self.contexts {
            return None;
        }
        let start = ring_offset(index, self.ring_records_log2) / 8;
        let len = (RING_HEADER_BYTES + (STRIDE << self.ring_records_log2)) / 8;
        Some(Ring {
            words: self.words.get(start..start + len)?,
            records_log2: self.ring_records_log2,
        })
    }

    pub fn calls_unmeasured(&self) -> u64 {
        self.words[offset_of!(PoolHeader, calls_unmeasured) / 8].load(Ordering::Relaxed)
    }

    pub fn calls_foreign(&self) -> u64 {
        self.words[offset_of!(PoolHeader, calls_foreign) / 8].load(Ordering::Relaxed)
    }

    /// Entries of the free queue taken by threads of the target.
    pub fn taken(&self) -> u64 {
        self.words[offset_of!(PoolHeader, free_head) / 8].load(Ordering::Acquire)
    }

    /// The context index in entry `n` of the free queue.
    pub fn free_entry(&self, n: u64) -> u32 {
        let at = n as usize % CONTEXTS_MAX;
        let word = self.words[FREE_QUEUE_OFFSET / 8 + at / 2].load(Ordering::Relaxed);
        (word >> (32 * (at % 2))) as u32
    }

    /// Entries put into the free queue so far.
    pub fn offered(&self) -> u64 {
        self.words[offset_of!(PoolHeader, free_tail) / 8].load(Ordering::Relaxed)
    }

    /// Offers a context to threads that have none. Only the recorder may call this.
    pub fn offer(&self, context: u32) {
        let tail = &self.words[offset_of!(PoolHeader, free_tail) / 8];
        let n = tail.load(Ordering::Relaxed);
        let at = n as usize % CONTEXTS_MAX;
        let word = &self.words[FREE_QUEUE_OFFSET / 8 + at / 2];
        let shift = 32 * (at % 2);
        let kept = word.load(Ordering::Relaxed) & !(0xffff_ffff << shift);
        word.store(kept | (context as u64) << shift, Ordering::Relaxed);
        // The target can write it, too.
        tail.store(n.wrapping_add(1), Ordering::Release);
    }
}

/// More than a thread writes in a year: its counter was overwritten. So sums over all rings do not overflow.
const SLOTS_AT_MOST: u64 = 1 << 52;

/// One thread's ring.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    words: &'a [AtomicU64],
    records_log2: u32,
}

impl<'a> Ring<'a> {
    /// A ring on its own (header and slots), or `None` when `words` is too short for it.
    pub fn new(words: &'a [AtomicU64], records_log2: u32) -> Option<Ring<'a>> {
        let fits = (4..=32).contains(&records_log2)
            && words.len() * 8 >= RING_HEADER_BYTES + (STRIDE << records_log2);
        fits.then_some(Ring {
            words,
            records_log2,
        })
    }

    /// Slots reserved and consumed, from a copy of the header alone.
    pub fn progress(header: &[AtomicU64]) -> Option<(u64, u64)> {
        let word = |offset: usize| Some(header.get(offset / 8)?.load(Ordering::Relaxed));
        let reserved = word(RING_HEADER_AT + offset_of!(RingHeader, cursor))? / STRIDE as u64;
        Some((reserved, word(CONSUMED_AT)?))
    }

    fn header(&self, offset: usize) -> &AtomicU64 {
        &self.words[(RING_HEADER_AT + offset) / 8]
    }

    /// Slots reserved so far.
    pub fn reserved(&self) -> u64 {
        self.header(offset_of!(RingHeader, cursor))
            .load(Ordering::Acquire)
            / STRIDE as u64
    }

    /// Thread id of the owner; 0 if unknown.
    pub fn tid(&self) -> i32 {
        self.header(offset_of!(RingHeader, tid))
            .load(Ordering::Acquire) as u32 as i32
    }

    /// The forked child whose thread the owner is, by the id that it has for itself; 0 if it is of none.
    pub fn forked(&self) -> i32 {
        let word = self.header(offset_of!(RingHeader, tid));
        (word.load(Ordering::Acquire) >> 32) as u32 as i32
    }

    /// fs base (self pointer) of the owner; 0 when the ring has none.
    pub fn owner(&self) -> u64 {
        self.header(offset_of!(RingHeader, owner))
            .load(Ordering::Acquire)
    }

    pub fn set_owner(&self, owner: u64, tid: i32) {
        self.header(offset_of!(RingHeader, tid))
            .store(tid as u32 as u64, Ordering::Release);
        self.header(offset_of!(RingHeader, owner))
            .store(owner, Ordering::Release);
    }

    /// Where a salvage starts.
    pub fn consumed(&self) -> u64 {
        self.words[CONSUMED_AT / 8].load(Ordering::Relaxed)
    }

    pub fn set_consumed(&self, next: u64) {
        self.words[CONSUMED_AT / 8].store(next, Ordering::Release);
    }

    /// Where its thread's probes find the pages of its events; 0: nowhere.
    pub fn set_counters(&self, at: u64) {
        self.header(offset_of!(RingHeader, counters))
            .store(at, Ordering::Release);
    }

    fn slot(&self, index: u64) -> Record {
        let n = (index & ((1 << self.records_log2) - 1)) as usize;
        let at = RING_HEADER_BYTES / 8 + n * (STRIDE / 8);
        // The probe stores the id with a zero behind it, the TSC, then the stack. Read the other way
        // round: the right lap in the second word proves that the first is of this lap, or of a later
        // one, whose counter is then seen by whoever looks at it afterwards.
        let word = self.words[at + 1].load(Ordering::Acquire);
        let tsc = self.words[at].load(Ordering::Acquire);
        Record {
            tsc,
            id_kind: word as u32,
            stack: (word >> 32) as u32,
        }
    }

    /// Appends what is new to `out`, at most `limit` records.
    pub fn drain(
        &self,
        position: &mut Position,
        visit: Visit,
        limit: usize,
        out: &mut Vec<Record>,
    ) -> Drained {
        let ring_records = 1u64 << self.records_log2;
        let reserved = self.reserved();
        let mut drained = Drained {
            first_index: position.next,
            ..Drained::default()
        };
        if reserved < position.next || reserved > SLOTS_AT_MOST {
            drained.damaged = true;
            return drained;
        }
        if reserved - position.next > ring_records {
            // The oldest slot is the one that a running producer takes next: who begins there is
            // overtaken at once, at each visit again, and never reads anything more. An eighth of
            // the ring is the lead that lets the reader go on.
            let lead = match visit {
                Visit::Live => ring_records / 8,
                Visit::Final => 0,
            };
            drained.lost = reserved - (ring_records - lead) - position.next;
        }
        let first = position.next + drained.lost;
        let begin = out.len();
        let mut next = first;
        let mut torn_at: Vec<u64> = Vec::new();
        while next < reserved && out.len() - begin < limit {
            match Record::stored(self.slot(next), next >> self.records_log2) {
                Some(record) => out.push(record),
                // The producer came round again: this slot and what follows is settled below.
                None if self.reserved() - next > ring_records => break,
                // A producer half a ring further on will not come back for this slot: its probe
                // was left for good (longjmp out of a signal handler, thread killed).
                None if visit == Visit::Final || reserved - next > ring_records / 2 => {
                    torn_at.push(next);
                }
                None => {
                    drained.pending = reserved - next;
                    break;
                }
            }
            next += 1;
        }
        // What the producer lapped while it was being copied may be a mixture: count it as lost.
        let safe_from = self.reserved().saturating_sub(ring_records);
        if safe_from > first {
            let copied_until = safe_from.min(next);
            let torn_below = torn_at.iter().filter(|at| **at < copied_until).count() as u64;
            let stale = (copied_until - first) - torn_below;
            out.drain(begin..begin + stale as usize);
            torn_at.retain(|at| *at >= copied_until);
            next = next.max(safe_from);
            drained.lost = safe_from - position.next;
        }
        drained.torn = torn_at.len() as u64;
        drained.first_index = position.next + drained.lost;
        position.next = next;
        drained
    }
}

#[cfg(test)]
mod tests;
