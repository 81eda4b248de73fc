//! Connections that are half open: what a SYN left behind (the SYN queue), without a socket.
use super::challenge::InvalidLimit;
use super::handshake::{self, Agreed};
use super::replies::{self, Reply};
use super::segment::Segment;
use super::seq::Seq;
use super::tuple::Tuple;
use crate::wire::tcp::Flags;
use crate::{Ns, SocketId};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) tuple: Tuple,
    pub(crate) hash: u32,
    pub(crate) listener: SocketId,
    pub(crate) agreed: Agreed,
    pub(crate) iss: Seq,
    pub(crate) irs: Seq,
    /// What our SYN-ACK advertised, in bytes.
    pub(crate) window: u32,
    pub(crate) advmss: u16,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    /// SYN-ACKs sent again, by us and because the SYN came again.
    pub(crate) retransmissions: u8,
    /// Time-outs, of which `retries` are allowed.
    pub(crate) timeouts: u8,
    /// The handshake was completed, but there was no room, or TCP_DEFER_ACCEPT waits for data.
    pub(crate) acked: bool,
    pub(crate) sent: Ns,
    pub(crate) invalid: InvalidLimit,
}

/// What to do about a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Drop,
    /// The SYN came again.
    SynAck,
    /// It is not acceptable; `paws`: for its timestamp.
    Acknowledge {
        paws: bool,
    },
    /// Acceptable, but not the end of a handshake: the connection is refused, with a reset unless it was one.
    Refuse,
    /// It acknowledges what was never sent.
    Reset,
    Complete,
}

impl Request {
    pub(crate) fn syn_ack(&self, stamp: u32) -> Reply {
        let flags = Flags::SYN.and(Flags::ACK);
        let mut header = replies::header(&self.tuple, self.iss, self.irs + 1, flags);
        header.window = self.window.min(65_535) as u16;
        header.options = handshake::answer(&self.agreed, self.advmss, stamp);
        self.reply(header)
    }

    /// RFC 9293, 3.10.7.4, first: an ACK that says what is expected.
    pub(crate) fn acknowledgement(&self, stamp: u32) -> Reply {
        let mut header = replies::header(&self.tuple, self.iss + 1, self.irs + 1, Flags::ACK);
        header.window = (self.window >> self.agreed.rcv_wscale).min(65_535) as u16;
        header.options.timestamps = handshake::answer(&self.agreed, 0, stamp).timestamps;
        self.reply(header)
    }

    fn reply(&self, header: crate::wire::tcp::Header) -> Reply {
        Reply {
            tuple: self.tuple,
            header,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
        }
    }

    /// SYN-RECEIVED (RFC 9293, 3.10.7.4, as Linux tcp_check_req).
    pub(crate) fn arrives(&mut self, segment: &Segment) -> Verdict {
        let flags = segment.flags;
        let stamps = segment.timestamps().filter(|_| self.agreed.timestamps);
        let paws = stamps.is_some_and(|s| self.agreed.ts_recent.wrapping_sub(s.value) as i32 > 1);
        let is_syn = flags.syn() && !flags.ack() && !flags.rst();
        if segment.seq == self.irs && is_syn && !paws {
            return Verdict::SynAck;
        }
        if paws || !self.is_in_window(segment) {
            return if flags.rst() {
                Verdict::Drop
            } else {
                Verdict::Acknowledge { paws }
            };
        }
        if let Some(stamps) = stamps
            && segment.seq.until(self.irs + 1)
        {
            self.agreed.ts_recent = stamps.value;
        }
        // RFC 5961, 3.2 and 4.2: nothing but the exact number ends it.
        if flags.rst() && segment.seq == self.irs + 1 {
            return Verdict::Refuse;
        }
        if flags.rst() || flags.syn() && segment.seq != self.irs {
            return Verdict::Acknowledge { paws: false };
        }
        if flags.ack() && segment.ack != self.iss + 1 {
            return Verdict::Reset;
        }
        if flags.ack() {
            Verdict::Complete
        } else {
            Verdict::Drop
        }
    }

    /// The window begins after the SYN (RFC 9293, 3.10.7.4, first).
    fn is_in_window(&self, segment: &Segment) -> bool {
        let (start, edge) = (self.irs + 1, self.irs + 1 + self.window);
        segment.seq == start
            || segment.end().after(start) && segment.seq.before(edge)
            || segment.seq == edge && segment.len() == 0
    }
}
