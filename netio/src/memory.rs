//! Ports joined in memory: a cable without a kernel, for tests and for the ceiling of what a
//! generator can do.
//!
//! A ring for each direction, one sender and one receiver. Each slot has a lock that is never
//! contended, because the two counters say whose slot it is: it costs two uncontended atomic
//! operations a side and keeps this free of unsafe code.
use crate::clock::tsc_now;
use crate::{Capabilities, Counters, Fill, Frame, Offload, PacketIo, PortError, Visit};
use hopscope_event::clock::Tsc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens to a frame that finds the ring full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// It is not taken over: `send` returns fewer.
    #[default]
    Wait,
    /// It is lost, as on a wire: the receiver's `receive_dropped` counts it.
    Drop,
}

#[derive(Debug, Clone, Copy)]
pub struct MemoryOptions {
    /// Frames that a direction holds, rounded up to a power of two.
    pub frames: usize,
    /// In bytes; each slot has room for one such frame.
    pub max_frame_len: usize,
    pub when_full: WhenFull,
}

impl Default for MemoryOptions {
    fn default() -> MemoryOptions {
        MemoryOptions {
            frames: 1024,
            max_frame_len: 2048,
            when_full: WhenFull::Wait,
        }
    }
}

#[derive(Default)]
struct Slot {
    len: usize,
    offload: Offload,
    sent: Tsc,
    /// None before its first frame: many rings are never full.
    bytes: Box<[u8]>,
}

/// On cache lines of its own (and the line that is prefetched with it): written by one side only.
#[repr(align(128))]
#[derive(Default)]
struct Counter(AtomicU64);

struct Ring {
    slots: Box<[Mutex<Slot>]>,
    /// Frames ever handed on by the sender, and ever given back by the receiver.
    published: Counter,
    taken: Counter,
    dropped: Counter,
}

impl Ring {
    fn new(options: MemoryOptions) -> Arc<Ring> {
        let frames = options.frames.max(1).next_power_of_two();
        Arc::new(Ring {
            slots: (0..frames).map(|_| Mutex::default()).collect(),
            published: Counter::default(),
            taken: Counter::default(),
            dropped: Counter::default(),
        })
    }

    /// A panic in a visitor or filler leaves nothing half done that matters: the slot is reused.
    fn slot(&self, number: u64) -> MutexGuard<'_, Slot> {
        let index = number as usize & (self.slots.len() - 1);
        self.slots[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end. Both may be used by one thread, or each by its own.
pub struct MemoryPort {
    options: MemoryOptions,
    outgoing: Arc<Ring>,
    incoming: Arc<Ring>,
    /// Frames written, published or not.
    written: u64,
    /// What was last read of the other side's counters: reading them anew for each frame would
    /// pull the cache line over each time.
    taken_by_peer: u64,
    published_by_peer: u64,
    taken: u64,
    spare: Slot,
    counters: Counters,
}

/// Two ports: what one sends, the other receives.
pub fn memory_pair(options: MemoryOptions) -> (MemoryPort, MemoryPort) {
    let (there, back) = (Ring::new(options), Ring::new(options));
    (
        MemoryPort::new(options, &there, &back),
        MemoryPort::new(options, &back, &there),
    )
}

/// One port that receives what it sends.
pub fn memory_loop(options: MemoryOptions) -> MemoryPort {
    let ring = Ring::new(options);
    MemoryPort::new(options, &ring, &ring)
}

impl MemoryPort {
    fn new(options: MemoryOptions, outgoing: &Arc<Ring>, incoming: &Arc<Ring>) -> MemoryPort {
        MemoryPort {
            options,
            outgoing: Arc::clone(outgoing),
            incoming: Arc::clone(incoming),
            written: 0,
            taken_by_peer: 0,
            published_by_peer: 0,
            taken: 0,
            spare: Slot {
                bytes: vec![0; options.max_frame_len].into(),
                ..Slot::default()
            },
            counters: Counters::default(),
        }
    }

    /// Whether the peer disconnected; never for a loop.
    fn alone(&self) -> bool {
        let alone =
            !Arc::ptr_eq(&self.outgoing, &self.incoming) && Arc::strong_count(&self.incoming) == 1;
        // What it published before it went is seen after this.
        fence(Ordering::Acquire);
        alone
    }

    fn ended(&self) -> PortError {
        PortError::Ended {
            name: "mem: (its other end was closed)".into(),
        }
    }

    fn room(&mut self) -> u64 {
        let slots = self.outgoing.slots.len() as u64;
        if self.written - self.taken_by_peer == slots {
            self.taken_by_peer = self.outgoing.taken.0.load(Ordering::Acquire);
        }
        slots - (self.written - self.taken_by_peer)
    }

    fn publish(&self) {
        self.outgoing
            .published
            .0
            .store(self.written, Ordering::Release);
    }
}

impl PacketIo for MemoryPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: self.options.max_frame_len,
            offload: true,
        }
    }

    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError> {
        if self.published_by_peer == self.taken {
            self.published_by_peer = self.incoming.published.0.load(Ordering::Acquire);
            if self.published_by_peer == self.taken {
                // The peer may have published between this look and its end.
                let ended =
                    self.alone() && self.incoming.published.0.load(Ordering::Acquire) == self.taken;
                return if ended { Err(self.ended()) } else { Ok(0) };
            }
        }
        let count = (self.published_by_peer - self.taken).min(max as u64);
        for number in self.taken..self.taken + count {
            let slot = self.incoming.slot(number);
            self.counters.received_bytes += slot.len as u64;
            visit(Frame {
                bytes: &slot.bytes[..slot.len],
                wire_len: slot.len,
                received: slot.sent,
                offload: slot.offload,
            });
        }
        self.taken += count;
        self.counters.received += count;
        self.incoming.taken.0.store(self.taken, Ordering::Release);
        Ok(count as usize)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        let mut done = 0;
        while done < count {
            if self.room() == 0 {
                if self.alone() {
                    return Err(self.ended());
                }
                // The receiver can only make room for what it can see.
                self.publish();
                if self.options.when_full == WhenFull::Wait {
                    break;
                }
                let outgoing = fill(&mut self.spare.bytes);
                let Some(len) = outgoing.checked("mem:", self.options.max_frame_len)? else {
                    break;
                };
                self.outgoing.dropped.0.fetch_add(1, Ordering::Relaxed);
                self.counters.sent_bytes += len as u64;
                done += 1;
                continue;
            }
            let mut slot = self.outgoing.slot(self.written);
            if slot.bytes.is_empty() {
                slot.bytes = vec![0; self.options.max_frame_len].into();
            }
            let outgoing = fill(&mut slot.bytes);
            let Some(len) = outgoing.checked("mem:", self.options.max_frame_len)? else {
                break;
            };
            (slot.len, slot.offload, slot.sent) = (len, outgoing.offload, tsc_now());
            drop(slot);
            self.counters.sent_bytes += len as u64;
            self.written += 1;
            done += 1;
        }
        self.counters.sent += done as u64;
        Ok(done)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.publish();
        Ok(0)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(Counters {
            receive_dropped: self.incoming.dropped.0.load(Ordering::Relaxed),
            ..self.counters
        })
    }
}

impl Drop for MemoryPort {
    /// What was taken over is not lost with the port.
    fn drop(&mut self) {
        self.publish();
    }
}

#[cfg(test)]
mod tests;
