//! Waiting for sockets and for the next intended time at once.
use super::LoadError;
use hopscope_eventloop::{Poll, Ready, Token};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::EpollFlags;
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::time::Duration;

/// The end of a wait is not slept through but looked for: a sleeping thread is woken some tens of
/// microseconds late, and that would be counted as latency.
pub(super) const SPIN_NS: u64 = 60_000;

/// No wait is longer, so that stopping and requests that wait too long are seen.
const LOOK: Duration = Duration::from_millis(20);
pub(super) const LOOK_NS: u64 = LOOK.as_nanos() as u64;

/// Sources of events: connections, and a server's listener.
const CONNECTION: u8 = 0;
pub(super) const LISTENER: Token = Token::of(1);

pub(super) struct Waiter {
    poll: Poll,
}

impl Waiter {
    pub(super) fn new(capacity: usize) -> Result<Waiter, LoadError> {
        let what = LoadError::system("cannot make an epoll descriptor");
        // The kernel wakes a thread up to 50 us late to save power, unless told not to. Refused
        // only by policies that forbid prctl; then requests leave later and are counted as such.
        let _ = nix::sys::prctl::set_timerslack(1);
        Ok(Waiter {
            poll: Poll::new(capacity.min(1024)).map_err(what)?,
        })
    }

    pub(super) fn listen(&self, listener: impl AsFd) -> Result<(), Errno> {
        self.poll.add(listener, LISTENER, EpollFlags::EPOLLIN)
    }

    pub(super) fn add(&self, fd: impl AsFd, key: u64, flags: EpollFlags) -> Result<(), Errno> {
        self.poll.add(fd, Token::new(CONNECTION, key), flags)
    }

    pub(super) fn change(&self, fd: impl AsFd, key: u64, flags: EpollFlags) -> Result<(), Errno> {
        self.poll.modify(fd, Token::new(CONNECTION, key), flags)
    }

    pub(super) fn remove(&self, fd: impl AsFd) -> Result<(), Errno> {
        self.poll.remove(fd)
    }

    /// How many sockets are ready; none after `for_ns` at the latest, where that is said.
    pub(super) fn wait(&mut self, for_ns: Option<u64>) -> Result<usize, LoadError> {
        let what = LoadError::system("cannot wait for sockets");
        let Some(for_ns) = for_ns.filter(|ns| *ns < LOOK_NS) else {
            // No intended time is near: milliseconds are exact enough, and one call does it.
            return self.poll.wait(Some(LOOK)).map_err(what);
        };
        if for_ns > SPIN_NS {
            let time = Duration::from_nanos(for_ns - SPIN_NS);
            let mut fds = [PollFd::new(self.poll.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(time)), None) {
                // A signal: the caller looks whether it should stop.
                Ok(0) | Err(Errno::EINTR) => return Ok(0),
                Ok(_) => {}
                Err(errno) => return Err(what(errno)),
            }
        }
        self.poll.wait(Some(Duration::ZERO)).map_err(what)
    }

    pub(super) fn ready(&self, at: usize) -> Ready {
        self.poll.ready(at)
    }

    /// Key and state of a ready connection.
    pub(super) fn event(&self, at: usize) -> (u64, EpollFlags) {
        let ready = self.poll.ready(at);
        (ready.token.key, ready.flags)
    }
}
