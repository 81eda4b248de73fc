//! What is mapped at one address, without reading the whole memory map: with thousands of threads
//! that takes milliseconds, which a stopped target would wait for.
use nix::libc;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// `struct procmap_query` (linux/fs.h), Linux 6.11.
#[derive(Default)]
#[repr(C)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

const _: () = assert!(size_of::<Query>() == 104);

/// _IOWR(PROCFS_IOCTL_MAGIC, 17, struct procmap_query)
const PROCMAP_QUERY: libc::c_ulong = 0xc068_6611;

/// A mapping, as far as it is asked for here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vma {
    pub range: Range<u64>,
    pub offset: u64,
    pub inode: u64,
}

/// What `maps`, an open `/proc/PID/maps`, has at `address`; `None` when nothing is there.
///
/// # Errors
/// ENOTTY from kernels that do not know the question.
pub fn at(maps: &File, address: u64) -> io::Result<Option<Vma>> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        query_addr: address,
        ..Query::default()
    };
    // SAFETY: the structure is live, of the size it says, and the only thing that is written; it
    // names no further memory.
    let done = unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) };
    if done == 0 {
        return Ok(Some(Vma {
            range: query.vma_start..query.vma_end,
            offset: query.vma_offset,
            inode: query.inode,
        }));
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        e => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_the_memory_map_says() {
        let maps = File::open("/proc/self/maps").unwrap();
        let here = it_says_what_the_memory_map_says as fn() as usize as u64;
        let found = match at(&maps, here) {
            Err(e) if e.raw_os_error() == Some(libc::ENOTTY) => return,
            other => other.unwrap().unwrap(),
        };
        let whole = crate::maps::read(std::process::id() as i32).unwrap();
        let same = whole.iter().find(|m| m.range == found.range).unwrap();
        assert_eq!((same.offset, same.inode), (found.offset, found.inode));
        assert!(found.range.contains(&here));
        assert_eq!(at(&maps, 0).unwrap(), None);
    }
}
