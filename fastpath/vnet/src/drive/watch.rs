//! What a front end sleeps on: doorbells, the socket, the port, a timer, the end.
use super::error::DriveError;
use super::handshake::Eventfds;
use crate::Ns;
use hopscope_eventloop::{Poll, Token};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Sources of events; the last two of each queue.
const STOP: u8 = 0;
const SOCKET: u8 = 1;
const TIMER: u8 = 2;
const PORT: u8 = 3;
const CALL: u8 = 4;
const ERROR: u8 = 5;

/// Which sources were ready.
#[derive(Default)]
pub(super) struct Woken {
    pub(super) stop: bool,
    pub(super) gone: bool,
    pub(super) given_up: Option<usize>,
    pub(super) port: bool,
    /// By queue.
    pub(super) called: [bool; 2],
}

pub(super) struct Watch {
    poll: Poll,
    timer: TimerFd,
    /// What the port is watched for.
    interest: EpollFlags,
}

impl Watch {
    /// # Errors
    /// The kernel has no descriptors left.
    pub(super) fn new(
        stop: BorrowedFd<'_>,
        socket: BorrowedFd<'_>,
        eventfds: [&Eventfds; 2],
        port: Option<BorrowedFd<'_>>,
    ) -> Result<Watch, DriveError> {
        let system = DriveError::system::<Errno>;
        let poll = Poll::new(8).map_err(system("watching"))?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags);
        let timer = timer.map_err(system("making a timer"))?;
        let readable = EpollFlags::EPOLLIN;
        let add = |fd: BorrowedFd<'_>, token, flags| {
            let added = poll.add(fd, token, flags);
            added.map_err(system("watching"))
        };
        add(stop, Token::of(STOP), readable)?;
        let or_gone = readable | EpollFlags::EPOLLRDHUP;
        add(socket, Token::of(SOCKET), or_gone)?;
        add(timer.as_fd(), Token::of(TIMER), readable)?;
        for (n, eventfds) in (0..).zip(eventfds) {
            // Each call wakes once, though it is read only at the end: the sum is exact.
            let once = readable | EpollFlags::EPOLLET;
            add(eventfds.call.fd(), Token::new(CALL, n), once)?;
            add(eventfds.error.fd(), Token::new(ERROR, n), readable)?;
        }
        let interest = EpollFlags::empty();
        if let Some(port) = port {
            add(port, Token::of(PORT), interest)?;
        }
        Ok(Watch {
            poll,
            timer,
            interest,
        })
    }

    /// What the port is waited for. One that is ready, and not waited for, does not wake.
    ///
    /// # Errors
    /// The port cannot be watched.
    pub(super) fn port(
        &mut self,
        port: Option<BorrowedFd<'_>>,
        receive: bool,
        send: bool,
    ) -> Result<(), DriveError> {
        let flag = |on, flag| if on { flag } else { EpollFlags::empty() };
        let interest = flag(receive, EpollFlags::EPOLLIN) | flag(send, EpollFlags::EPOLLOUT);
        if let Some(port) = port.filter(|_| interest != self.interest) {
            let watched = self.poll.modify(port, Token::of(PORT), interest);
            watched.map_err(DriveError::system("watching the port"))?;
            self.interest = interest;
        }
        Ok(())
    }

    /// Looks, without waiting.
    ///
    /// # Errors
    /// As epoll_wait(2).
    pub(super) fn look(&mut self) -> Result<Woken, DriveError> {
        self.wait(Some(Duration::ZERO))
    }

    /// Sleeps until something happens, or for `most`; 0 is not waited for.
    ///
    /// # Errors
    /// As for [`Watch::look`].
    pub(super) fn sleep(&mut self, most: Ns) -> Result<Woken, DriveError> {
        // Set anew before each sleep, so that one that is left runs out unnoticed at most once. 0 would mean none.
        let left = TimeSpec::from_duration(Duration::from_nanos(most.0.max(1)));
        self.timer
            .set(Expiration::OneShot(left), TimerSetTimeFlags::empty())
            .map_err(DriveError::system("setting a timer"))?;
        self.wait(None)
    }

    fn wait(&mut self, most: Option<Duration>) -> Result<Woken, DriveError> {
        let ready = self.poll.wait(most);
        let mut woken = Woken::default();
        for at in 0..ready.map_err(DriveError::system("waiting"))? {
            let token = self.poll.ready(at).token;
            let queue = token.key as usize;
            match token.source {
                STOP => woken.stop = true,
                SOCKET => woken.gone = true,
                PORT => woken.port = true,
                TIMER => {
                    // The deadlines themselves are looked at.
                    let _ = self.timer.wait();
                }
                CALL => woken.called[queue % 2] = true,
                _ => woken.given_up = Some(queue),
            }
        }
        Ok(woken)
    }
}
