//! The driver's end: puts chains into the ring, takes them back in the device's order.
use super::{AVAILABLE, Descriptor, NEXT, Place, Ring, USED, WRITE, at};
use crate::policy::Peer;
use crate::ring::{DriverRing, Features, Layout, Memory, RingError, Segment};
use vm_memory::Bytes;

pub struct DriverQueue {
    ring: Ring,
    next_available: Place,
    next_used: Place,
    /// Numbers that no entry has, the next to be used last.
    ids: Vec<u16>,
    /// By number: descriptors of an entry that the device has; 0: it has none of that number.
    outstanding: Vec<u16>,
    free: u16,
    /// Descriptors made available since the device was kicked.
    unannounced: u16,
}

impl DriverQueue {
    /// # Errors
    /// A size or an alignment that no queue has; the ring is not in the memory.
    pub fn new(
        memory: &Memory,
        layout: Layout,
        features: Features,
    ) -> Result<DriverQueue, RingError> {
        let ring = Ring::new(layout, features)?;
        let zeros = vec![0; usize::from(layout.size) * super::LEN as usize];
        memory.write_slice(&zeros, layout.descriptors)?;
        for area in [layout.driver, layout.device] {
            memory.write_slice(&[0; 4], area)?;
            memory.write_slice(&[0; 2], at(area, 2))?;
        }
        Ok(DriverQueue {
            ring,
            next_available: Place::START,
            next_used: Place::START,
            ids: (0..layout.size).rev().collect(),
            outstanding: vec![0; layout.size.into()],
            free: layout.size,
            unannounced: 0,
        })
    }

    fn is_used(&self, memory: &Memory, place: Place) -> Result<bool, RingError> {
        Ok(self.ring.marks(memory, place)? == place.used())
    }
}

impl DriverRing for DriverQueue {
    fn free_descriptors(&self) -> u16 {
        self.free
    }

    fn add_avail(&mut self, memory: &Memory, segments: &[Segment]) -> Result<u16, RingError> {
        let (asked, free) = (segments.len(), self.free);
        if asked > usize::from(free) {
            return Err(RingError::Full { asked, free });
        }
        let last = asked.checked_sub(1).ok_or(RingError::Empty)?;
        // As many numbers as descriptors: one is left.
        let id = self.ids.pop().ok_or(RingError::Full { asked, free })?;
        let size = self.ring.layout.size;
        let mut head = 0;
        for (n, segment) in segments.iter().enumerate() {
            let place = self.next_available.plus(n as u16, size);
            let next = if n < last { NEXT } else { 0 };
            let write = if segment.writable { WRITE } else { 0 };
            let flags = next | write | place.available();
            debug_assert_ne!(flags & (AVAILABLE | USED), AVAILABLE | USED);
            let descriptor = Descriptor {
                address: segment.address.0,
                len: segment.len,
                id,
                flags,
            };
            descriptor.write(memory, self.ring.descriptor(place))?;
            // 2.8.21.1: the first one's flags show the whole chain, so they come last.
            match n {
                0 => head = flags,
                _ => self.ring.set_flags(memory, place, flags)?,
            }
        }
        self.ring.set_flags(memory, self.next_available, head)?;
        let count = asked as u16;
        self.next_available = self.next_available.plus(count, size);
        self.outstanding[usize::from(id)] = count;
        self.free -= count;
        self.unannounced = self.unannounced.saturating_add(count);
        Ok(id)
    }

    fn next_used(&mut self, memory: &Memory) -> Result<Option<(u16, u32)>, RingError> {
        if !self.is_used(memory, self.next_used)? {
            return Ok(None);
        }
        let used = Descriptor::read(memory, self.ring.descriptor(self.next_used))?;
        let outstanding = self.outstanding.get_mut(usize::from(used.id));
        let count = outstanding.map(std::mem::take).unwrap_or(0);
        if count == 0 {
            return Err(RingError::NotOutstanding { id: used.id.into() });
        }
        self.next_used = self.next_used.plus(count, self.ring.layout.size);
        self.free += count;
        self.ids.push(used.id);
        Ok(Some((used.id, used.len)))
    }

    fn needs_notification(&self, memory: &Memory) -> Result<Peer, RingError> {
        let area = self.ring.layout.device;
        self.ring
            .wanted(memory, area, self.next_available, self.unannounced)
    }

    fn notified(&mut self) {
        self.unannounced = 0;
    }

    fn enable_notification(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError> {
        let place = self.next_used.plus(ahead, self.ring.layout.size);
        self.ring.ask(memory, self.ring.layout.driver, place)?;
        self.is_used(memory, place)
    }

    fn disable_notification(&mut self, memory: &Memory) -> Result<(), RingError> {
        self.ring.hush(memory, self.ring.layout.driver)
    }
}
