//! The device's end: takes chains, gives them back in any order.
use super::{Descriptor, INDIRECT, LEN, NEXT, Place, Ring, WRITE, at, recovered};
use crate::policy::Peer;
use crate::ring::in_flight::InFlight;
use crate::ring::{Chain, DeviceRing, Features, INDIRECT_MAX, Layout, Memory, RingError, Segment};
use vm_memory::GuestAddress;

pub struct DeviceQueue {
    ring: Ring,
    next_available: Place,
    next_used: Place,
    taken: InFlight,
    /// The first entry given back that the driver cannot see yet: its number, and how much was written.
    hidden: Option<(Place, u16, u32)>,
    /// Descriptors used since the last notification.
    unannounced: u16,
    /// The same of those that the driver can see.
    shown: u16,
}

impl DeviceQueue {
    /// # Errors
    /// A size or an alignment that no queue has.
    pub fn new(layout: Layout, features: Features) -> Result<DeviceQueue, RingError> {
        Ok(DeviceQueue {
            ring: Ring::new(layout, features)?,
            next_available: Place::START,
            next_used: Place::START,
            taken: InFlight::new(layout.size),
            hidden: None,
            unannounced: 0,
            shown: 0,
        })
    }

    /// As [`DeviceQueue::new`], where an earlier end stopped: bits 0 to 14 are the place of the next entry,
    /// bit 15 its wrap counter. What is above them says the same of used entries; whoever stopped has
    /// given all of them back, so it is the same place, and some front ends leave it out.
    ///
    /// # Errors
    /// As for [`DeviceQueue::new`]; a place outside the queue.
    pub fn resumed(
        layout: Layout,
        features: Features,
        base: u32,
    ) -> Result<DeviceQueue, RingError> {
        let mut queue = DeviceQueue::new(layout, features)?;
        let (slot, size) = (base as u16 & !super::WRAP, layout.size);
        if slot >= size {
            let (index, size) = (slot.into(), size.into());
            return Err(RingError::OutOfTable { index, size });
        }
        let wrap = base as u16 & super::WRAP != 0;
        queue.next_available = Place { slot, wrap };
        queue.next_used = queue.next_available;
        Ok(queue)
    }

    /// As [`DeviceQueue::resumed`], after an end that nobody asked: the place is read from the ring, since the front
    /// end may not know it. With it, how many slots were given back with nothing in them: a packet that
    /// was not whole yet, and what QEMU dropped meanwhile.
    ///
    /// # Errors
    /// As for [`DeviceQueue::resumed`]; [`RingError::Lost`]: neither says where.
    pub fn found(
        memory: &Memory,
        layout: Layout,
        features: Features,
        base: u32,
    ) -> Result<(DeviceQueue, u16), RingError> {
        let mut queue = DeviceQueue::resumed(layout, features, base)?;
        let found = recovered::find(&queue.ring, memory, queue.next_available)?;
        queue.next_available = found.place;
        queue.next_used = found.place;
        // Whether the driver was called for any of them nobody knows.
        (queue.unannounced, queue.shown) = (layout.size, layout.size);
        Ok((queue, found.emptied))
    }

    fn is_available(&self, memory: &Memory, place: Place) -> Result<bool, RingError> {
        Ok(self.ring.marks(memory, place)? == place.available())
    }

    fn segment(chain: &mut Chain, size: u16, from: Descriptor) -> Result<(), RingError> {
        let writable = from.flags & WRITE != 0;
        if !writable && chain.segments.last().is_some_and(|last| last.writable) {
            return Err(RingError::Order);
        }
        if chain.segments.len() >= usize::from(size) {
            return Err(RingError::TooLong { size });
        }
        chain.segments.push(Segment {
            address: GuestAddress(from.address),
            len: from.len,
            writable,
        });
        Ok(())
    }

