//! Who sleeps, and who wakes whom. One of the sleepers, the leader, watches the port and the engine's timers; when it leaves, another
//! one is rung to take its place.
use crate::kernel;
use crate::numbers::out_of_the_way;
use crate::sleeper::{Nap, Sleeper, Whose, watch};
use crate::state::State;
use crate::table::{self, Entry};
use hopscope_stack_engine::Ns;
use nix::libc;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many there are, for whoever asks without the lock.
static ASLEEP: AtomicUsize = AtomicUsize::new(0);

pub fn somebody_sleeps() -> bool {
    ASLEEP.load(Ordering::Relaxed) > 0
}

/// A child has none of them.
pub fn nobody_sleeps() {
    ASLEEP.store(0, Ordering::Relaxed);
}

impl State {
    /// From now on events on `on` ring. `Err`: no descriptor for a doorbell.
    pub fn fall_asleep(
        &mut self,
        on: Vec<u32>,
        until: Option<Ns>,
        whose: Whose,
    ) -> Result<Nap, i32> {
        let bell = match self.bells.pop() {
            Some(bell) => bell,
            None => self.internal(kernel::eventfd()?)?,
        };
        for description in &on {
            if let Some(description) = self.description_mut(*description) {
                description.pins += 1;
            }
        }
        let sleeper = Sleeper {
            bell,
            rung: false,
            on,
            whose,
        };
        ASLEEP.fetch_add(1, Ordering::Relaxed);
        let index = match self.sleepers.iter().position(Option::is_none) {
            Some(index) => {
                self.sleepers[index] = Some(sleeper);
                index as u32
            }
            None => {
                self.sleepers.push(Some(sleeper));
                self.sleepers.len() as u32 - 1
            }
        };
        let on = self.sleepers[index as usize]
            .as_ref()
            .map_or(Vec::new(), |s| s.on.clone());
        for description in on {
            if let Some(description) = self.description_mut(description) {
                description.sleepers.push(index);
            }
        }
        let mut nap = Nap {
            sleeper: index,
            fds: vec![watch(bell, libc::POLLIN)],
            until,
        };
        if self.leader.is_none() || self.ticker_leads {
            self.lead(index, &mut nap);
        }
        Ok(nap)
    }

    fn lead(&mut self, index: u32, nap: &mut Nap) {
        let Some(stack) = self.owned_stack() else {
            return;
        };
        if let Some(port) = stack.wait_fd() {
            let room = if stack.is_full { libc::POLLOUT } else { 0 };
            nap.fds.push(watch(port, libc::POLLIN | room));
        }
        let due = stack.due();
        nap.until = [nap.until, due].into_iter().flatten().min();
        self.leader = Some(index);
        self.ticker_leads = false;
        self.leader_until = nap.until;
    }

    pub fn wake_up(&mut self, index: u32) {
        let Some(sleeper) = self.sleepers.get_mut(index as usize).and_then(Option::take) else {
            return;
        };
        ASLEEP.fetch_sub(1, Ordering::Relaxed);
        for description in &sleeper.on {
            if let Some(description) = self.description_mut(*description) {
                description.sleepers.retain(|other| *other != index);
            }
            self.unpin(*description);
        }
        if sleeper.rung {
            let _ = kernel::read(sleeper.bell, &mut [0; 8]);
        }
        self.bells.push(sleeper.bell);
        if self.leader == Some(index) {
            self.leader = None;
            self.leader_until = None;
            match self.sleepers.iter().position(Option::is_some) {
                Some(other) => self.ring(other as u32),
                None => self.ticker.wake(),
            }
        }
    }

    pub fn sleeps(&self, thread: usize) -> bool {
        let mut sleepers = self.sleepers.iter().flatten();
        sleepers.any(|sleeper| sleeper.whose.thread == thread)
    }

    /// A thread's handler has left its calls whose frames are there: they sleep no more.
    pub fn jumped_out(&mut self, thread: usize, frames: Range<usize>) {
        let sleepers = self.sleepers.iter().enumerate();
        let left: Vec<(u32, Option<u32>)> = sleepers
            .filter_map(|(index, sleeper)| Some((index as u32, sleeper.as_ref()?.whose)))
            .filter(|(_, whose)| whose.thread == thread && frames.contains(&whose.frame))
            .map(|(index, whose)| (index, whose.pin))
            .collect();
        for (sleeper, pin) in left {
            self.wake_up(sleeper);
            if let Some(description) = pin {
                self.unpin(description);
            }
        }
    }

    pub fn ring(&mut self, index: u32) {
        if let Some(Some(sleeper)) = self.sleepers.get_mut(index as usize)
            && !sleeper.rung
        {
            sleeper.rung = true;
            let _ = kernel::write(sleeper.bell, &1_u64.to_ne_bytes());
        }
    }

    /// Those that sleep on it, or on a set that it is in.
    pub fn ring_all(&mut self, description: u32) {
        let Some(found) = self.description(description) else {
            return;
        };
        if found.sleepers.is_empty() {
            return;
        }
        for sleeper in found.sleepers.clone() {
            self.ring(sleeper);
        }
    }

    /// A timer that is due before the leader wakes up.
    pub fn mind_the_leader(&mut self) {
        let Some(leader) = self.leader else {
            return;
        };
        let Some(stack) = self.owned_stack() else {
            return;
        };
        let (due, full) = (stack.due(), stack.is_full);
        let early = due.is_some_and(|due| self.leader_until.is_none_or(|until| due < until));
        if early || full {
            if self.ticker_leads {
                self.ticker.ring();
            } else {
                self.ring(leader);
            }
        }
    }

    /// A descriptor of the library's own, out of the program's way.
    pub fn internal(&mut self, fd: i64) -> Result<i32, i32> {
        let high = out_of_the_way(fd as i32)?;
        table::set(high, Entry::Internal);
        Ok(high)
    }
}
