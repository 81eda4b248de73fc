//! The memory that both ends share: a sealed memfd with rings and buffers of one front end.
use super::error::DriveError;
use crate::ring::{Layout, Memory};
use crate::vhost::{QueueAddress, Region};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use vm_memory::{FileOffset, GuestAddress, GuestRegionMmap};

/// Of the region in the back end's view of the guest; not 0, so that a forgotten translation is seen.
const GUEST: u64 = 1 << 32;
const PAGE: u64 = 4096;

/// Where one queue's parts and buffers go.
pub(super) struct Place {
    pub(super) layout: Layout,
    /// As many buffers as entries, one behind the other.
    pub(super) buffers: GuestAddress,
    pub(super) buffer_len: u32,
}

pub(super) struct Arena {
    pub(super) memory: Memory,
    file: File,
    len: u64,
}

impl Arena {
    /// Room for two queues of `size` entries, whose buffers have `buffer_lens` bytes each.
    ///
    /// # Errors
    /// The kernel has no such memory.
    pub(super) fn new(size: u16, buffer_lens: [u32; 2]) -> Result<(Arena, [Place; 2]), DriveError> {
        let mut next = 0;
        let mut take = |len: u64| {
            let at = GuestAddress(GUEST + next);
            next += len.next_multiple_of(PAGE);
            at
        };
        let entries = u64::from(size);
        let places = buffer_lens.map(|buffer_len| Place {
            layout: Layout {
                size,
                // The longer of both layouts' parts (virtio 1.3, 2.7 and 2.8).
                descriptors: take(16 * entries),
                driver: take(6 + 2 * entries),
                device: take(6 + 8 * entries),
            },
            buffers: take(u64::from(buffer_len) * entries),
            buffer_len,
        });
        let system = DriveError::system::<nix::errno::Errno>;
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = memfd_create("hopscope-vnet", flags).map_err(system("making shared memory"))?;
        let file = File::from(file);
        file.set_len(next)
            .map_err(DriveError::system("making shared memory"))?;
        // Neither end can take the other's memory away under its feet.
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(system("sealing shared memory"))?;
        let mapped = file
            .try_clone()
            .map_err(DriveError::system("mapping shared memory"))?;
        let region = GuestRegionMmap::from_range(
            GuestAddress(GUEST),
            next as usize,
            Some(FileOffset::new(mapped, 0)),
        );
        let memory = region.ok().and_then(|r| Memory::from_regions(vec![r]).ok());
        let memory = memory.ok_or_else(|| {
            DriveError::system("mapping shared memory")(std::io::Error::last_os_error())
        })?;
        let len = next;
        Ok((Arena { memory, file, len }, places))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// As the back end is told. There is no need for it to know where this process has the memory: the same
    /// numbers do for both.
    pub(super) fn region(&self) -> Region {
        Region {
            guest: GUEST,
            len: self.len,
            user: GUEST,
            offset: 0,
        }
    }
}

/// A queue's parts by the addresses of [`Arena::region`].
pub(super) fn address(queue: u32, layout: Layout) -> QueueAddress {
    QueueAddress {
        queue,
        descriptors: layout.descriptors.0,
        used: layout.device.0,
        available: layout.driver.0,
    }
}
