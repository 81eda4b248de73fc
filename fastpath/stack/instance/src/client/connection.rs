//! One connection of a client, from SYN to close.
use super::{Shared, Work, exchange, stream};
use crate::Ns;
use crate::sockets::Sockets;
use hopscope_stack_engine::{SocketError, SocketId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Connecting,
    Open,
    /// All is written, and the end of the stream behind it.
    Draining,
    Over,
}

pub(super) struct Connection {
    pub(super) id: SocketId,
    pub(super) n: u64,
    pub(super) stage: Stage,
    /// When a byte moved last.
    pub(super) moved: Ns,
    /// Of the stream, or of requests: how much was sent and received.
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) is_wrong: bool,
    /// What is under way, if anything is.
    pub(super) exchange: Option<exchange::Exchange>,
    pub(super) requests: u64,
    /// A response's head, as far as it came.
    pub(super) head: Vec<u8>,
}

impl Connection {
    pub(super) fn new(id: SocketId, n: u64, now: Ns) -> Connection {
        Connection {
            id,
            n,
            stage: Stage::Connecting,
            moved: now,
            sent: 0,
            received: 0,
            is_wrong: false,
            exchange: None,
            requests: 0,
            head: Vec::new(),
        }
    }

    /// Does what can be done now; true: it is over, in order.
    ///
    /// # Errors
    /// The connection's.
    pub(super) fn turn(
        &mut self,
        sockets: &mut Sockets<'_>,
        shared: &mut Shared,
    ) -> Result<bool, SocketError> {
        if self.stage == Stage::Connecting {
            if let Some(error) = sockets.engine.take_error(self.id)? {
                return Err(error);
            }
            if !sockets.engine.readiness(self.id)?.writable {
                return Ok(shared.stops);
            }
            self.stage = Stage::Open;
            self.moved = sockets.now;
            shared.counts.accepted += 1;
        }
        match shared.plan.work {
            Work::Send => stream::send(self, sockets, shared),
            Work::Receive => stream::receive(self, sockets, shared),
            Work::Echo | Work::Http => exchange::turn(self, sockets, shared),
        }
    }
}
