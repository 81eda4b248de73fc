//! One connection of a client, from SYN to close.
use crate::Ns;
use hopscope_stack_engine::SocketId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Connecting,
    Open,
    /// All is written, and the end of the stream behind it.
    Draining,
    Over,
}

/// A request and its response, under way.
pub(super) struct Exchange {
    pub(super) began: Ns,
    pub(super) sent: usize,
    pub(super) received: u64,
    /// Of the response; unknown while its head is on its way.
    pub(super) expected: Option<u64>,
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
    pub(super) exchange: Option<Exchange>,
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
}
