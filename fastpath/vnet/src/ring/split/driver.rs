//! The driver's end: makes chains available, reclaims used ones, enables notifications.
use super::descriptor::{Descriptor, INDIRECT, LEN, NEXT, WRITE};
use super::{Fields, NO_NOTIFICATION, at, load, store};
use crate::policy::Peer;
use crate::ring::{DriverRing, Features, Layout, Memory, RingError, Segment, passed};
use std::sync::atomic::{Ordering, fence};
use vm_memory::{Bytes, GuestAddress};

pub struct DriverQueue {
    fields: Fields,
    features: Features,
    /// Free descriptors, the next to be used last.
    free: Vec<u16>,
    /// By head: descriptors of an entry that the device has; 0: it has none that begins there.
    outstanding: Vec<u16>,
    /// By descriptor of such an entry: the one behind it. What the device could have changed is not asked.
    links: Vec<u16>,
    /// Of the available ring: published up to here.
    published: u16,
    announced: u16,
    /// The next entry of the used ring to be taken.
    next_used: u16,
}

impl DriverQueue {
    /// # Errors
    /// A size or an alignment that no queue has; the rings are not in the memory.
    pub fn new(
        memory: &Memory,
        layout: Layout,
        features: Features,
    ) -> Result<DriverQueue, RingError> {
        let fields = Fields::new(layout)?;
        for field in [
            fields.available_flags(),
            fields.available_index(),
            fields.used_event(),
            fields.used_flags(),
            fields.used_index(),
            fields.available_event(),
        ] {
            store(memory, field, 0)?;
        }
        Ok(DriverQueue {
            fields,
            features,
            free: (0..layout.size).rev().collect(),
            outstanding: vec![0; layout.size.into()],
            links: vec![0; layout.size.into()],
            published: 0,
            announced: 0,
            next_used: 0,
        })
    }

    /// As [`DriverQueue::add`], with the descriptors in a table at `table`, which the caller keeps until
    /// the entry is back. Takes one descriptor of the ring.
    ///
    /// # Errors
    /// No free descriptor, no segments, or indirect tables were not negotiated.
    pub fn add_indirect(
        &mut self,
        memory: &Memory,
        segments: &[Segment],
        table: GuestAddress,
    ) -> Result<u16, RingError> {
        if !self.features.indirect {
            let what = "was not negotiated";
            return Err(RingError::Indirect { what });
        }
        if segments.is_empty() {
            return Err(RingError::Empty);
        }
        let head = self
            .free
            .pop()
            .ok_or(RingError::Full { asked: 1, free: 0 })?;
        for (n, segment) in segments.iter().enumerate() {
            let next = (n + 1 < segments.len()).then_some(n as u16 + 1);
            to_descriptor(segment, next).write(memory, at(table, LEN * n as u64))?;
        }
        let descriptor = Descriptor {
            address: table.0,
            len: LEN as u32 * segments.len() as u32,
            flags: INDIRECT,
            next: 0,
        };
        descriptor.write(memory, self.descriptor(head))?;
        self.offer(memory, head, 1)?;
        Ok(head)
    }

    fn descriptor(&self, index: u16) -> GuestAddress {
        at(self.fields.0.descriptors, LEN * u64::from(index))
    }

    fn offer(&mut self, memory: &Memory, head: u16, count: u16) -> Result<(), RingError> {
        let entry = self.fields.available_entry(self.published);
        memory.store(head.to_le(), entry, Ordering::Relaxed)?;
        self.published = self.published.wrapping_add(1);
        store(memory, self.fields.available_index(), self.published)?;
        self.outstanding[usize::from(head)] = count;
        Ok(())
    }
}

impl DriverRing for DriverQueue {
    fn free_descriptors(&self) -> u16 {
        self.free.len() as u16
    }

    fn add_avail(&mut self, memory: &Memory, segments: &[Segment]) -> Result<u16, RingError> {
        let asked = segments.len();
        if asked > self.free.len() {
            let free = self.free_descriptors();
            return Err(RingError::Full { asked, free });
        }
        let left = self.free.len() - asked;
        let head = *self.free[left..].last().ok_or(RingError::Empty)?;
        // The last one is the head: written in the order in which the device follows.
        for (n, segment) in segments.iter().enumerate() {
            let index = self.free[left + asked - 1 - n];
            let next = (n + 1 < asked).then(|| self.free[left + asked - 2 - n]);
            self.links[usize::from(index)] = next.unwrap_or(0);
            let descriptor = to_descriptor(segment, next);
            descriptor.write(memory, self.descriptor(index))?;
        }
        self.free.truncate(left);
        self.offer(memory, head, asked as u16)?;
        Ok(head)
    }

    fn next_used(&mut self, memory: &Memory) -> Result<Option<(u16, u32)>, RingError> {
        let index = load(memory, self.fields.used_index(), Ordering::Acquire)?;
        let size = self.fields.size();
        match index.wrapping_sub(self.next_used) {
            0 => return Ok(None),
            ahead if ahead <= size => {}
            _ => {
                let (from, to) = (self.next_used, index);
                return Err(RingError::IndexJump { from, to, size });
            }
        }
        let mut entry = [0; 8];
        memory.read_slice(&mut entry, self.fields.used_entry(self.next_used))?;
        let [i0, i1, i2, i3, l0, l1, l2, l3] = entry;
        let id = u32::from_le_bytes([i0, i1, i2, i3]);
        let count = self.outstanding.get_mut(id as usize);
        let count = count.map(std::mem::take).unwrap_or(0);
        if count == 0 {
            return Err(RingError::NotOutstanding { id });
        }
        let (before, mut index) = (self.free.len(), id as u16);
        for _ in 0..count {
            self.free.push(index);
            index = self.links[usize::from(index)];
        }
        self.free[before..].reverse();
        self.next_used = self.next_used.wrapping_add(1);
        // Checked above: it is the number of an entry.
        Ok(Some((id as u16, u32::from_le_bytes([l0, l1, l2, l3]))))
    }

    fn needs_notification(&self, memory: &Memory) -> Result<Peer, RingError> {
        fence(Ordering::SeqCst);
        let wanted = if self.features.event_idx {
            let event = load(memory, self.fields.available_event(), Ordering::Relaxed)?;
            passed(event, self.announced, self.published)
        } else {
            let flags = load(memory, self.fields.used_flags(), Ordering::Relaxed)?;
            flags & NO_NOTIFICATION == 0
        };
        Ok(if wanted { Peer::Asleep } else { Peer::Awake })
    }

    fn notified(&mut self) {
        self.announced = self.published;
    }

    fn enable_notification(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError> {
        if self.features.event_idx {
            let event = self.next_used.wrapping_add(ahead);
            store(memory, self.fields.used_event(), event)?;
        } else {
            store(memory, self.fields.available_flags(), 0)?
        }
        fence(Ordering::SeqCst);
        let index = load(memory, self.fields.used_index(), Ordering::Acquire)?;
        Ok(index.wrapping_sub(self.next_used) > ahead)
    }

    fn disable_notification(&mut self, memory: &Memory) -> Result<(), RingError> {
        if self.features.event_idx {
            Ok(())
        } else {
            store(memory, self.fields.available_flags(), NO_NOTIFICATION)
        }
    }
}

fn to_descriptor(segment: &Segment, next: Option<u16>) -> Descriptor {
    let link = if next.is_some() { NEXT } else { 0 };
    let write = if segment.writable { WRITE } else { 0 };
    Descriptor {
        address: segment.address.0,
        len: segment.len,
        flags: link | write,
        next: next.unwrap_or(0),
    }
}
