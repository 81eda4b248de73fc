//! What a front end sleeps on: doorbells, the socket, the port, a timer, the end.
use super::error::DriveError;
use super::handshake::Eventfds;
use crate::Ns;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::BorrowedFd;
use std::time::Duration;

const STOP: u64 = 0;
const SOCKET: u64 = 1;
const TIMER: u64 = 2;
const PORT: u64 = 3;
const CALL: u64 = 4;
/// And one for each queue.
const ERROR: u64 = 8;

/// What there was to be seen.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) stop: bool,
    pub(super) gone: bool,
    pub(super) given_up: Option<usize>,
    pub(super) port: bool,
    /// By queue.
    pub(super) called: [bool; 2],
}

pub(super) struct Watch {
    epoll: Epoll,
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
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system("watching"))?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags);
        let timer = timer.map_err(system("making a timer"))?;
        let readable = EpollFlags::EPOLLIN;
        let add = |fd: BorrowedFd<'_>, flags, token| {
            let added = epoll.add(fd, EpollEvent::new(flags, token));
            added.map_err(system("watching"))
        };
        add(stop, readable, STOP)?;
        add(socket, readable | EpollFlags::EPOLLRDHUP, SOCKET)?;
        epoll
            .add(&timer, EpollEvent::new(readable, TIMER))
            .map_err(system("watching the timer"))?;
        for (n, eventfds) in (0..).zip(eventfds) {
            // Each call wakes once, though it is read only at the end: the sum is exact.
            add(eventfds.call.fd(), readable | EpollFlags::EPOLLET, CALL + n)?;
            add(eventfds.error.fd(), readable, ERROR + n)?;
        }
        let interest = EpollFlags::empty();
        if let Some(port) = port {
            add(port, interest, PORT)?;
        }
        Ok(Watch {
            epoll,
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
            let mut event = EpollEvent::new(interest, PORT);
            let watched = self.epoll.modify(port, &mut event);
            watched.map_err(DriveError::system("watching the port"))?;
            self.interest = interest;
        }
        Ok(())
    }

    /// Looks, without waiting.
    ///
    /// # Errors
    /// As epoll_wait(2).
    pub(super) fn look(&mut self) -> Result<Seen, DriveError> {
        self.wait(EpollTimeout::ZERO)
    }

    /// Sleeps until something happens, or for `most`; 0 is not waited for.
    ///
    /// # Errors
    /// As for [`Watch::look`].
    pub(super) fn sleep(&mut self, most: Ns) -> Result<Seen, DriveError> {
        // Set anew before each sleep, so that one that is left runs out unnoticed at most once. 0 would mean none.
        let left = TimeSpec::from_duration(Duration::from_nanos(most.0.max(1)));
        self.timer
            .set(Expiration::OneShot(left), TimerSetTimeFlags::empty())
            .map_err(DriveError::system("setting a timer"))?;
        self.wait(EpollTimeout::NONE)
    }

    fn wait(&mut self, timeout: EpollTimeout) -> Result<Seen, DriveError> {
        let mut events = [EpollEvent::empty(); 8];
        let ready = match self.epoll.wait(&mut events, timeout) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(DriveError::system("waiting")(errno)),
        };
        let mut seen = Seen::default();
        for event in &events[..ready] {
            match event.data() {
                STOP => seen.stop = true,
                SOCKET => seen.gone = true,
                PORT => seen.port = true,
                TIMER => {
                    // The deadlines themselves are looked at.
                    let _ = self.timer.wait();
                }
                n if n < ERROR => seen.called[(n - CALL) as usize % 2] = true,
                n => seen.given_up = Some((n - ERROR) as usize),
            }
        }
        Ok(seen)
    }
}
