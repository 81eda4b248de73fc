//! Waiting for sockets and for the next intended time at once.
use super::LoadError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::time::Duration;

/// The end of a wait is not slept through but looked for: a sleeping thread is woken some tens of
/// microseconds late, and that would be counted as latency.
pub(super) const SPIN_NS: u64 = 60_000;

/// No wait is longer, so that stopping and requests that wait too long are seen.
const LOOK_MS: u16 = 20;
pub(super) const LOOK_NS: u64 = LOOK_MS as u64 * 1_000_000;

pub(super) struct Waiter {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Waiter {
    pub(super) fn new(capacity: usize) -> Result<Waiter, LoadError> {
        let what = LoadError::system("cannot make an epoll descriptor");
        // The kernel wakes a thread up to 50 us late to save power, unless told not to. Refused
        // only by policies that forbid prctl; then requests leave later and are counted as such.
        let _ = nix::sys::prctl::set_timerslack(1);
        Ok(Waiter {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(what)?,
            events: vec![EpollEvent::empty(); capacity.clamp(1, 1024)],
        })
    }

    pub(super) fn add(&self, fd: impl AsFd, key: u64, flags: EpollFlags) -> Result<(), Errno> {
        self.epoll.add(fd, EpollEvent::new(flags, key))
    }

    pub(super) fn change(&self, fd: impl AsFd, key: u64, flags: EpollFlags) -> Result<(), Errno> {
        self.epoll.modify(fd, &mut EpollEvent::new(flags, key))
    }

    pub(super) fn remove(&self, fd: impl AsFd) -> Result<(), Errno> {
        self.epoll.delete(fd)
    }

    /// How many sockets are ready; none after `for_ns` at the latest, where that is said.
    pub(super) fn wait(&mut self, for_ns: Option<u64>) -> Result<usize, LoadError> {
        let what = LoadError::system("cannot wait for sockets");
        let Some(for_ns) = for_ns.filter(|ns| *ns < LOOK_NS) else {
            // No intended time is near: milliseconds are exact enough, and one call does it.
            return match self
                .epoll
                .wait(&mut self.events, EpollTimeout::from(LOOK_MS))
            {
                Err(Errno::EINTR) => Ok(0),
                ready => ready.map_err(what),
            };
        };
        if for_ns > SPIN_NS {
            let time = Duration::from_nanos(for_ns - SPIN_NS);
            let mut fds = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(time)), None) {
                // A signal: the caller looks whether it should stop.
                Ok(0) | Err(Errno::EINTR) => return Ok(0),
                Ok(_) => {}
                Err(errno) => return Err(what(errno)),
            }
        }
        let ready = self.epoll.wait(&mut self.events, EpollTimeout::ZERO);
        ready.map_err(what)
    }

    /// Key and state of a ready socket.
    pub(super) fn event(&self, at: usize) -> (u64, EpollFlags) {
        (self.events[at].data(), self.events[at].events())
    }
}
