//! Both directions, and waiting for what comes next.
use super::lane::{Lane, whole_ms};
use super::{Fate, Impairments, ImpairmentsError, LaneCounts};
use crate::clock::tsc_now;
use crate::{PacketIo, PortError};
use hopscope_event::{Ns, Tsc, TscFrequency};
use hopscope_openloop::random::mix;
use nix::poll::{PollFd, PollFlags, poll};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// A sleeper wakes up late by about this: closer to a release it spins.
const WAKE_UP_NS: u64 = 2_000_000;
/// How long a sleeper takes at most to see that it should stop, in milliseconds.
const LOOK_AGAIN_MS: u16 = 50;

/// What the bridge does while nothing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// Takes a processor; releases to the microsecond.
    #[default]
    Spin,
    /// Sleeps until frames come, and spins only just before a release.
    Sleep,
}

pub struct Bridge {
    ports: [Box<dyn PacketIo>; 2],
    /// From port 0 to port 1, and back.
    lanes: [Lane; 2],
    frequency: TscFrequency,
}

impl Bridge {
    /// `there` is done to what port `a` receives, `back` to what `b` does. With `log`, the fate of
    /// each frame is kept: 32 bytes a frame.
    ///
    /// # Errors
    /// A probability is none.
    pub fn new(
        a: Box<dyn PacketIo>,
        b: Box<dyn PacketIo>,
        there: Impairments,
        back: Impairments,
        seed: u64,
        frequency: TscFrequency,
        log: bool,
    ) -> Result<Bridge, ImpairmentsError> {
        there.check()?;
        back.check()?;
        Ok(Bridge {
            ports: [a, b],
            lanes: [
                Lane::new(Bridge::seed_of(seed, 0), there, frequency, log),
                Lane::new(Bridge::seed_of(seed, 1), back, frequency, log),
            ],
            frequency,
        })
    }

    /// The seed of a direction, for [`Fate::of`]: 0 is from `a` to `b`.
    pub fn seed_of(seed: u64, direction: u64) -> u64 {
        mix(seed).wrapping_add(direction)
    }

    /// Takes in what has arrived and passes on what is due, in both directions; without waiting.
    ///
    /// # Errors
    /// Those of the ports.
    pub fn step(&mut self, now: Tsc) -> Result<(), PortError> {
        let [a, b] = &mut self.ports;
        let [there, back] = &mut self.lanes;
        there.take(&mut **a)?;
        back.take(&mut **b)?;
        there.release(now, &mut **b)?;
        back.release(now, &mut **a)
    }

    /// Runs until `stop`, or until both ports have ended and nothing is held.
    ///
    /// # Errors
    /// Those of the ports.
    pub fn run(&mut self, stop: &AtomicBool, waiting: Waiting) -> Result<(), PortError> {
        while !stop.load(Ordering::Acquire) {
            self.step(tsc_now())?;
            if self.lanes.iter().all(|lane| lane.ended && lane.is_empty()) {
                break;
            }
            match waiting {
                Waiting::Spin => std::hint::spin_loop(),
                Waiting::Sleep => self.sleep()?,
            }
        }
        Ok(())
    }

    /// From `a` to `b`, and back.
    pub fn counts(&self) -> [LaneCounts; 2] {
        [self.lanes[0].counts(), self.lanes[1].counts()]
    }

    /// What became of each frame in the order of arrival, where it was asked for.
    pub fn fates(&self) -> [Option<&[Fate]>; 2] {
        [self.lanes[0].fates(), self.lanes[1].fates()]
    }

    pub fn ports_mut(&mut self) -> &mut [Box<dyn PacketIo>; 2] {
        &mut self.ports
    }

    fn sleep(&self) -> Result<(), PortError> {
        let due = self.lanes.iter().filter_map(Lane::next_due);
        let in_ns = due.map(|due| self.frequency.ns(due - tsc_now()).max(0) as u64);
        let timeout = match in_ns.min() {
            Some(ns) if ns < WAKE_UP_NS => return Ok(()),
            Some(ns) => whole_ms(Ns(ns - WAKE_UP_NS)).min(LOOK_AGAIN_MS),
            None => LOOK_AGAIN_MS,
        };
        let watched: Vec<_> = self.ports.iter().filter_map(|p| p.wait_fd()).collect();
        if watched.len() < self.ports.len() {
            // A port in memory, or a file: nothing tells when frames come.
            std::thread::yield_now();
            return Ok(());
        }
        let mut watched: Vec<_> = watched
            .iter()
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN))
            .collect();
        match poll(&mut watched, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(PortError::System {
                what: "waiting for frames".into(),
                source: error.into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
