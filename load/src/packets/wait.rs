//! What a thread does while there is nothing to do.
use hopscope_event::{Ns, Tsc, TscFrequency};
use hopscope_netio::PacketIo;
use nix::poll::{PollFd, PollFlags};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Never sleeps: a processor for each thread, and nothing of a wake-up in the figures.
    Spin,
    /// Sleeps through longer gaps and wakes [`AHEAD_NS`] before a packet is due; a receiver that
    /// sleeps is woken by the kernel, and its wake-up is part of the latency then.
    Sleep,
}

/// Longer than a timer of the kernel is late when the processor is free.
pub const AHEAD_NS: u64 = 100_000;
/// Gaps below are spun through: a sleep would not be back in time.
const SHORTEST_SLEEP_NS: u64 = 20_000;
/// A receiver that saw nothing for so long goes to sleep.
const SPIN_NS: u64 = 50_000;
/// Longest sleep: losses are decided and lines printed in between.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

pub struct Idle {
    wait: Wait,
    frequency: TscFrequency,
    spin_ticks: u64,
    ahead_ticks: u64,
    last_busy: Tsc,
}

impl Idle {
    pub fn new(wait: Wait, frequency: TscFrequency) -> Idle {
        // Timers are late by the slack, 50 µs unless asked otherwise; then what is said of
        // AHEAD_NS would not hold. Without it packets may go late, and are counted as late.
        let _ = nix::sys::prctl::set_timerslack(1);
        Idle {
            wait,
            frequency,
            spin_ticks: frequency.ticks(Ns(SPIN_NS)),
            ahead_ticks: frequency.ticks(Ns(AHEAD_NS)),
            last_busy: Tsc(0),
        }
    }

    /// The same for the thread that calls.
    pub fn again(&self) -> Idle {
        Idle::new(self.wait, self.frequency)
    }

    pub fn busy(&mut self, now: Tsc) {
        self.last_busy = now;
    }

    /// Until a packet is due, or a moment before.
    pub fn until(&mut self, now: Tsc, due: Tsc) {
        match self.time_to(now, due) {
            Some(time) => std::thread::sleep(time.min(LONGEST_SLEEP)),
            None => std::hint::spin_loop(),
        }
    }

    /// Until a frame may have come, or a packet is due.
    pub fn for_frames(&mut self, now: Tsc, due: Option<Tsc>, port: &dyn PacketIo) {
        if self.wait == Wait::Spin || now - self.last_busy < self.spin_ticks as i64 {
            std::hint::spin_loop();
            return;
        }
        let time = match due {
            Some(due) => self.time_to(now, due),
            None => Some(LONGEST_SLEEP),
        };
        let Some(time) = time.map(|time| time.min(LONGEST_SLEEP)) else {
            std::hint::spin_loop();
            return;
        };
        match port.wait_fd() {
            Some(fd) => {
                let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
                // Interrupted or not, whoever called looks again.
                let _ = nix::poll::ppoll(&mut fds, Some(time.into()), None);
            }
            // Nobody wakes us: looked at again when whoever else wants the processor had it.
            None => std::thread::yield_now(),
        }
    }

    /// `None` where spinning is right.
    fn time_to(&self, now: Tsc, due: Tsc) -> Option<Duration> {
        if self.wait == Wait::Spin {
            return None;
        }
        let ticks = (due - now) - self.ahead_ticks as i64;
        let ns = self.frequency.ns(ticks);
        (ns > SHORTEST_SLEEP_NS as i64).then(|| Duration::from_nanos(ns as u64))
    }
}
