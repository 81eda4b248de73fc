//! Which pages of a process were written since they were last read: asynchronous write protection
//! by userfaultfd, read back by `PAGEMAP_SCAN` (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst).
//!
//! The descriptor is made in the target, taken out of it and closed there at once. The kernel lifts
//! the protection of a page by itself at its first write, and of all pages when the descriptor is
//! closed: also when hopscope is killed.
use super::{AttachError, StoppedProcess, memfd};
use nix::libc;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

/// `struct uffdio_api`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_writeprotect`.
#[repr(C)]
struct WriteProtect {
    start: u64,
    len: u64,
    mode: u64,
}

/// `struct page_region`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `_IOWR(kind, number, struct of size bytes)`, asm-generic/ioctl.h.
const fn iowr(kind: u8, number: u8, size: usize) -> u64 {
    3 << 30 | (size as u64) << 16 | (kind as u64) << 8 | number as u64
}

// linux/userfaultfd.h
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: u64 = iowr(0xaa, 0x3f, size_of::<Api>());
const UFFDIO_REGISTER: u64 = iowr(0xaa, 0x00, size_of::<Register>());
const UFFDIO_WRITEPROTECT: u64 = iowr(0xaa, 0x06, size_of::<WriteProtect>());
const UFFD_USER_MODE_ONLY: u64 = 1;
const FEATURE_WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const REGISTER_MODE_WP: u64 = 2;
const WRITEPROTECT_MODE_WP: u64 = 1;
// linux/fs.h
const PAGEMAP_SCAN: u64 = iowr(b'f', 16, size_of::<Scan>());
const PAGE_IS_WRITTEN: u64 = 1 << 1;
const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_GUARD: u64 = 1 << 8;

/// What of a mapping is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    All,
    /// Only what the process does not share with a file.
    Anonymous,
}

pub struct WriteTrack {
    uffd: OwnedFd,
    pagemap: File,
    protected: Mutex<Vec<Range<u64>>>,
}

/// Regions that one scan returns at most.
const REGIONS: usize = 512;
/// The protection is lifted in parts: the target's own page faults go between them.
const LIFTED_AT_ONCE: u64 = 16 << 20;

