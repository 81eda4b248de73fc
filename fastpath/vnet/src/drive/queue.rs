//! One queue at the driver's end: its ring, its buffers, its doorbells.
use super::arena::Place;
use super::counts::DriveQueueCounts;
use super::error::DriveError;
use super::handshake::Eventfds;
use crate::Ns;
use crate::end::Front;
use crate::events::What;
use crate::policy::{Event, PolicyKind};
use crate::ring::{DriverRing, Features, Memory, RingError, Segment, packed, split};
use hopscope_serving::clock::Clock;
use hopscope_serving::events::EventLog;
use vm_memory::GuestAddress;

/// Where this end enables notifications before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// At the next used entry.
    First,
    /// When three quarters of those that are out are back.
    ThreeQuarters,
}

pub(super) struct Queue {
    index: usize,
    front: Front,
    pub(super) eventfds: Eventfds,
    place: Place,
    /// The back end writes into the buffers.
    writable: bool,
    /// Buffers without an entry, the next to be used last.
    spare: Vec<u16>,
    /// By entry: its buffer, and when its packet came.
    entries: Vec<(u16, Ns)>,
    /// Notifications were enabled.
    asked: bool,
    pub(super) counts: DriveQueueCounts,
    pub(super) events: EventLog,
}

/// A used entry.
pub(super) struct Back {
    pub(super) buffer: u16,
    pub(super) len: u32,
    pub(super) came: Ns,
}

