//! A received segment with its options, in the words of RFC 9293, 3.3.1.
use super::seq::Seq;
use crate::wire::tcp;
use crate::wire::tcp_options::{TcpOptions, Timestamps};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: tcp::Flags,
    /// As in the header, not scaled.
    pub(crate) window: u16,
    pub(crate) options: TcpOptions,
    pub(crate) payload: &'a [u8],
    /// Payload bytes of each of the segments that the device merged; of the segment itself where it is one.
    pub(crate) segment_bytes: u32,
}

impl<'a> Segment<'a> {
    /// `segment_bytes` as [`crate::frame::RxMeta`] has it. The second value: the options were malformed.
    pub(crate) fn new(from: &tcp::Segment<'a>, segment_bytes: u16) -> (Segment<'a>, bool) {
        let (options, malformed) = TcpOptions::parse(from.options);
        let payload_bytes = from.payload.len() as u32;
        let segment_bytes = match u32::from(segment_bytes) {
            0 => payload_bytes,
            bytes => bytes.min(payload_bytes),
        };
        let segment = Segment {
            seq: Seq(from.seq),
            ack: Seq(from.ack),
            flags: from.flags,
            window: from.window,
            options,
            payload: from.payload,
            segment_bytes,
        };
        (segment, malformed)
    }

    /// SEG.LEN: SYN and FIN count.
    pub(crate) fn len(&self) -> u32 {
        let controls = u32::from(self.flags.syn()) + u32::from(self.flags.fin());
        self.payload.len() as u32 + controls
    }

    /// Not acceptable, it is answered without a limit (RFC 9293, 3.10.7.4): segments with data or FIN are no part of a loop in which two
    /// ends answer each other's ACKs, and SYN has the limit of challenge ACKs (Linux tcp_oow_rate_limited).
    pub(crate) fn is_answered_always(&self) -> bool {
        self.len() > 0 && !self.flags.syn()
    }

    pub(crate) fn end(&self) -> Seq {
        self.seq + self.len()
    }

    /// Where the payload begins: SYN comes first.
    pub(crate) fn data_start(&self) -> Seq {
        self.seq + u32::from(self.flags.syn())
    }

    pub(crate) fn timestamps(&self) -> Option<Timestamps> {
        self.options.timestamps
    }
}
