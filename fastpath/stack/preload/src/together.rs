//! Which pieces of an answer wait for the next one, and which answers for the next event's ([`crate::pieces`]).
use crate::stack::now;
use crate::state::State;
use hopscope_stack_engine::SocketKind;

/// Bytes that wait at most: with what follows they are a segment of a 1500-byte packet.
const BYTES_MAX: u32 = 1024;
/// Of an answer that is whole.
const ANSWER_MAX: u32 = 16_384;

impl State {
    /// A request, or a part of one.
    pub fn received_some(&mut self, index: u32) {
        let socket = self.description_mut(index).and_then(|d| d.socket_mut());
        if let Some(pieces) = socket.and_then(|socket| socket.pieces.received()) {
            self.together.set_usual(pieces);
        }
    }

    /// A piece of a stream.
    pub fn sent_some(&mut self, index: u32) {
        let usual = self.together.usual();
        let socket = self.description_mut(index).and_then(|d| d.socket_mut());
        let Some(socket) = socket.filter(|socket| socket.kind == SocketKind::Tcp) else {
            return;
        };
        let id = socket.id;
        let most = match socket.pieces.sent(usual) {
            true => BYTES_MAX,
            false if self.together.answered() => ANSWER_MAX,
            false => return,
        };
        if !self.may_wait(index) {
            return;
        }
        let queued = self
            .owned_stack()
            .map(|stack| stack.engine.unacknowledged_bytes(id));
        if let Some(Ok((_, unsent))) = queued
            && unsent <= most
        {
            self.together.wait(index, now());
        }
    }

    /// Where a thread sleeps, the ticker does not look whether something waits.
    fn may_wait(&mut self, index: u32) -> bool {
        let is_seen_to = self.leader.is_none() && self.ticker.is_awake();
        is_seen_to && self.together.may_wait(index)
    }

    /// A connection's end is an answer, too: true: it leaves with those of other events.
    pub fn closed_some(&mut self, index: u32) -> bool {
        if self.together.holds(now) {
            return true;
        }
        let waits = self.together.answered() && self.may_wait(index);
        if waits {
            self.together.wait(index, now());
            // The call under way is over.
            self.together.has_begun();
        }
        waits
    }
}
