//! One client: what it is doing now.
use std::net::TcpStream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Connect,
    /// Bytes written.
    Send(usize),
    /// Bytes read.
    Receive(usize),
}

impl Doing {
    pub(super) fn name(self) -> &'static str {
        match self {
            Doing::Connect => "connect",
            Doing::Send(_) => "send",
            Doing::Receive(_) => "receive",
        }
    }
}

/// A request and its connection.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stream: TcpStream,
    pub(super) doing: Doing,
    pub(super) number: u64,
    pub(super) due_ns: u64,
    /// When `connect` was called.
    pub(super) begun_ns: u64,
    pub(super) sent_ns: u64,
    pub(super) wrong: Option<(usize, u8, u8)>,
}
