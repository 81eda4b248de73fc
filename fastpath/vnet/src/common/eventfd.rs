//! Eventfds between the two ends: kicks (available-buffer notifications) are read from one, calls (used-buffer
//! notifications) written to another.
//!
//! O_NONBLOCK belongs to the description that both ends share: a front end may take it away at any moment, also between
//! a look and a write. [`watchdog`] ends such a wait.
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod watchdog;

use watchdog::Watched;

#[derive(Debug, thiserror::Error)]
pub enum EventfdError {
    #[error("the descriptor of queue {queue} is not an eventfd but {what}")]
    NoEventfd { queue: usize, what: String },
    #[error("an eventfd blocked: the other end cleared O_NONBLOCK")]
    Waits,
    #[error("{0}")]
    Io(#[from] io::Error),
}

pub(crate) struct Eventfd(Arc<Watched>);

impl Eventfd {
    /// # Errors
    /// A descriptor of anything else: reading it could wait for ever, or mean something else.
    pub(crate) fn new(queue: usize, descriptor: OwnedFd) -> Result<Eventfd, EventfdError> {
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let what = std::fs::read_link(link)?;
        if what.as_os_str() != "anon_inode:[eventfd]" {
            let what = what.display().to_string();
            return Err(EventfdError::NoEventfd { queue, what });
        }
        let eventfd = Arc::new(Watched::new(descriptor.into()));
        do_not_wait(&eventfd.file)?;
        watchdog::add(&eventfd)?;
        Ok(Eventfd(eventfd))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// Notifications since the last call: the kernel adds them up, so the sum is exact.
    ///
    /// # Errors
    /// As read(2); [`EventfdError::Waits`].
    pub(crate) fn take(&self) -> Result<u64, EventfdError> {
        let mut count = [0; 8];
        match self.within(false, |mut file| file.read_exact(&mut count))? {
            Ok(()) => Ok(u64::from_ne_bytes(count)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
                _ => Err(error.into()),
            },
        }
    }

    /// # Errors
    /// As write(2); [`EventfdError::Waits`]. One that is full is one that nobody reads, and it is signalled.
    pub(crate) fn signal(&self) -> Result<(), EventfdError> {
        match self.within(true, |mut file| file.write_all(&1u64.to_ne_bytes()))? {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What may wait, watched.
    fn within<T>(&self, writes: bool, act: impl FnOnce(&File) -> T) -> Result<T, EventfdError> {
        self.0.writes.store(writes, Ordering::Relaxed);
        self.0.turns.fetch_add(1, Ordering::Relaxed);
        let done = act(&self.0.file);
        self.0.turns.fetch_add(1, Ordering::Relaxed);
        if self.0.waited.load(Ordering::Relaxed) {
            return Err(EventfdError::Waits);
        }
        Ok(done)
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

    /// One whose description the other end made one that waits, after this end took it.
    fn taken_back(value: u64) -> Eventfd {
        let eventfd = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).unwrap();
        eventfd.write(value).unwrap();
        let theirs = eventfd.as_fd().try_clone_to_owned().unwrap();
        let bell = Eventfd::new(0, eventfd.into()).unwrap();
        fcntl(&theirs, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        bell
    }

    #[test]
    fn a_full_one_that_waits_is_not_waited_for() {
        let eventfd = taken_back(u64::MAX - 1);
        assert!(matches!(eventfd.signal(), Err(EventfdError::Waits)));
    }

    /// A thread without a processor is within its call for long, too: nobody took the flag away.
    #[test]
    fn a_call_that_takes_long_does_not_wait() {
        let eventfd = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).unwrap();
        let bell = Eventfd::new(0, eventfd.into()).unwrap();
        bell.within(false, |_| watchdog::look_often(5)).unwrap();
        bell.within(true, |_| watchdog::look_often(100)).unwrap();
        bell.signal().unwrap();
        bell.within(false, |_| watchdog::look_often(100)).unwrap();
    }

    #[test]
    fn an_empty_one_that_waits_is_not_waited_for() {
        let eventfd = taken_back(1);
        assert_eq!(eventfd.take().unwrap(), 1);
        assert!(matches!(eventfd.take(), Err(EventfdError::Waits)));
    }
}
