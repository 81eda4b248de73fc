//! Segments without a connection's state: resets, SYN-ACKs of requests, ACKs of TIME-WAIT. Their queue is bounded.
use super::segment::Segment;
use super::seq::Seq;
use super::tuple::Tuple;
use crate::wire::tcp::{Flags, Header};
use std::collections::VecDeque;

/// Beyond them replies are dropped, which is counted: a flood gets so many answers in each burst.
const MAX: usize = 4096;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply {
    pub(crate) tuple: Tuple,
    pub(crate) header: Header,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
}

#[derive(Debug, Default)]
pub(crate) struct Replies {
    queue: VecDeque<Reply>,
}

impl Replies {
    /// False: there was no room.
    #[must_use]
    pub(crate) fn push(&mut self, reply: Reply) -> bool {
        let room = self.queue.len() < MAX;
        if room {
            self.queue.push_back(reply);
        }
        room
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<Reply> {
        self.queue.pop_front()
    }
}

pub(crate) fn header(tuple: &Tuple, seq: Seq, ack: Seq, flags: Flags) -> Header {
    Header {
        source_port: tuple.local_port,
        destination_port: tuple.peer_port,
        seq: seq.0,
        ack: ack.0,
        flags,
        ..Header::default()
    }
}

/// The reset that answers `segment` where there is no connection (RFC 9293, 3.5.2, group 1).
pub(crate) fn reset_of(tuple: &Tuple, segment: &Segment) -> Reply {
    let header = if segment.flags.ack() {
        header(tuple, segment.ack, Seq(0), Flags::RST)
    } else {
        let flags = Flags::RST.and(Flags::ACK);
        header(tuple, Seq(0), segment.end(), flags)
    };
    Reply {
        tuple: *tuple,
        header,
        hop_limit: 64,
        traffic_class: 0,
    }
}
