//! The guest's memory, mapped from the descriptors of `SET_MEM_TABLE`.
use super::error::Broken;
use crate::ring::Memory;
use crate::vhost::Region;
use std::fs::File;
use std::os::fd::OwnedFd;
use vm_memory::{FileOffset, GuestAddress, GuestRegionMmap};

/// # Errors
/// A region that its file does not have, or that cannot be mapped.
pub(super) fn map(regions: &[Region], files: Vec<OwnedFd>) -> Result<Memory, Broken> {
    let mut mapped = Vec::new();
    for (n, (region, file)) in regions.iter().zip(files).enumerate() {
        let Region { len, offset, .. } = *region;
        let refused = |why: String| Broken::Map {
            n,
            len,
            offset,
            why,
        };
        let file = File::from(file);
        let file_len = file.metadata().map_err(|e| refused(e.to_string()))?.len();
        // What is beyond a file's end can be mapped; to touch it is a SIGBUS.
        if offset.checked_add(len).is_none_or(|end| end > file_len) {
            return Err(refused(format!("its file has {file_len:#x} bytes")));
        }
        let size = usize::try_from(len).map_err(|e| refused(e.to_string()))?;
        let at = GuestAddress(region.guest);
        let file = FileOffset::new(file, offset);
        let one = GuestRegionMmap::from_range(at, size, Some(file));
        mapped.push((region.guest, one.map_err(|e| refused(e.to_string()))?));
    }
    mapped.sort_by_key(|(guest, _)| *guest);
    let mapped = mapped.into_iter().map(|(_, region)| region).collect();
    Memory::from_regions(mapped).map_err(|e| Broken::Map {
        n: 0,
        len: 0,
        offset: 0,
        why: e.to_string(),
    })
}
