//! Frames of our own, at their times.
use super::error::DriveError;
use super::frame::{self, LONGEST, NUMBER, SHORTEST};
use super::pace::{Pace, Rate};
use super::queue::Queue;
use crate::Ns;
use crate::common::header;
use crate::ring::Memory;
use hopscope_serving::clock::Clock;
use vm_memory::{Address, Bytes};

/// Packets before completions get a turn.
const TURN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Source {
    /// Bytes of a frame without its FCS, the same for each buffer of the ring.
    pub shortest: usize,
    pub longest: usize,
    pub rate: Rate,
    /// The frames come back: no more than so many are under way, and the source ends when all are back.
    pub echo: Option<u64>,
}

impl Source {
    pub(super) fn check(self) -> Result<(), DriveError> {
        for len in [self.shortest, self.longest] {
            if !(SHORTEST..=LONGEST).contains(&len) || len < self.shortest {
                let (shortest, longest) = (SHORTEST, LONGEST);
                return Err(DriveError::Size {
                    len,
                    shortest,
                    longest,
                });
            }
        }
        Ok(())
    }

    pub(super) fn buffer_len(self) -> u32 {
        // Whole cache lines: neighbours are written by both ends.
        (header::LEN_MAX + self.longest).next_multiple_of(64) as u32
    }
}

pub(super) struct Sending {
    plan: Source,
    pub(super) pace: Pace,
    /// By buffer.
    lens: Vec<u32>,
    pub(super) sent: u64,
    /// The ring is full, and that is counted.
    full: bool,
}

impl Sending {
    /// Writes each buffer's frame; later only its number changes.
    ///
    /// # Errors
    /// The buffers are not in the memory.
    pub(super) fn new(
        plan: Source,
        pace: Pace,
        queue: &Queue,
        memory: &Memory,
    ) -> Result<Sending, DriveError> {
        let size = queue.place().layout.size;
        let mut lens = Vec::new();
        for buffer in 0..size {
            let len = frame::len_of(buffer, plan.shortest, plan.longest);
            let bytes = [&[0; header::LEN_MAX][..], &frame::build(buffer, len)].concat();
            let written = memory.write_slice(&bytes, queue.address(buffer));
            written.map_err(|e| DriveError::queue(1)(e.into()))?;
            lens.push(bytes.len() as u32);
        }
        Ok(Sending {
            plan,
            pace,
            lens,
            sent: 0,
            full: false,
        })
    }

    fn fits(&self, back: u64) -> bool {
        self.plan.echo.is_none_or(|most| self.sent - back < most)
    }

    /// Publishes what is due. `back`: frames that came back. True: something was.
    ///
    /// # Errors
    /// As for [`Queue::publish`].
    pub(super) fn turn(
        &mut self,
        queue: &mut Queue,
        memory: &Memory,
        back: u64,
        clock: Clock,
    ) -> Result<bool, DriveError> {
        for n in 0..TURN {
            let now = clock.now();
            let due = |pace: &Pace| pace.next(now).filter(|at| *at <= now);
            let Some(came) = due(&self.pace).filter(|_| self.fits(back)) else {
                return Ok(n > 0);
            };
            let Some(buffer) = queue.next_buffer() else {
                queue.counts.full += u64::from(!self.full);
                self.full = true;
                return Ok(n > 0);
            };
            self.full = false;
            let place = queue.address(buffer);
            let place = place.unchecked_add((header::LEN_MAX + NUMBER) as u64);
            let written = memory.write_slice(&self.sent.to_le_bytes(), place);
            written.map_err(|e| DriveError::queue(1)(e.into()))?;
            self.pace.take();
            self.sent += 1;
            let more = self.pace.is_due(now) && self.fits(back);
            let len = self.lens[usize::from(buffer)];
            queue.publish(memory, len, more.into(), came, (clock, now))?;
            queue.counts.packets += 1;
            queue.counts.bytes += u64::from(len) - header::LEN_MAX as u64;
        }
        Ok(true)
    }

    /// When the next one comes, if it could be sent then.
    pub(super) fn next(&self, queue: &Queue, back: u64, now: Ns) -> Option<Ns> {
        if queue.room() > 0 && self.fits(back) {
            self.pace.next(now)
        } else {
            None
        }
    }

    /// Frames that have to come back yet. `back`: those that did.
    pub(super) fn missing(&self, back: u64) -> u64 {
        match self.plan.echo {
            Some(_) => self.sent.saturating_sub(back),
            None => 0,
        }
    }
}
