//! Eventfds of the front end: kicks are read from one, calls written to another.
//!
//! O_NONBLOCK belongs to the description that both ends share: a front end may take it away at any moment, also between
//! a look and a write. [`watch`] ends such a wait.
use super::error::Broken;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod watch;

use watch::Watched;

pub(crate) struct Bell(Arc<Watched>);

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
        let bell = Arc::new(Watched::new(descriptor.into()));
        do_not_wait(&bell.file)?;
        watch::add(&bell)?;
        Ok(Bell(bell))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// How often it was rung since it was last asked: the kernel adds up, so the sum is exact.
    ///
    /// # Errors
    /// As read(2); [`Broken::Waits`].
    pub(crate) fn rung(&self) -> Result<u64, Broken> {
        let mut count = [0; 8];
        match self.within(|mut file| file.read_exact(&mut count))? {
            Ok(()) => Ok(u64::from_ne_bytes(count)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
                _ => Err(error.into()),
            },
        }
    }

    /// # Errors
    /// As write(2); [`Broken::Waits`]. One that is full is one that nobody reads, and it has rung.
    pub(crate) fn ring(&self) -> Result<(), Broken> {
        match self.within(|mut file| file.write_all(&1u64.to_ne_bytes()))? {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What may wait, watched.
    fn within<T>(&self, act: impl FnOnce(&File) -> T) -> Result<T, Broken> {
        self.0.turns.fetch_add(1, Ordering::Relaxed);
        let done = act(&self.0.file);
        self.0.turns.fetch_add(1, Ordering::Relaxed);
        match self.0.waited.load(Ordering::Relaxed) {
            true => Err(Broken::Waits),
            false => Ok(done),
        }
    }
}

fn do_not_wait(file: &File) -> io::Result<()> {
    let flags = fcntl(file, FcntlArg::F_GETFL)?;
    let flags = OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK;
    fcntl(file, FcntlArg::F_SETFL(flags))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::eventfd::{EfdFlags, EventFd};

    /// A bell whose description the other end made one that waits, after this end took it.
    fn taken_back(value: u64) -> Bell {
        let eventfd = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).unwrap();
        eventfd.write(value).unwrap();
        let theirs = eventfd.as_fd().try_clone_to_owned().unwrap();
        let bell = Bell::new(0, eventfd.into()).unwrap();
        fcntl(&theirs, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        bell
    }

    #[test]
    fn a_full_bell_that_waits_is_not_waited_for() {
        let bell = taken_back(u64::MAX - 1);
        assert!(matches!(bell.ring(), Err(Broken::Waits)));
    }

    #[test]
    fn an_empty_bell_that_waits_is_not_waited_for() {
        let bell = taken_back(1);
        assert_eq!(bell.rung().unwrap(), 1);
        assert!(matches!(bell.rung(), Err(Broken::Waits)));
    }
}