impl WriteTrack {
    /// # Errors
    /// Where kernel, configuration or a seccomp filter do not let it; the target is as it was.
    pub fn begin(stopped: &mut StoppedProcess) -> Result<WriteTrack, AttachError> {
        let pid = stopped.pid();
        let failed = |source| AttachError::Memory { pid, source };
        let holder = super::procfs::memory_holder(pid);
        let pagemap = File::open(format!("/proc/{holder}/pagemap")).map_err(failed)?;
        let flags = libc::O_CLOEXEC as u64 | libc::O_NONBLOCK as u64 | UFFD_USER_MODE_ONLY;
        let fd = stopped.remote_call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0])?;
        if fd < 0 {
            return Err(failed(io::Error::from_raw_os_error(-fd as i32)));
        }
        let tid = stopped.tids().first().copied().unwrap_or(pid);
        let taken = taken(pid, tid, fd as u64);
        stopped.remote_call(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0])?;
        let track = WriteTrack {
            uffd: taken.map_err(failed)?,
            pagemap,
            protected: Mutex::default(),
        };
        let mut api = Api {
            api: UFFD_API,
            features: FEATURE_WP_ASYNC | FEATURE_WP_HUGETLBFS_SHMEM,
            ioctls: 0,
        };
        track.control(UFFDIO_API, &mut api).map_err(failed)?;
        Ok(track)
    }

    fn control<T>(&self, request: u64, argument: &mut T) -> io::Result<i32> {
        control(self.uffd.as_raw_fd(), request, argument)
    }

    /// Lets the pages of a whole mapping be protected.
    pub fn register(&self, range: &Range<u64>) -> io::Result<()> {
        let mut register = Register {
            start: range.start,
            len: range.end - range.start,
            mode: REGISTER_MODE_WP,
            ioctls: 0,
        };
        self.control(UFFDIO_REGISTER, &mut register).map(drop)
    }

    /// From here on the pages of a registered range count as not written.
    pub fn protect(&self, range: &Range<u64>) -> io::Result<()> {
        self.write_protect(range, WRITEPROTECT_MODE_WP)?;
        let mut protected = self.protected.lock().expect("no panic while it is held");
        match protected.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => protected.push(range.clone()),
        }
        Ok(())
    }

    fn write_protect(&self, range: &Range<u64>, mode: u64) -> io::Result<()> {
        let mut protect = WriteProtect {
            start: range.start,
            len: range.end - range.start,
            mode,
        };
        self.control(UFFDIO_WRITEPROTECT, &mut protect).map(drop)
    }

    /// Runs of pages in `range` that hold anything and are not protected, ascending.
    pub fn written(&self, range: &Range<u64>, pages: Pages) -> io::Result<Vec<Range<u64>>> {
        let mut regions = [Region::default(); REGIONS];
        let mut runs: Vec<Range<u64>> = Vec::new();
        let file = match pages {
            Pages::All => 0,
            Pages::Anonymous => PAGE_IS_FILE,
        };
        let mut guard = PAGE_IS_GUARD;
        let mut at = range.start;
        while at < range.end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags: 0,
                start: at,
                end: range.end,
                walk_end: 0,
                vec: regions.as_mut_ptr() as u64,
                vec_len: REGIONS as u64,
                max_pages: 0,
                category_inverted: file,
                category_mask: PAGE_IS_WRITTEN | file,
                category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
                return_mask: PAGE_IS_WRITTEN | guard,
            };
            let found = match control(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, &mut scan) {
                // Linux before 6.15 does not know the category.
                Err(e) if guard != 0 && e.raw_os_error() == Some(libc::EINVAL) => {
                    guard = 0;
                    continue;
                }
                found => found?,
            };
            for region in &regions[..(found as usize).min(REGIONS)] {
                if region.categories & PAGE_IS_GUARD != 0 {
                    continue; // cannot be read
                }
                match runs.last_mut() {
                    Some(run) if run.end == region.start => run.end = region.end,
                    _ => runs.push(region.start..region.end),
                }
            }
            if scan.walk_end <= at {
                break;
            }
            at = scan.walk_end;
        }
        Ok(runs)
    }
}

impl Drop for WriteTrack {
    /// Closing lifts all that is left in one go, during which the target cannot map memory.
    fn drop(&mut self) {
        let protected = self.protected.get_mut().expect("no panic while it is held");
        for range in std::mem::take(protected) {
            for start in (range.start..range.end).step_by(LIFTED_AT_ONCE as usize) {
                let part = start..range.end.min(start + LIFTED_AT_ONCE);
                // Unmapped meanwhile, or the process is gone.
                let _ = self.write_protect(&part, 0);
            }
        }
    }
}

/// Our copy of a userfaultfd that a thread has just made; another thread may have put something else in its place.
fn taken(pid: i32, tid: i32, fd: u64) -> io::Result<OwnedFd> {
    let copy = memfd::copy_of(pid, tid, fd)?;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", copy.as_raw_fd()))?;
    match link.to_str() == Some("anon_inode:[userfaultfd]") {
        true => Ok(copy),
        false => Err(io::Error::other(
            "the descriptor is of no userfaultfd: something in the target replaced it",
        )),
    }
}

fn control<T>(fd: i32, request: u64, argument: &mut T) -> io::Result<i32> {
    // SAFETY: every caller passes the structure that its request reads and writes, whose size is
    // part of the request's number; pointers in it are to live memory of the size it names.
    let r = unsafe { libc::ioctl(fd, request as _, argument as *mut T) };
    match r {
        -1 => Err(io::Error::last_os_error()),
        r => Ok(r),
    }
}
