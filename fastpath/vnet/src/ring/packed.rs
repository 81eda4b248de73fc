//! The packed virtqueue (virtio 1.3, 2.8).
//!
//! ```text
//! descriptor   le64 addr | le32 len | le16 id | le16 flags     16 bytes each, written by both ends
//! suppression  le16 offset, bit 15: wrap counter | le16 flags  one written by each end
//! ```
use super::{Features, Layout, Memory, RingError, SIZE_MAX};
use crate::policy::Peer;
use std::sync::atomic::{Ordering, fence};
use vm_memory::{AtomicAccess, Bytes, GuestAddress};

mod device;
mod driver;
mod recovered;
#[cfg(test)]
pub(super) mod stop;

pub use device::DeviceQueue;
pub use driver::DriverQueue;

const LEN: u64 = 16;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const AVAILABLE: u16 = 1 << 7;
const USED: u16 = 1 << 15;

/// `RING_EVENT_FLAGS_…` (2.8.10)
const ENABLE: u16 = 0;
const DISABLE: u16 = 1;
const AT_DESCRIPTOR: u16 = 2;
/// The address in a used descriptor, where none is needed (2.8.5): this end gave it back, and all of its chain.
const COVERED: u64 = u64::from_le_bytes(*b"hopscope");
/// The wrap counter beside an offset.
const WRAP: u16 = 1 << 15;

/// Where a fresh queue begins, as in `VHOST_USER_SET_VRING_BASE`: entry 0 of both ends, wrap counters of 1.
pub const START: u32 = 0x8000_8000;

/// A place in the ring: how far, and in which lap. Laps are told apart by one bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    slot: u16,
    wrap: bool,
}

impl Place {
    const START: Place = Place {
        slot: 0,
        wrap: true,
    };

    /// `count` is at most `size`.
    fn plus(self, count: u16, size: u16) -> Place {
        let slot = u32::from(self.slot) + u32::from(count);
        if slot < u32::from(size) {
            Place {
                slot: slot as u16,
                ..self
            }
        } else {
            Place {
                slot: (slot - u32::from(size)) as u16,
                wrap: !self.wrap,
            }
        }
    }

    /// `count` is at most `size`.
    fn minus(self, count: u16, size: u16) -> Place {
        match self.slot.checked_sub(count) {
            Some(slot) => Place { slot, ..self },
            None => Place {
                slot: (u32::from(self.slot) + u32::from(size) - u32::from(count)) as u16,
                wrap: !self.wrap,
            },
        }
    }

    /// Both marks of a descriptor that its driver made available here.
    fn available(self) -> u16 {
        if self.wrap { AVAILABLE } else { USED }
    }

