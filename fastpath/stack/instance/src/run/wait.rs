//! How the loop sleeps: until a deadline to the microsecond, and until the port has room.
use crate::{InstanceError, Ns};
use hopscope_eventloop::{Poll, Token};
use hopscope_netio::PacketIo;
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::time::Duration;

/// Shorter waits are spent looking: a timer that wakes a thread comes some 50 us late.
const SPIN: Ns = Ns::from_us(60);

pub(super) struct Wait {
    timer: TimerFd,
    /// When the timer rings. Deadlines mostly move away: it is set anew when it has rung, or would be late.
    set_to: Option<Ns>,
    watches_room: bool,
}

impl Wait {
    pub(super) fn new(poll: &Poll, source: u8) -> Result<Wait, InstanceError> {
        let system = InstanceError::system::<Errno>;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags);
        let timer = timer.map_err(system("making a timer"))?;
        poll.add(&timer, Token::of(source), EpollFlags::EPOLLIN)
            .map_err(system("watching the timer"))?;
        Ok(Wait {
            timer,
            set_to: None,
            watches_room: false,
        })
    }

    /// The longest that may be slept; the timer rings at the deadline.
    pub(super) fn until(
        &mut self,
        now: Ns,
        deadline: Option<Ns>,
    ) -> Result<Option<Duration>, InstanceError> {
        let Some(deadline) = deadline else {
            return Ok(None);
        };
        let left = deadline.since(now);
        if left < SPIN {
            return Ok(Some(Duration::ZERO));
        }
        if self.set_to.is_none_or(|at| at > deadline || at <= now) {
            let left = TimeSpec::from_duration(Duration::from_nanos(left.0));
            self.timer
                .set(Expiration::OneShot(left), TimerSetTimeFlags::empty())
                .map_err(InstanceError::system("setting a timer"))?;
            self.set_to = Some(deadline);
        }
        Ok(None)
    }

    pub(super) fn rang(&mut self) {
        // Not yet, or already: the deadlines themselves are looked at.
        let _ = self.timer.wait();
        self.set_to = None;
    }

    /// Frames wait in the port: wake up when it has room for them.
    pub(super) fn for_room(
        &mut self,
        poll: &Poll,
        port: &dyn PacketIo,
        source: u8,
        waits: bool,
    ) -> Result<(), InstanceError> {
        if waits == self.watches_room {
            return Ok(());
        }
        self.watches_room = waits;
        let Some(fd) = port.wait_fd() else {
            return Ok(());
        };
        let mut flags = EpollFlags::EPOLLIN;
        flags.set(EpollFlags::EPOLLOUT, waits);
        poll.modify(fd, Token::of(source), flags)
            .map_err(InstanceError::system("watching the port"))
    }
}
