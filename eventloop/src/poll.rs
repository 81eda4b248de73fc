//! epoll(7), as the loops here use it.
use crate::Token;
use nix::Result;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

pub struct Poll {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

/// A source that is ready, and for what.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    pub token: Token,
    pub flags: EpollFlags,
}

impl Poll {
    /// `most`: sources that one wait returns.
    ///
    /// # Errors
    /// As epoll_create1(2).
    pub fn new(most: usize) -> Result<Poll> {
        Ok(Poll {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            events: vec![EpollEvent::empty(); most.max(1)],
        })
    }

    /// Watches a descriptor until it is closed everywhere, or removed. Flags as in epoll_ctl(2): level-triggered unless
    /// EPOLLET is among them; without any, errors and the other end's close alone.
    ///
    /// # Errors
    /// As epoll_ctl(2).
    pub fn add(&self, fd: impl AsFd, token: Token, flags: EpollFlags) -> Result<()> {
        self.epoll.add(fd, EpollEvent::new(flags, token.to_data()))
    }

    /// # Errors
    /// As epoll_ctl(2).
    pub fn modify(&self, fd: impl AsFd, token: Token, flags: EpollFlags) -> Result<()> {
        let mut event = EpollEvent::new(flags, token.to_data());
        self.epoll.modify(fd, &mut event)
    }

    /// # Errors
    /// As epoll_ctl(2).
    pub fn remove(&self, fd: impl AsFd) -> Result<()> {
        self.epoll.delete(fd)
    }

    /// How many sources are ready: at once where some are, after `most` at the latest, which is rounded up to
    /// milliseconds. A signal ends the wait with none.
    ///
    /// # Errors
    /// As epoll_wait(2).
    pub fn wait(&mut self, most: Option<Duration>) -> Result<usize> {
        match self.epoll.wait(&mut self.events, timeout(most)) {
            Err(Errno::EINTR) => Ok(0),
            ready => ready,
        }
    }

    /// One of those that the last wait found.
    pub fn ready(&self, at: usize) -> Ready {
        let event = &self.events[at];
        Ready {
            token: Token::of_data(event.data()),
            flags: event.events(),
        }
    }
}

/// Readable while a source is ready: for ppoll(2), and for a loop within another one.
impl AsFd for Poll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

/// Rounded up: the last part of a millisecond would be spun through.
fn timeout(most: Option<Duration>) -> EpollTimeout {
    const LONGEST_MS: u128 = 60_000;
    most.map_or(EpollTimeout::NONE, |most| {
        let ms = most.as_nanos().div_ceil(1_000_000).min(LONGEST_MS);
        EpollTimeout::from(ms as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::eventfd::EventFd;

    #[test]
    fn a_source_is_known_by_its_token() {
        let mut poll = Poll::new(4).unwrap();
        let (one, two) = (EventFd::new().unwrap(), EventFd::new().unwrap());
        poll.add(&one, Token::of(1), EpollFlags::EPOLLIN).unwrap();
        poll.add(&two, Token::new(2, 7), EpollFlags::empty())
            .unwrap();
        one.write(1).unwrap();
        two.write(1).unwrap();
        assert_eq!(poll.wait(None), Ok(1), "the other is watched for nothing");
        assert_eq!(poll.ready(0).token, Token::of(1));
        poll.remove(&one).unwrap();
        poll.modify(&two, Token::new(2, 8), EpollFlags::EPOLLIN)
            .unwrap();
        assert_eq!(poll.wait(Some(Duration::ZERO)), Ok(1));
        assert_eq!(poll.ready(0).token, Token::new(2, 8));
    }

    #[test]
    fn waits_are_rounded_up() {
        assert_eq!(timeout(None), EpollTimeout::NONE);
        assert_eq!(timeout(Some(Duration::ZERO)), EpollTimeout::ZERO);
        assert_eq!(
            timeout(Some(Duration::from_nanos(1))),
            EpollTimeout::from(1u8)
        );
        assert_eq!(timeout(Some(Duration::MAX)), EpollTimeout::from(60_000u16));
    }
}
