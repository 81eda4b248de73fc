//! Memory mappings.
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Readable and writable, unmapped on drop.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: memory is not bound to a thread; who may touch which bytes when is up to the owner.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Shared with the kernel, present from the start so that no fault falls into a measurement.
    pub(super) fn shared(fd: BorrowedFd<'_>, offset: i64, len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Mapping::new(fd.as_raw_fd(), flags, offset, len)
    }

    /// Zeroed and private to this process.
    pub(super) fn anonymous(len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Mapping::new(-1, flags, 0, len)
    }

    fn new(fd: i32, flags: i32, offset: i64, len: usize) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(at.cast()).expect("the kernel maps nothing at zero");
        Ok(Mapping { start, len })
    }

    /// # Panics
    /// When `offset..offset + len` is not within the mapping.
    pub(super) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len),
            "within the mapping"
        );
        // SAFETY: just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing borrowed from it outlives it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
