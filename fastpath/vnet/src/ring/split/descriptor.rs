//! From a descriptor to the chain that begins there.
use super::at;
use crate::ring::{Chain, Features, INDIRECT_MAX, Memory, RingError, Segment};
use vm_memory::{Bytes, GuestAddress};

pub(super) const LEN: u64 = 16;
pub(super) const NEXT: u16 = 1;
pub(super) const WRITE: u16 = 2;
pub(super) const INDIRECT: u16 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) flags: u16,
    pub(super) next: u16,
}

impl Descriptor {
    pub(super) fn read(memory: &Memory, address: GuestAddress) -> Result<Descriptor, RingError> {
        let mut bytes = [0; LEN as usize];
        memory.read_slice(&mut bytes, address)?;
        let word = u128::from_le_bytes(bytes);
        Ok(Descriptor {
            address: word as u64,
            len: (word >> 64) as u32,
            flags: (word >> 96) as u16,
            next: (word >> 112) as u16,
        })
    }

    pub(super) fn write(self, memory: &Memory, address: GuestAddress) -> Result<(), RingError> {
        let mut bytes = [0; LEN as usize];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.flags.to_le_bytes());
        bytes[14..].copy_from_slice(&self.next.to_le_bytes());
        Ok(memory.write_slice(&bytes, address)?)
    }
}

/// A table of descriptors: the queue's, or an indirect one.
#[derive(Clone, Copy)]
struct Table {
    address: GuestAddress,
    size: u32,
}

impl Table {
    fn get(self, memory: &Memory, index: u32) -> Result<Descriptor, RingError> {
        if index >= self.size {
            let size = self.size;
            return Err(RingError::OutOfTable { index, size });
        }
        Descriptor::read(memory, at(self.address, LEN * u64::from(index)))
    }
}

/// Follows the chain at `head`: at most `size` descriptors, whatever the driver wrote.
pub(super) fn chain(
    memory: &Memory,
    descriptors: GuestAddress,
    size: u16,
    features: Features,
    head: u16,
) -> Result<Chain, RingError> {
    let mut table = Table {
        address: descriptors,
        size: size.into(),
    };
    let mut index = u32::from(head);
    let mut indirect = false;
    let mut chain = Chain {
        id: head,
        ..Chain::default()
    };
    loop {
        let descriptor = table.get(memory, index)?;
        if !indirect {
            // A loop longer than this ends below, at `size` segments.
            chain.descriptors = chain.descriptors.saturating_add(1);
        }
        if descriptor.flags & INDIRECT != 0 {
            // 2.7.5.3.1: negotiated, not within another, and the last of its chain. One at the end of
            // a chain of direct ones is allowed there.
            let refused = |what| Err(RingError::Indirect { what });
            match () {
                () if !features.indirect => return refused("was not negotiated"),
                () if indirect => return refused("within another"),
                () if descriptor.flags & NEXT != 0 => return refused("with a next descriptor"),
                () if descriptor.len == 0 => return refused("without descriptors"),
                () if !u64::from(descriptor.len).is_multiple_of(LEN) => {
                    return refused("whose length is no multiple of 16");
                }
                () if u64::from(descriptor.len) > LEN * INDIRECT_MAX => {
                    return refused("of more than 1024 descriptors");
                }
                () => {}
            }
            indirect = true;
            table = Table {
                address: GuestAddress(descriptor.address),
                size: descriptor.len / LEN as u32,
            };
            index = 0;
            continue;
        }
        let writable = descriptor.flags & WRITE != 0;
        if !writable && chain.segments.last().is_some_and(|last| last.writable) {
            return Err(RingError::Order);
        }
        if chain.segments.len() >= usize::from(size) {
            return Err(RingError::TooLong { size });
        }
        chain.segments.push(Segment {
            address: GuestAddress(descriptor.address),
            len: descriptor.len,
            writable,
        });
        if descriptor.flags & NEXT == 0 {
            return Ok(chain);
        }
        index = descriptor.next.into();
    }
}
