//! Packets received from the back end, each in as many buffers as its header has (virtio 1.3, 5.1.6.4).
use super::counts::ReceiveCounts;
use super::error::DriveError;
use super::frame::{Checker, Found};
use super::queue::{Back, Queue};
use crate::common::header;
use crate::ring::Memory;
use hopscope_netio::Offload;
use hopscope_serving::clock::Clock;
use vm_memory::{Address, Bytes, GuestMemoryBackend, VolatileSlice};

/// Packets before others get a turn.
const TURN: usize = 64;

/// What receives a packet.
pub(super) trait Taker {
    /// False: there is no room for it now.
    ///
    /// # Errors
    /// The port fails.
    fn take(&mut self, packet: &Packet<'_>) -> Result<bool, DriveError>;
}

pub(super) struct Packet<'a> {
    memory: &'a Memory,
    queue: &'a Queue,
    parts: &'a [Back],
    pub(super) offload: Offload,
    /// Of the frame, without the header.
    pub(super) len: usize,
}

impl Packet<'_> {
    /// Where the frame lies.
    ///
    /// # Errors
    /// A buffer is not in the memory, which cannot be.
    pub(super) fn slices(&self) -> Result<Vec<VolatileSlice<'_>>, DriveError> {
        let mut skip = header::LEN_MAX;
        let slices = self.parts.iter().map(|part| {
            let from = self.queue.address(part.buffer).unchecked_add(skip as u64);
            let len = part.len as usize - std::mem::take(&mut skip);
            let slice = self.memory.get_slice(from, len);
            slice.map_err(|e| DriveError::queue(0)(e.into()))
        });
        slices.collect()
    }

    /// Copies the frame to the beginning of `to`, which is long enough.
    ///
    /// # Errors
    /// As for [`Packet::slices`].
    pub(super) fn copy(&self, to: &mut [u8]) -> Result<(), DriveError> {
        let mut done = 0;
        for slice in self.slices()? {
            done += slice.copy_to(&mut to[done..]);
        }
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct Receiving {
    /// Of the packet that is being received.
    parts: Vec<Back>,
    offload: Offload,
    needed: u16,
    /// The one who takes packets has no room.
    pub(super) blocked: bool,
    /// Not longer than their header.
    pub(super) dropped: u64,
}

impl Receiving {
    /// Gives every buffer to the back end.
    ///
    /// # Errors
    /// As for [`Queue::publish`].
    pub(super) fn fill(queue: &mut Queue, memory: &Memory, clock: Clock) -> Result<(), DriveError> {
        while queue.room() > 0 {
            let (len, now) = (queue.place().buffer_len, clock.now());
            let waiting = queue.room() as u32 - 1;
            queue.publish(memory, len, waiting, now, (clock, now))?;
        }
        Ok(())
    }

    /// Hands on what came, and gives the buffers back. True: something came.
    ///
    /// # Errors
    /// What the back end wrote cannot be, or the port fails.
    pub(super) fn turn(
        &mut self,
        queue: &mut Queue,
        memory: &Memory,
        merges: bool,
        taker: &mut dyn Taker,
        clock: Clock,
    ) -> Result<bool, DriveError> {
        if self.blocked {
            return Ok(false);
        }
        let mut any = false;
        for _ in 0..TURN {
            if !self.gather(queue, memory, merges)? {
                break;
            }
            any = true;
            let len: usize = self.parts.iter().map(|part| part.len as usize).sum();
            match len.checked_sub(header::LEN_MAX).filter(|len| *len > 0) {
                None => self.dropped += 1,
                Some(len) => {
                    let packet = Packet {
                        memory,
                        queue,
                        parts: &self.parts,
                        offload: self.offload,
                        len,
                    };
                    if !taker.take(&packet)? {
                        self.blocked = true;
                        break;
                    }
                    queue.counts.packets += 1;
                    queue.counts.bytes += len as u64;
                }
            }
            for part in self.parts.drain(..) {
                queue.release(part.buffer);
                let (len, now) = (queue.place().buffer_len, clock.now());
                // Whether another packet is at hand only the next look says.
                queue.publish(memory, len, 1, now, (clock, now))?;
            }
        }
        queue.pause(memory, clock)?;
        Ok(any)
    }

    /// True: a packet is whole.
    fn gather(
        &mut self,
        queue: &mut Queue,
        memory: &Memory,
        merges: bool,
    ) -> Result<bool, DriveError> {
        while self.parts.is_empty() || self.parts.len() < usize::from(self.needed) {
            let Some(part) = queue.reclaim(memory)? else {
                return Ok(false);
            };
            let place = queue.place();
            if part.len > place.buffer_len {
                let (len, room) = (part.len, place.buffer_len);
                return Err(DriveError::Written { len, room });
            }
            if self.parts.is_empty() {
                let mut bytes = [0; header::LEN_MAX];
                let read = memory.read_slice(&mut bytes, queue.address(part.buffer));
                read.map_err(|e| DriveError::queue(0)(e.into()))?;
                self.offload = header::decode(&bytes);
                let chains = u16::from_le_bytes([bytes[10], bytes[11]]);
                let size = place.layout.size;
                self.needed = match merges {
                    true if part.len >= header::LEN_MAX as u32 => chains,
                    _ => 1,
                };
                if !(1..=size).contains(&self.needed) {
                    return Err(DriveError::Merged { chains, size });
                }
            }
            self.parts.push(part);
        }
        Ok(true)
    }
}

/// Counts packets, and compares those that are ours.
#[derive(Default)]
pub(super) struct Sink {
    checker: Checker,
    frame: Vec<u8>,
    next: u64,
    pub(super) came: ReceiveCounts,
}

impl Taker for Sink {
    fn take(&mut self, packet: &Packet<'_>) -> Result<bool, DriveError> {
        if self.frame.len() < packet.len {
            self.frame.resize(packet.len, 0);
        }
        packet.copy(&mut self.frame)?;
        match self.checker.check(&self.frame[..packet.len]) {
            Found::Other => self.came.others += 1,
            Found::Wrong => self.came.wrong += 1,
            Found::Own { number } => {
                self.came.own += 1;
                self.came.disordered += u64::from(number != self.next);
                self.next = number + 1;
            }
        }
        Ok(true)
    }
}
