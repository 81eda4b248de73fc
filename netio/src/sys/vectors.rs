//! `readv` and `writev` of one frame: a header of this process, then parts of memory that others write.
use nix::libc;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use vm_memory::VolatileSlice;

/// Of memory of others, in one call: the kernel takes `UIO_MAXIOV` of all together, and a header and a rest are ours.
pub const PARTS_MAX: usize = libc::UIO_MAXIOV as usize - 2;

/// Kept from call to call: no frame costs an allocation.
#[derive(Default)]
pub(crate) struct Vectors(Vec<libc::iovec>);

// SAFETY: the pointers are written anew by each call, and not used after it.
unsafe impl Send for Vectors {}

fn of(start: *mut u8, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast(),
        iov_len: len,
    }
}

impl Vectors {
    fn begin(&mut self, header: *mut u8, len: usize, parts: &[VolatileSlice<'_>]) -> libc::c_int {
        self.0.clear();
        self.0.push(of(header, len));
        let parts = parts.iter().take(PARTS_MAX);
        // Mapped for as long as the slices live, and those outlive the call; that they do not exist any more (a
        // file that was cut) the kernel finds out, as EFAULT.
        self.0
            .extend(parts.map(|part| of(part.ptr_guard_mut().as_ptr(), part.len())));
        self.0.len() as libc::c_int
    }

    /// # Errors
    /// As writev(2).
    pub(crate) fn write(
        &mut self,
        to: &File,
        header: &[u8],
        parts: &[VolatileSlice<'_>],
    ) -> io::Result<usize> {
        let count = self.begin(header.as_ptr().cast_mut(), header.len(), parts);
        // SAFETY: the kernel only reads, from `header` and from mapped memory of which this process has no reference.
        let written = unsafe { libc::writev(to.as_raw_fd(), self.0.as_ptr(), count) };
        length(written)
    }

    /// # Errors
    /// As readv(2).
    pub(crate) fn read(
        &mut self,
        from: &File,
        header: &mut [u8],
        parts: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> io::Result<usize> {
        let count = self.begin(header.as_mut_ptr(), header.len(), parts);
        self.0.push(of(rest.as_mut_ptr(), rest.len()));
        // SAFETY: the kernel writes `header` and `rest`, which are borrowed for that, and mapped memory of which this
        // process has no reference.
        let read = unsafe { libc::readv(from.as_raw_fd(), self.0.as_ptr(), count + 1) };
        length(read)
    }
}

fn length(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::os::fd::OwnedFd;
    use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryRegion, GuestRegionMmap};

    const LEN: usize = 0x2000;

    fn guest() -> (File, GuestRegionMmap) {
        let file = File::from(memfd_create("guest", MFdFlags::MFD_CLOEXEC).expect("memory"));
        file.set_len(LEN as u64).expect("room");
        let mapped = FileOffset::new(file.try_clone().expect("a descriptor"), 0);
        let region = GuestRegionMmap::from_range(GuestAddress(0), LEN, Some(mapped));
        (file, region.expect("mapped"))
    }

    fn pipe() -> [File; 2] {
        let (read, write) = std::io::pipe().expect("a pipe");
        [OwnedFd::from(read), OwnedFd::from(write)].map(File::from)
    }

    #[test]
    fn a_frame_goes_there_and_back_in_pieces() {
        let (_file, guest) = guest();
        let all = guest.as_volatile_slice().expect("mapped");
        all.write_slice(b"abcdef", 100).expect("inside");
        let part = |at, len| all.subslice(at, len).expect("inside");
        let [from, to] = pipe();
        let mut vectors = Vectors::default();
        let parts = [part(100, 2), part(50, 0), part(102, 4)];
        assert_eq!(vectors.write(&to, b"12", &parts).expect("room"), 8);
        let (mut header, mut rest) = ([0; 2], [0; 9]);
        let parts = [part(4090, 1), part(0, 2)];
        let read = vectors.read(&from, &mut header, &parts, &mut rest);
        assert_eq!(
            (read.expect("there"), &header, &rest[..4]),
            (8, b"12", &b"def\0"[..])
        );
        let mut pieces = [0; 3];
        all.read_slice(&mut pieces[..1], 4090).expect("inside");
        all.read_slice(&mut pieces[1..], 0).expect("inside");
        assert_eq!(&pieces, b"abc");
    }

    #[test]
    fn memory_that_went_away_is_an_error_and_no_signal() {
        let (file, guest) = guest();
        let all = guest.as_volatile_slice().expect("mapped");
        file.set_len(0x1000).expect("shorter");
        let gone = [all.subslice(0x1000, 8).expect("mapped")];
        let [from, mut to] = pipe();
        let mut vectors = Vectors::default();
        let fault = |result: io::Result<usize>| result.expect_err("gone").raw_os_error();
        assert_eq!(fault(vectors.write(&to, &[], &gone)), Some(libc::EFAULT));
        io::Write::write_all(&mut to, b"abc").expect("room");
        let read = vectors.read(&from, &mut [], &gone, &mut []);
        assert_eq!(fault(read), Some(libc::EFAULT));
    }
}
