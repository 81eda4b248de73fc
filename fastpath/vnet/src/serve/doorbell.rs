//! Eventfds of the front end: kicks are read from one, calls written to another.
use super::error::Broken;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

pub(crate) struct Bell(File);

impl Bell {
    /// # Errors
    /// A descriptor of anything else: reading it could wait for ever, or mean something else.
    pub(crate) fn new(queue: usize, descriptor: OwnedFd) -> Result<Bell, Broken> {
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let what = std::fs::read_link(link)?;
        if what.as_os_str() != "anon_inode:[eventfd]" {
            let what = what.display().to_string();
            return Err(Broken::NoEventfd { queue, what });
        }
        let flags = fcntl(&descriptor, FcntlArg::F_GETFL).map_err(std::io::Error::from)?;
        let flags = OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK;
        fcntl(&descriptor, FcntlArg::F_SETFL(flags)).map_err(std::io::Error::from)?;
        Ok(Bell(descriptor.into()))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// How often it was rung since it was last asked: the kernel adds up, so the sum is exact.
    ///
    /// # Errors
    /// As read(2).
    pub(crate) fn rung(&self) -> Result<u64, Broken> {
        let mut count = [0; 8];
        match (&self.0).read_exact(&mut count) {
            Ok(()) => Ok(u64::from_ne_bytes(count)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
                _ => Err(error.into()),
            },
        }
    }

    /// # Errors
    /// As write(2). One that is full is one that nobody reads, and it has rung.
    pub(crate) fn ring(&self) -> Result<(), Broken> {
        match (&self.0).write_all(&1u64.to_ne_bytes()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