impl Queue {
    /// # Errors
    /// No queue has this size.
    pub(super) fn new(
        index: usize,
        kick: PolicyKind,
        packed: bool,
        features: Features,
        memory: &Memory,
        place: Place,
    ) -> Result<Queue, DriveError> {
        let failed = DriveError::queue(index);
        let layout = place.layout;
        let ring: Result<Box<dyn DriverRing + Send>, RingError> = if packed {
            packed::DriverQueue::new(memory, layout, features).map(|q| Box::new(q) as _)
        } else {
            split::DriverQueue::new(memory, layout, features).map(|q| Box::new(q) as _)
        };
        Ok(Queue {
            index,
            front: Front::new(ring.map_err(failed)?, kick)?,
            eventfds: Eventfds::new(index)?,
            writable: index.is_multiple_of(2),
            spare: (0..layout.size).rev().collect(),
            entries: vec![(0, Ns(0)); layout.size.into()],
            asked: true,
            counts: DriveQueueCounts::default(),
            events: EventLog::default(),
            place,
        })
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Each entry has one buffer, so that as many fit as buffers are spare.
    pub(super) fn room(&self) -> usize {
        self.spare.len()
    }

    /// Entries that the back end has.
    pub(super) fn out(&self) -> u16 {
        self.place.layout.size - self.spare.len() as u16
    }

    /// The buffer that the next entry has.
    pub(super) fn next_buffer(&self) -> Option<u16> {
        self.spare.last().copied()
    }

    pub(super) fn address(&self, buffer: u16) -> GuestAddress {
        let offset = u64::from(buffer) * u64::from(self.place.buffer_len);
        GuestAddress(self.place.buffers.0 + offset)
    }

    /// Puts the next buffer's first `len` bytes into the ring, and kicks if that is due.
    ///
    /// # Errors
    /// The ring is full, or the back end's eventfd cannot be written.
    pub(super) fn publish(
        &mut self,
        memory: &Memory,
        len: u32,
        waiting: u32,
        came: Ns,
        (clock, now): (Clock, Ns),
    ) -> Result<(), DriveError> {
        let buffer = self.spare.pop().unwrap_or(0);
        let segment = Segment {
            address: self.address(buffer),
            len,
            writable: self.writable,
        };
        let added = self.front.add(memory, &[segment], waiting, now);
        let added = added.map_err(DriveError::queue(self.index))?;
        self.entries[usize::from(added.id)] = (buffer, came);
        if added.kick { self.kick(clock) } else { Ok(()) }
    }

    /// Reclaims the oldest used entry.
    ///
    /// # Errors
    /// It used an entry that it does not have.
    pub(super) fn reclaim(&mut self, memory: &Memory) -> Result<Option<Back>, DriveError> {
        let used = self.front.queue.next_used(memory);
        let Some((id, len)) = used.map_err(DriveError::queue(self.index))? else {
            return Ok(None);
        };
        let (buffer, came) = self.entries[usize::from(id)];
        self.counts.entries += 1;
        Ok(Some(Back { buffer, len, came }))
    }

    /// Of an entry that is back.
    pub(super) fn release(&mut self, buffer: u16) {
        self.spare.push(buffer);
    }

    /// No more is at hand now.
    ///
    /// # Errors
    /// As for [`Queue::publish`].
    pub(super) fn pause(&mut self, memory: &Memory, clock: Clock) -> Result<(), DriveError> {
        if self.hold().is_some() {
            // Who is held back has been promised a time.
            return Ok(());
        }
        let kick = self.front.pause(memory, clock.now());
        if kick.map_err(DriveError::queue(self.index))? {
            self.kick(clock)
        } else {
            Ok(())
        }
    }

    /// When something that is held back has to be announced.
    pub(super) fn hold(&mut self) -> Option<Ns> {
        self.front.notifier().hold()
    }

    /// # Errors
    /// As for [`Queue::publish`].
    pub(super) fn due(&mut self, memory: &Memory, clock: Clock, now: Ns) -> Result<(), DriveError> {
        let kick = self.front.due(memory, now);
        if kick.map_err(DriveError::queue(self.index))? {
            self.kick(clock)
        } else {
            Ok(())
        }
    }

    fn kick(&mut self, clock: Clock) -> Result<(), DriveError> {
        let before = clock.now();
        self.events.begin(What::Kick);
        let rung = self.eventfds.kick.signal();
        self.events.end(What::Kick, u64::from(rung.is_ok()));
        rung.map_err(DriveError::from)?;
        self.counts.kicks += 1;
        let now = clock.now();
        let cost = now.since(before);
        // Who kicked because the device asked for it found it asleep.
        let event = Event::Notified { cost, woke: true };
        self.front.notifier().on(event, now);
        Ok(())
    }

    /// Before this end sleeps: enables notifications. True: there are used entries already.
    ///
    /// # Errors
    /// As for [`Queue::reclaim`].
    pub(super) fn ask(&mut self, memory: &Memory, arm: Arm) -> Result<bool, DriveError> {
        let ahead = match arm {
            Arm::First => 0,
            // Fewer than are out, else the call would never come.
            Arm::ThreeQuarters => (u32::from(self.out()) * 3 / 4) as u16,
        };
        self.asked = true;
        self.counts.asked += 1;
        let there = self.front.queue.enable_notification(memory, ahead);
        there.map_err(DriveError::queue(self.index))
    }

    /// This end looks by itself.
    ///
    /// # Errors
    /// As for [`Queue::reclaim`].
    pub(super) fn hush(&mut self, memory: &Memory) -> Result<(), DriveError> {
        if !std::mem::take(&mut self.asked) {
            return Ok(());
        }
        let hushed = self.front.queue.disable_notification(memory);
        hushed.map_err(DriveError::queue(self.index))
    }

    /// The call's eventfd woke this end. Read for a recording only: its sum is exact whenever it is read.
    ///
    /// # Errors
    /// The eventfd cannot be read.
    pub(super) fn called(&mut self) -> Result<(), DriveError> {
        if !self.events.are_kept() {
            return Ok(());
        }
        self.events.begin(What::Called);
        let calls = self.eventfds.call.take();
        self.events.end(What::Called, *calls.as_ref().unwrap_or(&0));
        self.counts.calls += calls.map_err(DriveError::from)?;
        Ok(())
    }

    /// Final counts: with the policy's, and notifications that came while this end did not wait.
    ///
    /// # Errors
    /// The eventfd cannot be read.
    pub(super) fn finish(mut self) -> Result<DriveQueueCounts, DriveError> {
        self.counts.calls += self.eventfds.call.take().map_err(DriveError::from)?;
        self.counts.kick_policy = *self.front.notifier().policy().counts();
        Ok(self.counts)
    }
}
