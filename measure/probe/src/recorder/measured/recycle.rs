//! Rings of threads that are gone go to others.
use super::{Target, owner_of};
use crate::recorder::callees::OpenCalls;
use crate::recorder::numbers::Numbers;
use crate::recorder::owner::{Owner, Tasks};
use crate::recorder::sink::Sink;
use hopscope_event::Record;
use hopscope_event::ring::Visit;
use hopscope_trace::TraceError;

/// Every so many visits, 50 ms apart, thread ids are checked for a later thread of the same id.
const ROUNDS_BETWEEN_START_TIMES: u32 = 20;

impl Target {
    /// Gives the rings of threads that are gone to new ones, whether or not they ever called.
    pub fn recycle<S: Sink>(
        &mut self,
        numbers: &mut Numbers,
        buffer: &mut Vec<Record>,
        writer: &mut S,
    ) -> Result<(), TraceError> {
        let parent = self.installed.pid;
        // Before the owners are looked up: who has a ring now was there before.
        self.learn_claims();
        self.rounds = self.rounds.wrapping_add(1);
        let start_times = self.rounds.is_multiple_of(ROUNDS_BETWEEN_START_TIMES);
        let mut tasks = Tasks::new(start_times);
        let is_going = tasks.of(parent).is_none();
        if is_going && self.children.is_none() {
            return Ok(());
        }
        for context in 0..self.rings.len() {
            let Some(ring) = self.installed.pool().ring(context) else {
                continue;
            };
            let context_at = self.context_at(context);
            let state = &mut self.rings[context];
            if !state.in_use {
                continue;
            }
            // Claimed and not filled in yet, or by a libc that does not show it: 0.
            // A child's context is filled before its first record, by which it is known.
            let is_filled = ring.forked() == 0
                || state.thread.is_some()
                || ring.reserved() > state.position.next;
            if state.owner.is_none() && ring.tid() != 0 && is_filled {
                state.owner = owner_of(&ring, parent, context_at, self.children.as_mut());
            }
            let Some(owner) = state.owner else { continue };
            let is_a_childs = matches!(owner, Owner::GoneChild { .. });
            let child = owner.pid().filter(|pid| *pid != parent);
            let has_replaced = |child: i32| {
                let children = self.children.as_ref();
                state.thread.is_some() && children.is_some_and(|c| c.memory(child).is_none())
            };
            let is_gone = match child {
                Some(child) => owner.is_gone(&mut tasks) || has_replaced(child),
                None => (is_a_childs || !is_going) && owner.is_gone(&mut tasks),
            };
            if !is_gone {
                continue;
            }
            self.drain_ring(context, Visit::Final, numbers, buffer, writer)?;
            // Another thread's records follow in the same ring.
            let state = &self.rings[context];
            if state.kept != state.position.next {
                writer.keep()?;
                self.kept();
            }
            // The context first: nobody may take it for its own any more.
            let children = self.children.as_ref();
            let memory = match child {
                Some(child) => children.and_then(|children| children.memory(child)),
                None if is_a_childs => None,
                None => Some(&self.installed.memory),
            };
            // A child that is gone, or runs another program, has none; its parent is going away.
            if memory.is_some_and(|memory| memory.write(context_at, &[0; 8]).is_err())
                && child.is_none()
            {
                continue;
            }
            let pool = self.installed.pool();
            if let Some(ring) = pool.ring(context) {
                ring.set_owner(0, 0);
                ring.set_counters(0);
            }
            let state = &mut self.rings[context];
            (state.in_use, state.thread, state.owner) = (false, None, None);
            state.counted = false;
            state.open_calls = OpenCalls::default();
            state.name_at_attach.clear();
            if !state.damaged {
                self.installed.give_ring_back(context as u32);
            }
        }
        Ok(())
    }
}
