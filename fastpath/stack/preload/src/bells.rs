//! Bells for threads that wait in accept: the kernel's poll looks a descriptor up again each time that it is woken, so that whoever sleeps
//! on a listener while another file is put in its place sleeps on, on what is not there any more.
use crate::kernel;
use crate::table::{self, Entry};
use std::collections::HashMap;

/// A bell that was rung is not used again: it is rung for all that wait there.
#[derive(Debug, Default)]
pub struct Bells {
    pub current: Option<i32>,
    waiting: HashMap<i32, u32>,
}

impl Bells {
    /// The parent's threads wait there, and it is rung for them.
    pub fn forked(&mut self) {
        let waited = self.waiting.drain().map(|(bell, _)| bell);
        for bell in self.current.take().into_iter().chain(waited) {
            close(bell);
        }
    }

    /// At this one from now on, which may be the one before.
    pub fn wait_at(&mut self, bell: i32) {
        self.current = Some(bell);
        *self.waiting.entry(bell).or_default() += 1;
    }

    pub fn leave(&mut self, bell: i32) {
        let left = self.waiting.get_mut(&bell).map(|waiting| {
            *waiting -= 1;
            *waiting
        });
        if left == Some(0) && self.current != Some(bell) {
            self.waiting.remove(&bell);
            close(bell);
        }
    }

    /// A listener is another file from now on.
    pub fn ring(&mut self) {
        let waiting = |bell: &i32| self.waiting.get(bell).is_some_and(|waiting| *waiting > 0);
        if let Some(bell) = self.current.filter(waiting) {
            self.current = None;
            let _ = kernel::write(bell, &1_u64.to_ne_bytes());
        }
    }
}

fn close(bell: i32) {
    if table::get(bell) == Entry::Internal {
        table::set(bell, Entry::Kernel);
        kernel::close(bell);
    }
}
