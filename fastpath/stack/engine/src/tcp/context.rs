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
    pub(crate) fn reply(&mut self, reply: Reply) {
        if !self.replies.push(reply) {
            self.counters.ip_out_discards += 1;
        }
    }
}