    /// Both marks of a descriptor that its device used here.
    fn used(self) -> u16 {
        if self.wrap { AVAILABLE | USED } else { 0 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Ring {
    layout: Layout,
    features: Features,
}

impl Ring {
    fn new(layout: Layout, features: Features) -> Result<Ring, RingError> {
        // Any size is allowed here, not only powers of two.
        if layout.size == 0 || layout.size > SIZE_MAX {
            return Err(RingError::Size { size: layout.size });
        }
        for (part, address, align) in [
            ("descriptor ring", layout.descriptors.0, 16),
            ("driver's event suppression", layout.driver.0, 4),
            ("device's event suppression", layout.device.0, 4),
        ] {
            if !address.is_multiple_of(align) {
                return Err(RingError::Alignment {
                    part,
                    address,
                    align,
                });
            }
        }
        Ok(Ring { layout, features })
    }

    fn descriptor(&self, place: Place) -> GuestAddress {
        at(self.layout.descriptors, LEN * u64::from(place.slot))
    }

    /// The flags alone: whatever they announce is read after them.
    fn flags(&self, memory: &Memory, place: Place) -> Result<u16, RingError> {
        let address = at(self.descriptor(place), 14);
        Ok(u16::from_le(memory.load(address, Ordering::Acquire)?))
    }

    /// The flags alone: whatever they announce was written before them.
    fn set_flags(&self, memory: &Memory, place: Place, flags: u16) -> Result<(), RingError> {
        let address = at(self.descriptor(place), 14);
        put(memory, flags.to_le(), address, Ordering::Release)
    }

    /// The used descriptor of an entry. Length, number and flags are one store: a kill leaves all of them, or none.
    fn give_back(&self, memory: &Memory, place: Place, id: u16, len: u32) -> Result<(), RingError> {
        let written = if len > 0 { WRITE } else { 0 };
        let flags = place.used() | written;
        let word = u64::from(len) | u64::from(id) << 32 | u64::from(flags) << 48;
        let descriptor = self.descriptor(place);
        put(memory, COVERED.to_le(), descriptor, Ordering::Relaxed)?;
        put(memory, word.to_le(), at(descriptor, 8), Ordering::Release)
    }

    /// Marks the rest of a chain of `count` used, before its first descriptor is: it stays this end's until then, and
    /// no driver looks at it later (2.8.6). Whoever looks for the place finds no available descriptor there.
    fn cover(&self, memory: &Memory, place: Place, count: u16) -> Result<(), RingError> {
        for n in 1..count {
            let rest = place.plus(n, self.layout.size);
            let flags = self.flags(memory, rest)? & !(AVAILABLE | USED) | rest.used();
            let address = self.descriptor(rest);
            put(memory, COVERED.to_le(), address, Ordering::Relaxed)?;
            self.set_flags(memory, rest, flags)?;
        }
        Ok(())
    }

    fn marks(&self, memory: &Memory, place: Place) -> Result<u16, RingError> {
        Ok(self.flags(memory, place)? & (AVAILABLE | USED))
    }

    /// Requests in `area` a notification at `place`, if the event index was negotiated; else for each.
    fn ask(&self, memory: &Memory, area: GuestAddress, place: Place) -> Result<(), RingError> {
        let flags = if self.features.event_idx {
            let wrap = if place.wrap { WRAP } else { 0 };
            let offset: u16 = place.slot | wrap;
            memory.store(offset.to_le(), area, Ordering::Relaxed)?;
            AT_DESCRIPTOR
        } else {
            ENABLE
        };
        memory.store(flags.to_le(), at(area, 2), Ordering::Release)?;
        fence(Ordering::SeqCst);
        Ok(())
    }

    fn hush(&self, memory: &Memory, area: GuestAddress) -> Result<(), RingError> {
        Ok(memory.store(DISABLE.to_le(), at(area, 2), Ordering::Release)?)
    }

    /// Whether the peer requested in `area` a notification for the `since` descriptors before `place`.
    fn wanted(
        &self,
        memory: &Memory,
        area: GuestAddress,
        place: Place,
        since: u16,
    ) -> Result<Peer, RingError> {
        // The peer asks, then looks at the ring; we wrote to it, then look whether it asked.
        fence(Ordering::SeqCst);
        let flags = u16::from_le(memory.load(at(area, 2), Ordering::Acquire)?);
        let wanted = match flags {
            DISABLE => false,
            AT_DESCRIPTOR if self.features.event_idx => {
                let offset = u16::from_le(memory.load(area, Ordering::Relaxed)?);
                let size = self.layout.size;
                // One of the lap before counts as that much less than 0.
                let lap = if (offset & WRAP != 0) == place.wrap {
                    0
                } else {
                    size
                };
                let event = (offset & !WRAP).wrapping_sub(lap);
                let old = place.slot.wrapping_sub(since);
                since > size || super::passed(event, old, place.slot)
            }
            // Also what no specification knows: a notification too many does no harm.
            _ => true,
        };
        Ok(if wanted { Peer::Asleep } else { Peer::Awake })
    }
}

#[derive(Debug, Clone, Copy)]
struct Descriptor {
    address: u64,
    len: u32,
    id: u16,
    flags: u16,
}

impl Descriptor {
    fn read(memory: &Memory, from: GuestAddress) -> Result<Descriptor, RingError> {
        let mut bytes = [0; LEN as usize];
        memory.read_slice(&mut bytes, from)?;
        let word = u128::from_le_bytes(bytes);
        Ok(Descriptor {
            address: word as u64,
            len: (word >> 64) as u32,
            id: (word >> 96) as u16,
            flags: (word >> 112) as u16,
        })
    }

    /// All but the flags.
    fn write(self, memory: &Memory, to: GuestAddress) -> Result<(), RingError> {
        let mut bytes = [0; 14];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[12..].copy_from_slice(&self.id.to_le_bytes());
        Ok(memory.write_slice(&bytes, to)?)
    }
}

/// One store, which the other end sees whole; the tests stop before any of them.
fn put<T: AtomicAccess>(
    memory: &Memory,
    value: T,
    address: GuestAddress,
    order: Ordering,
) -> Result<(), RingError> {
    #[cfg(test)]
    stop::count()?;
    Ok(memory.store(value, address, order)?)
}

/// An address beyond the last one is in no region, and fails where it is used.
fn at(base: GuestAddress, offset: u64) -> GuestAddress {
    GuestAddress(base.0.saturating_add(offset))
}
