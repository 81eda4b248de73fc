//! What the sender noted of the packets on their way, for the matcher: a ring of fixed size, one
//! writer and one reader, no lock.
//!
//! The sender never overwrites what is not settled: when the matcher does not keep up it waits,
//! and what it then sends late is marked as late.
use hopscope_event::Tsc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One packet as it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub intended: Tsc,
    pub sent: Tsc,
    pub flow: u32,
    /// Without FCS.
    pub len: u32,
}

#[derive(Default)]
struct Entry {
    intended: AtomicU64,
    sent: AtomicU64,
    flow_and_len: AtomicU64,
}

/// On cache lines of its own: each of these is written by one side only.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

pub struct Window {
    entries: Box<[Entry]>,
    published: Counter,
    settled: Counter,
    ended: AtomicBool,
}

/// Most packets on their way; 100 MiB with the matcher's own notes.
pub const LARGEST: usize = 1 << 22;

impl Window {
    /// Room for `packets`, rounded up to a power of two, at most [`LARGEST`].
    pub fn new(packets: usize) -> Window {
        let count = packets.clamp(1024, LARGEST).next_power_of_two();
        Window {
            entries: (0..count).map(|_| Entry::default()).collect(),
            published: Counter::default(),
            settled: Counter::default(),
            ended: AtomicBool::new(false),
        }
    }

    pub fn capacity(&self) -> u64 {
        self.entries.len() as u64
    }

    fn entry(&self, seq: u64) -> &Entry {
        &self.entries[seq as usize & (self.entries.len() - 1)]
    }

    /// Sender: how many more can be noted when `next` is the next number.
    pub fn room(&self, next: u64) -> u64 {
        self.capacity() - (next - self.settled.0.load(Ordering::Acquire))
    }

    /// Sender: notes a packet before the port can hand it on.
    #[inline]
    pub fn note(&self, seq: u64, packet: Sent) {
        let entry = self.entry(seq);
        let flow_and_len = u64::from(packet.flow) << 32 | u64::from(packet.len);
        // Release, so that who sees a new value also sees the count that announced it.
        entry.intended.store(packet.intended.0, Ordering::Release);
        entry.sent.store(packet.sent.0, Ordering::Release);
        entry.flow_and_len.store(flow_and_len, Ordering::Release);
        self.published.0.store(seq + 1, Ordering::Release);
    }

    /// Sender: no packet follows.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Matcher: whether [`Window::published`] is final. Asked before it.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Matcher: number after the last packet noted.
    pub fn published(&self) -> u64 {
        self.published.0.load(Ordering::Acquire)
    }

    /// Matcher: a packet from `settled` to `published`; others may be half overwritten.
    #[inline]
    pub fn get(&self, seq: u64) -> Sent {
        let entry = self.entry(seq);
        let flow_and_len = entry.flow_and_len.load(Ordering::Acquire);
        Sent {
            intended: Tsc(entry.intended.load(Ordering::Acquire)),
            sent: Tsc(entry.sent.load(Ordering::Acquire)),
            flow: (flow_and_len >> 32) as u32,
            len: flow_and_len as u32,
        }
    }

    /// Matcher: any packet that was published; `None` when its place is taken by a later one.
    #[inline]
    pub fn get_old(&self, seq: u64) -> Option<Sent> {
        let sent = self.get(seq);
        // Looked at after reading: at this count the sender may begin to overwrite.
        (self.published() - seq < self.capacity()).then_some(sent)
    }

    /// Matcher: everything before `seq` may be overwritten.
    pub fn settle(&self, seq: u64) {
        self.settled.0.store(seq, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_when_packets_are_settled() {
        let window = Window::new(1);
        assert_eq!(window.capacity(), 1024);
        let packet = |seq: u64| Sent {
            intended: Tsc(seq * 10),
            sent: Tsc(seq * 10 + 1),
            flow: seq as u32 + 5,
            len: 60,
        };
        (0..1024).for_each(|seq| window.note(seq, packet(seq)));
        assert_eq!((window.published(), window.room(1024)), (1024, 0));
        window.settle(3);
        assert_eq!(window.room(1024), 3);
        window.note(1024, packet(1024));
        assert_eq!(window.get(1024), packet(1024));
        assert_eq!(window.get_old(3), Some(packet(3)));
        assert_eq!(window.get_old(1), None, "may be overwritten at any time");
    }
}
