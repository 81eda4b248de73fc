//! The split virtqueue (virtio 1.3, 2.7).
//!
//! ```text
//! descriptor  le64 addr | le32 len | le16 flags | le16 next        16 bytes each
//! available   le16 flags | le16 idx | le16 ring[size] | le16 used_event
//! used        le16 flags | le16 idx | { le32 id | le32 len }[size] | le16 avail_event
//! ```
use super::{Layout, Memory, RingError, SIZE_MAX};
use std::sync::atomic::Ordering;
use vm_memory::{Bytes, GuestAddress};

mod descriptor;
mod device;
mod driver;

pub use device::DeviceQueue;
pub use driver::DriverQueue;

/// Bit 0 of both rings' flags: `VIRTQ_AVAIL_F_NO_INTERRUPT`, `VIRTQ_USED_F_NO_NOTIFY`.
const NO_NOTIFICATION: u16 = 1;

/// Addresses of the fields, and their checked access.
#[derive(Debug, Clone, Copy)]
struct Fields(Layout);

impl Fields {
    fn new(layout: Layout) -> Result<Fields, RingError> {
        if !layout.size.is_power_of_two() || layout.size > SIZE_MAX {
            return Err(RingError::Size { size: layout.size });
        }
        for (part, address, align) in [
            ("descriptor table", layout.descriptors, 16),
            ("available ring", layout.driver, 2),
            ("used ring", layout.device, 4),
        ] {
            let address = address.0;
            if !address.is_multiple_of(align) {
                return Err(RingError::Alignment {
                    part,
                    address,
                    align,
                });
            }
        }
        Ok(Fields(layout))
    }

    fn size(self) -> u16 {
        self.0.size
    }

    fn slot(self, index: u16) -> u64 {
        u64::from(index & (self.0.size - 1))
    }

    fn available_flags(self) -> GuestAddress {
        self.0.driver
    }

    fn available_index(self) -> GuestAddress {
        at(self.0.driver, 2)
    }

    fn available_entry(self, index: u16) -> GuestAddress {
        at(self.0.driver, 4 + 2 * self.slot(index))
    }

    fn used_event(self) -> GuestAddress {
        at(self.0.driver, 4 + 2 * u64::from(self.0.size))
    }

    fn used_flags(self) -> GuestAddress {
        self.0.device
    }

    fn used_index(self) -> GuestAddress {
        at(self.0.device, 2)
    }

    fn used_entry(self, index: u16) -> GuestAddress {
        at(self.0.device, 4 + 8 * self.slot(index))
    }

    fn available_event(self) -> GuestAddress {
        at(self.0.device, 4 + 8 * u64::from(self.0.size))
    }
}

/// An address beyond the last one is in no region, and fails where it is used.
fn at(base: GuestAddress, offset: u64) -> GuestAddress {
    GuestAddress(base.0.saturating_add(offset))
}

fn load(memory: &Memory, address: GuestAddress, order: Ordering) -> Result<u16, RingError> {
    Ok(u16::from_le(memory.load(address, order)?))
}

fn store(memory: &Memory, address: GuestAddress, value: u16) -> Result<(), RingError> {
    // Whatever was written before is there for whoever sees this.
    Ok(memory.store(value.to_le(), address, Ordering::Release)?)
}
