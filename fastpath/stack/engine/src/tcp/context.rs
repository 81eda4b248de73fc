//! What a connection borrows from its engine for one step.
use super::challenge::ChallengeLimit;
use super::replies::{Replies, Reply};
use crate::buffer::Pool;
use crate::{Counters, Ns, TcpConfig};

pub(crate) struct Context<'a> {
    pub(crate) now: Ns,
    pub(crate) config: &'a TcpConfig,
    pub(crate) counters: &'a mut Counters,
    pub(crate) pool: &'a mut Pool,
    pub(crate) replies: &'a mut Replies,
    pub(crate) challenges: &'a mut ChallengeLimit,
}

impl Context<'_> {
    /// After buffers took memory.
    pub(crate) fn count_pressures(&mut self) {
        self.counters.memory_pressures = self.pool.pressures();
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        if !self.replies.push(reply) {
            self.counters.ip_out_discards += 1;
        }
    }
}
