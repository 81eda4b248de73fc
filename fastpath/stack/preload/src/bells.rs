//! Bells for threads that wait in accept: the kernel's poll looks a descriptor up again each time that it is woken, so that whoever sleeps
//! on a listener while another file is put in its place sleeps on, on what is not there any more.
use crate::kernel;
use crate::state::State;
use crate::table::{self, Entry};
use std::collections::HashMap;

/// A bell that was rung is not used again: it is rung for all that wait there.
#[derive(Debug, Default)]
pub struct Bells {
    current: Option<i32>,
    waiting: HashMap<i32, u32>,
}

impl Bells {
    /// The parent's threads wait there, and it is rung for them.
    pub fn forked(&mut self) {
        for bell in self
            .current
            .into_iter()
            .chain(self.waiting.drain().map(|(bell, _)| bell))
        {
            if table::get(bell) == Entry::Internal {
                table::set(bell, Entry::Kernel);
                kernel::close(bell);
            }
        }
        self.current = None;
    }
}

impl State {
    /// To be waited for beside the listener. `None`: no descriptor for it.
    pub fn wait_at_bell(&mut self) -> Option<i32> {
        let current = self.instance.as_ref()?.bells.current;
        let bell = match current {
            Some(bell) => bell,
            None => self.internal(kernel::eventfd().ok()?).ok()?,
        };
        let bells = &mut self.instance.as_mut()?.bells;
        bells.current = Some(bell);
        *bells.waiting.entry(bell).or_default() += 1;
        Some(bell)
    }

    pub fn leave_bell(&mut self, bell: i32) {
        let Some(bells) = self.instance.as_mut().map(|instance| &mut instance.bells) else {
            return;
        };
        let left = bells.waiting.get_mut(&bell).map(|waiting| {
            *waiting -= 1;
            *waiting
        });
        if left == Some(0) && bells.current != Some(bell) {
            bells.waiting.remove(&bell);
            table::set(bell, Entry::Kernel);
            kernel::close(bell);
        }
    }

    /// A listener is another file from now on.
    pub fn ring_bell(&mut self) {
        let Some(bells) = self.instance.as_mut().map(|instance| &mut instance.bells) else {
            return;
        };
        let waiting = |bell: &i32| bells.waiting.get(bell).is_some_and(|waiting| *waiting > 0);
        if let Some(bell) = bells.current.filter(waiting) {
            bells.current = None;
            let _ = kernel::write(bell, &1_u64.to_ne_bytes());
        }
    }
}
