//! The device's end: takes available chains, returns them used, enables kicks, and tells whether the driver needs a notification.
use super::{Fields, NO_NOTIFICATION, descriptor, load, store};
use crate::policy::Peer;
use crate::ring::in_flight::InFlight;
use crate::ring::{Chain, DeviceRing, Features, Layout, Memory, RingError, passed};
use std::sync::atomic::{Ordering, fence};
use vm_memory::Bytes;

pub struct DeviceQueue {
    fields: Fields,
    features: Features,
    taken: InFlight,
    /// The next entry of the available ring to be taken.
    next_available: u16,
    /// The driver's index as it was found last.
    found: u16,
    /// Of the used ring: written up to here.
    next_used: u16,
    /// Of the used ring: seen by the driver up to here.
    published: u16,
    /// Of the used ring: announced, or left to a driver that looks, up to here.
    announced: u16,
}

impl DeviceQueue {
    /// `base`: the next entry to be taken, of both rings (`VHOST_USER_SET_VRING_BASE`).
    ///
    /// # Errors
    /// A size or an alignment that no queue has.
    pub fn new(layout: Layout, features: Features, base: u16) -> Result<DeviceQueue, RingError> {
        Ok(DeviceQueue {
            fields: Fields::new(layout)?,
            features,
            taken: InFlight::new(layout.size),
            next_available: base,
            found: base,
            next_used: base,
            published: base,
            announced: base,
        })
    }

    /// After a restart in the midst: what the driver has seen as used is where this end goes on.
    ///
    /// # Errors
    /// The used ring is not in the guest's memory.
    pub fn resume(&mut self, memory: &Memory) -> Result<(), RingError> {
        let used = load(memory, self.fields.used_index(), Ordering::Acquire)?;
        (self.next_used, self.published) = (used, used);
        // Whether the driver was called for any of them nobody knows: an event in the last lap counts.
        self.announced = used.wrapping_sub(self.fields.size());
        Ok(())
    }

    /// Entries that could be taken now.
    ///
    /// # Errors
    /// An index that is further ahead than the queue is long.
    pub fn available(&self, memory: &Memory) -> Result<u16, RingError> {
        let index = load(memory, self.fields.available_index(), Ordering::Acquire)?;
        let ahead = index.wrapping_sub(self.next_available);
        if ahead <= self.fields.size() {
            Ok(ahead)
        } else {
            Err(RingError::IndexJump {
                from: self.next_available,
                to: index,
                size: self.fields.size(),
            })
        }
    }
}

impl DeviceRing for DeviceQueue {
    fn has_avail(&self, memory: &Memory) -> Result<bool, RingError> {
        Ok(self.available(memory)? > 0)
    }

    fn poll_avail(&mut self, memory: &Memory) -> Result<u16, RingError> {
        let ahead = self.available(memory)?;
        self.found = self.next_available.wrapping_add(ahead);
        Ok(ahead)
    }

    fn known_avail(&self) -> u16 {
        self.found.wrapping_sub(self.next_available)
    }

    fn next_avail(&mut self, memory: &Memory) -> Result<Option<Chain>, RingError> {
        if self.poll_avail(memory)? == 0 {
            return Ok(None);
        }
        let entry = self.fields.available_entry(self.next_available);
        // The index above was read first.
        let head = load(memory, entry, Ordering::Relaxed)?;
        let layout = self.fields.0;
        let chain =
            descriptor::chain(memory, layout.descriptors, layout.size, self.features, head)?;
        self.taken.take(chain.id, chain.descriptors)?;
        self.next_available = self.next_available.wrapping_add(1);
        Ok(Some(chain))
    }

    fn put_back_avail(&mut self, last: &Chain) {
        self.taken.give_back(last.id);
        self.next_available = self.next_available.wrapping_sub(1);
    }

    fn vring_base(&self) -> u32 {
        self.next_available.into()
    }

    fn add_used(&mut self, memory: &Memory, id: u16, len: u32) -> Result<(), RingError> {
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(id).to_le_bytes());
        entry[4..].copy_from_slice(&len.to_le_bytes());
        memory.write_slice(&entry, self.fields.used_entry(self.next_used))?;
        self.next_used = self.next_used.wrapping_add(1);
        self.taken.give_back(id);
        Ok(())
    }

    fn publish_used(&mut self, memory: &Memory) -> Result<(), RingError> {
        store(memory, self.fields.used_index(), self.next_used)?;
        self.published = self.next_used;
        Ok(())
    }

    fn needs_notification(&self, memory: &Memory) -> Result<Peer, RingError> {
        // The driver asks, then looks for used entries; we publish, then look whether it asked.
        fence(Ordering::SeqCst);
        let wanted = if self.features.event_idx {
            let event = load(memory, self.fields.used_event(), Ordering::Relaxed)?;
            passed(event, self.announced, self.published)
        } else {
            let flags = load(memory, self.fields.available_flags(), Ordering::Relaxed)?;
            flags & NO_NOTIFICATION == 0
        };
        Ok(if wanted { Peer::Asleep } else { Peer::Awake })
    }

    fn notified(&mut self) {
        self.announced = self.published;
    }

    fn enable_notification(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError> {
        if self.features.event_idx {
            let event = self.next_available.wrapping_add(ahead);
            store(memory, self.fields.available_event(), event)?;
        } else {
            store(memory, self.fields.used_flags(), 0)?
        }
        fence(Ordering::SeqCst);
        Ok(self.available(memory)? > ahead)
    }

    fn disable_notification(&mut self, memory: &Memory) -> Result<(), RingError> {
        if self.features.event_idx {
            Ok(())
        } else {
            store(memory, self.fields.used_flags(), NO_NOTIFICATION)
        }
    }
}
