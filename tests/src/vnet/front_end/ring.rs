//! Both layouts of a queue of the front end, as bytes of its file (virtio 1.3, 2.7 and 2.8).
use super::ENTRIES;
use anyhow::{Result, ensure};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Of the packed ring's descriptors.
const AVAILABLE: u16 = 1 << 7;
const USED: u16 = 1 << 15;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
/// From the descriptors on: the available ring, or the driver's event suppression.
pub(super) const DRIVER: u64 = 0x1000;
/// The used ring, or the device's event suppression.
pub(super) const DEVICE: u64 = 0x2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vnet) enum Layout {
    Split,
    Packed,
}

/// A buffer of the file.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) writable: bool,
}

impl Layout {
    /// Where a fresh queue begins, for `SET_VRING_BASE`.
    pub(super) fn start(self) -> u32 {
        match self {
            Layout::Split => 0,
            Layout::Packed => 0x8000_8000,
        }
    }

    /// Entry `n` since the queue's begin, in the ring at `ring`.
    pub(super) fn add(self, memory: &File, ring: u64, n: u16, buffer: Buffer) -> Result<()> {
        let slot = n % ENTRIES;
        let flags = if buffer.writable { WRITE } else { 0 };
        let mut descriptor = buffer.at.to_le_bytes().to_vec();
        descriptor.extend(buffer.len.to_le_bytes());
        let place = ring + 16 * u64::from(slot);
        if self == Layout::Packed {
            descriptor.extend(slot.to_le_bytes());
            memory.write_all_at(&descriptor, place)?;
            let flags = flags | if wraps(n) { USED } else { AVAILABLE };
            memory.write_all_at(&flags.to_le_bytes(), place + 14)?;
            return Ok(());
        }
        chain(
            memory,
            ring,
            slot,
            &[(buffer.at, buffer.len)],
            buffer.writable,
        )?;
        offer(memory, ring, n, slot)
    }

    /// How many of `added` entries are used, in their order.
    pub(super) fn used(self, memory: &File, ring: u64, added: u16) -> Result<u16> {
        if self == Layout::Split {
            return load(memory, ring + DEVICE + 2);
        }
        ensure!(added <= 2 * ENTRIES, "of the laps before nothing is known");
        let mut used = added.saturating_sub(ENTRIES);
        while used < added {
            let flags = load(memory, ring + 16 * u64::from(used % ENTRIES) + 14)?;
            let marks = if wraps(used) { 0 } else { AVAILABLE | USED };
            if flags & (AVAILABLE | USED) != marks {
                break;
            }
            used += 1;
        }
        Ok(used)
    }
}

/// Split descriptors from `head` on, one for each buffer.
pub(super) fn chain(
    memory: &File,
    ring: u64,
    head: u16,
    parts: &[(u64, u32)],
    writable: bool,
) -> Result<()> {
    for (n, (at, len)) in (0u16..).zip(parts) {
        let next = (head + n + 1) % ENTRIES;
        let follows = usize::from(n) + 1 < parts.len();
        let flags = if writable { WRITE } else { 0 } | if follows { NEXT } else { 0 };
        let mut descriptor = at.to_le_bytes().to_vec();
        descriptor.extend(len.to_le_bytes());
        descriptor.extend([flags.to_le_bytes(), next.to_le_bytes()].concat());
        let slot = u64::from((head + n) % ENTRIES);
        memory.write_all_at(&descriptor, ring + 16 * slot)?;
    }
    Ok(())
}

/// Entry `n` of the available ring since the queue's begin.
pub(super) fn offer(memory: &File, ring: u64, n: u16, head: u16) -> Result<()> {
    let entry = ring + DRIVER + 4 + 2 * u64::from(n % ENTRIES);
    memory.write_all_at(&head.to_le_bytes(), entry)?;
    let index = n.wrapping_add(1).to_le_bytes();
    Ok(memory.write_all_at(&index, ring + DRIVER + 2)?)
}

pub(super) fn used_entry(memory: &File, ring: u64, n: u16) -> Result<(u32, u32)> {
    let mut entry = [0; 8];
    let at = ring + DEVICE + 4 + 8 * u64::from(n % ENTRIES);
    memory.read_exact_at(&mut entry, at)?;
    let [a, b, c, d, e, f, g, h] = entry;
    Ok((
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    ))
}

/// Whether entry `n` is of a lap whose wrap counter is 0.
fn wraps(n: u16) -> bool {
    n / ENTRIES % 2 == 1
}

fn load(memory: &File, at: u64) -> Result<u16> {
    let mut word = [0; 2];
    memory.read_exact_at(&mut word, at)?;
    Ok(u16::from_le_bytes(word))
}