    /// 2.8.8: a table's descriptors follow each other; only their write flag counts.
    fn table(&self, memory: &Memory, chain: &mut Chain, from: Descriptor) -> Result<(), RingError> {
        let what = match () {
            () if !self.ring.features.indirect => "was not negotiated",
            () if !chain.segments.is_empty() || from.flags & NEXT != 0 => "within a chain",
            () if from.len == 0 => "without descriptors",
            () if !u64::from(from.len).is_multiple_of(LEN) => "whose length is no multiple of 16",
            () if u64::from(from.len) > LEN * INDIRECT_MAX => "of more than 1024 descriptors",
            () => {
                for n in 0..u64::from(from.len) / LEN {
                    let place = at(GuestAddress(from.address), LEN * n);
                    let descriptor = Descriptor::read(memory, place)?;
                    Self::segment(chain, self.ring.layout.size, descriptor)?;
                }
                return Ok(());
            }
        };
        Err(RingError::Indirect { what })
    }
}

impl DeviceRing for DeviceQueue {
    fn has_avail(&self, memory: &Memory) -> Result<bool, RingError> {
        self.is_available(memory, self.next_available)
    }

    fn poll_avail(&mut self, memory: &Memory) -> Result<u16, RingError> {
        self.has_avail(memory).map(u16::from)
    }

    fn known_avail(&self) -> u16 {
        0
    }

    fn next_avail(&mut self, memory: &Memory) -> Result<Option<Chain>, RingError> {
        if !self.has_avail(memory)? {
            return Ok(None);
        }
        let size = self.ring.layout.size;
        let mut chain = Chain::default();
        let mut count = 0;
        loop {
            let place = self.next_available.plus(count, size);
            let descriptor = Descriptor::read(memory, self.ring.descriptor(place))?;
            count += 1;
            // The last one's number is the entry's.
            chain.id = descriptor.id;
            if descriptor.flags & INDIRECT != 0 {
                self.table(memory, &mut chain, descriptor)?;
                break;
            }
            Self::segment(&mut chain, size, descriptor)?;
            if descriptor.flags & NEXT == 0 {
                break;
            }
        }
        self.taken.take(chain.id, count)?;
        chain.descriptors = count;
        self.next_available = self.next_available.plus(count, size);
        Ok(Some(chain))
    }

    fn put_back_avail(&mut self, last: &Chain) {
        let count = self.taken.give_back(last.id);
        self.next_available = self.next_available.minus(count, self.ring.layout.size);
    }

    fn vring_base(&self) -> u32 {
        let bits = |place: Place| {
            let wrap = if place.wrap { super::WRAP } else { 0 };
            u32::from(place.slot | wrap)
        };
        bits(self.next_available) | bits(self.next_used) << 16
    }

    fn add_used(&mut self, memory: &Memory, id: u16, len: u32) -> Result<(), RingError> {
        let count = self.taken.give_back(id);
        if count == 0 {
            return Err(RingError::NotOutstanding { id: id.into() });
        }
        let place = self.next_used;
        self.ring.cover(memory, place, count)?;
        match self.hidden {
            // The driver looks at entries in turn: one that it cannot see hides those behind.
            Some(_) => self.ring.give_back(memory, place, id, len)?,
            None => self.hidden = Some((place, id, len)),
        }
        self.next_used = place.plus(count, self.ring.layout.size);
        self.unannounced = self.unannounced.saturating_add(count);
        Ok(())
    }

    fn publish_used(&mut self, memory: &Memory) -> Result<(), RingError> {
        if let Some((place, id, len)) = self.hidden.take() {
            self.ring.give_back(memory, place, id, len)?;
        }
        self.shown = self.unannounced;
        Ok(())
    }

    fn needs_notification(&self, memory: &Memory) -> Result<Peer, RingError> {
        let area = self.ring.layout.driver;
        self.ring.wanted(memory, area, self.next_used, self.shown)
    }

    fn notified(&mut self) {
        self.unannounced -= self.shown;
        self.shown = 0;
    }

    fn enable_notification(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError> {
        let place = self.next_available.plus(ahead, self.ring.layout.size);
        self.ring.ask(memory, self.ring.layout.device, place)?;
        self.is_available(memory, place)
    }

    fn disable_notification(&mut self, memory: &Memory) -> Result<(), RingError> {
        self.ring.hush(memory, self.ring.layout.device)
    }
}
