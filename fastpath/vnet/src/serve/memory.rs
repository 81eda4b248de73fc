//! The guest's memory, mapped from the descriptors of `SET_MEM_TABLE`.
use super::error::Broken;
use super::sigbus::Watched;
use crate::ring::Memory;
use crate::vhost::Region;
use nix::sys::statfs::{HUGETLBFS_MAGIC, fstatfs};
use std::fs::File;
use std::os::fd::OwnedFd;
use vm_memory::{FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryRegion, GuestRegionMmap};

/// Memory, and whether it is still there.
#[derive(Default)]
pub(super) struct Mapped {
    // Not watched any more before it is unmapped: fields go in this order.
    watched: Vec<(Told, Watched)>,
    pub(super) memory: Memory,
}

/// A region as the front end told it.
#[derive(Debug, Clone, Copy)]
struct Told {
    n: usize,
    region: Region,
}

impl Told {
    fn refused(self, why: impl ToString) -> Broken {
        let (n, Region { len, offset, .. }, why) = (self.n, self.region, why.to_string());
        Broken::Map {
            n,
            len,
            offset,
            why,
        }
    }
}

/// # Errors
/// A region that its file does not have, or that cannot be mapped.
pub(super) fn map(regions: &[Region], files: Vec<OwnedFd>) -> Result<Mapped, Broken> {
    let (mut mapped, mut watched) = (Vec::new(), Vec::new());
    for (n, (region, file)) in regions.iter().zip(files).enumerate() {
        let told = Told { n, region: *region };
        let one = map_one(told, file.into())?;
        let watch = Watched::new(one.as_ptr(), one.size()).map_err(|e| told.refused(e))?;
        watched.push((told, watch));
        mapped.push((region.guest, one));
    }
    mapped.sort_by_key(|(guest, _)| *guest);
    let mapped = mapped.into_iter().map(|(_, region)| region).collect();
    let memory = Memory::from_regions(mapped).map_err(|e| Broken::Map {
        n: 0,
        len: 0,
        offset: 0,
        why: e.to_string(),
    })?;
    Ok(Mapped { watched, memory })
}

fn map_one(told: Told, file: File) -> Result<GuestRegionMmap, Broken> {
    let Region {
        guest, len, offset, ..
    } = told.region;
    let file_len = file.metadata().map_err(|e| told.refused(e))?.len();
    // What is beyond a file's end can be mapped; to touch it is a SIGBUS.
    if offset.checked_add(len).is_none_or(|end| end > file_len) {
        return Err(told.refused(format!("its file has {file_len:#x} bytes")));
    }
    let page_len = page_len(&file).map_err(|e| told.refused(e))?;
    // The kernel maps whole pages from whole pages on; of huge ones it unmaps nothing less.
    let whole = |value: u64| value.is_multiple_of(page_len);
    if !whole(offset) || page_len > SMALL_PAGE && !whole(len) {
        let why =
            format!("its file has pages of {page_len:#x} bytes, and it is not made of whole ones");
        return Err(told.refused(why));
    }
    let size = usize::try_from(len).map_err(|e| told.refused(e))?;
    let file = FileOffset::new(file, offset);
    GuestRegionMmap::from_range(GuestAddress(guest), size, Some(file)).map_err(|e| told.refused(e))
}

const SMALL_PAGE: u64 = 4096;

fn page_len(file: &File) -> nix::Result<u64> {
    let there = fstatfs(file)?;
    Ok(if there.filesystem_type() == HUGETLBFS_MAGIC {
        there.block_size() as u64
    } else {
        SMALL_PAGE
    })
}

impl Mapped {
    /// Why nothing of it can be used any more.
    pub(super) fn vanished(&self) -> Option<Broken> {
        let mut watched = self.watched.iter();
        let (told, _) = watched.find(|(_, watch)| watch.has_vanished())?;
        let region = self.memory.find_region(GuestAddress(told.region.guest))?;
        let file_len = region
            .file_offset()
            .and_then(|file| file.file().metadata().ok());
        let file_len = file_len.map_or(0, |file| file.len());
        let why = if file_len < told.region.offset + told.region.len {
            format!("its file was cut to {file_len:#x} bytes while it was in use")
        } else {
            "the system had no page left for it".into()
        };
        Some(told.refused(why))
    }
}
