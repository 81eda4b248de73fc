//! Queued datagrams into the device's slots, in fragments where the path's MTU makes it necessary.
use super::datagrams::counted;
use super::queued::{Progress, Queued};
use super::state::{Lower, Udp};
use crate::frame::TxFrame;
use crate::ip::{FragmentOut, Hop, fragment_bytes};
use crate::wire::checksum::Sum;
use crate::wire::udp::{self, CHECKSUM_OFFSET, HEADER_BYTES};

impl Udp {
    pub(crate) fn has_output(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Writes the next datagram or fragment that can go out now.
    pub(crate) fn transmit(&mut self, lower: &mut Lower, slot: &mut [u8]) -> Option<TxFrame> {
        while let Some((queued, payload_bytes)) = self.outgoing.front() {
            let destination = queued.destination.ip();
            let ipv6 = destination.is_ipv6();
            let headers = if ipv6 { 40 } else { 20 };
            let mtu = usize::from(lower.ip.mtu(lower.now, destination));
            let whole = HEADER_BYTES + payload_bytes + headers <= mtu || !queued.cut_here;
            let frame = if whole && queued.progress.is_none() {
                self.transmit_whole(lower, slot)
            } else {
                self.transmit_fragment(lower, slot, fragment_bytes(mtu, ipv6))
            };
            if frame.is_some() || lower.ip.has_looped_enough() {
                return frame;
            }
        }
        None
    }

    fn transmit_whole(&mut self, lower: &mut Lower, slot: &mut [u8]) -> Option<TxFrame> {
        let (queued, payload_bytes) = self.outgoing.front()?;
        let start = lower.ip.header_bytes(queued.destination.is_ipv6());
        let len = HEADER_BYTES + payload_bytes;
        let mut packet = queued.outgoing(len);
        packet.transport_header_bytes = HEADER_BYTES as u16;
        packet.payload_bytes = payload_bytes as u32;
        if queued.may_be_cut && queued.destination.is_ipv4() {
            // One fragment that is the whole: without DF, and with an identification (RFC 6864, 4.1).
            packet.fragment = Some(FragmentOut {
                identification: lower.ip.next_identification(),
                offset: 0,
                more: false,
            });
        }
        let place = slot.get_mut(start..start + len).unwrap_or_default();
        let written = self.write(queued, payload_bytes, place);
        if written && self.checksum_offload {
            packet.checksum_offset = Some(CHECKSUM_OFFSET);
        }
        let mut hop = queued.hop;
        let frame = if written {
            lower
                .ip
                .send(lower.now, slot, &packet, &mut hop, lower.counters)
        } else {
            lower.counters.ip_out_discards += 1;
            None
        };
        self.done(lower, hop);
        frame
    }

    /// Header and payload; false where `into` does not hold them.
    fn write(&self, queued: &Queued, payload_bytes: usize, into: &mut [u8]) -> bool {
        let Some((header, payload)) = into.split_first_chunk_mut::<HEADER_BYTES>() else {
            return false;
        };
        *header = queued.header(payload_bytes);
        let pseudo = queued.pseudo_header(payload_bytes);
        let field = if self.checksum_offload {
            if self.outgoing.copy_front(0, payload).is_none() {
                return false;
            }
            pseudo.partial()
        } else {
            let Some(sum) = self.outgoing.copy_summed(payload) else {
                return false;
            };
            udp::nonzero(pseudo.and(Sum::of(header)).and(sum).field())
        };
        header[6..].copy_from_slice(&field.to_be_bytes());
        true
    }

    fn transmit_fragment(
        &mut self,
        lower: &mut Lower,
        slot: &mut [u8],
        piece_bytes: usize,
    ) -> Option<TxFrame> {
        let (queued, payload_bytes) = self.outgoing.front()?;
        let len = HEADER_BYTES + payload_bytes;
        let progress = queued.progress.unwrap_or_else(|| Progress {
            identification: lower.ip.next_identification(),
            offset: 0,
            piece_bytes,
        });
        // The MTU may have been lowered since the first of them.
        let end = len.min(progress.offset + progress.piece_bytes.min(piece_bytes));
        let mut packet = queued.outgoing(end - progress.offset);
        packet.fragment = Some(FragmentOut {
            identification: progress.identification,
            offset: progress.offset as u16,
            more: end < len,
        });
        let start = lower.ip.transport_offset(&packet);
        let place = slot.get_mut(start..start + packet.len).unwrap_or_default();
        let written = self.write_piece(queued, payload_bytes, progress.offset, place);
        if progress.offset == 0 {
            packet.payload_bytes = payload_bytes as u32;
        }
        let mut hop = queued.hop;
        let frame = match written {
            Some(()) => lower
                .ip
                .send(lower.now, slot, &packet, &mut hop, lower.counters),
            None => None,
        };
        if written.is_none() || end == len {
            lower.counters.ip_out_discards += u64::from(written.is_none());
            lower.counters.ip_frag_fails += u64::from(written.is_none());
            self.done(lower, hop);
        } else if let Some(queued) = self.outgoing.front_mut() {
            queued.hop = hop;
            let offset = end;
            queued.progress = Some(Progress { offset, ..progress });
        }
        frame
    }

    /// What the datagram, with its header, has at `offset`. `None` where `into` does not hold it.
    fn write_piece(
        &self,
        queued: &Queued,
        payload_bytes: usize,
        offset: usize,
        into: &mut [u8],
    ) -> Option<()> {
        if offset > 0 {
            return (!into.is_empty())
                .then(|| self.outgoing.copy_front(offset - HEADER_BYTES, into))?;
        }
        let (place, payload) = into.split_first_chunk_mut::<HEADER_BYTES>()?;
        let mut header = queued.header(payload_bytes);
        // The device completes no checksum over several packets.
        let sum = queued.pseudo_header(payload_bytes).and(Sum::of(&header));
        let field = udp::nonzero(sum.and(self.outgoing.sum_front()?).field());
        header[6..].copy_from_slice(&field.to_be_bytes());
        *place = header;
        self.outgoing.copy_front(0, payload)
    }

    /// The oldest datagram is out, or waits for a neighbour, or is dropped.
    fn done(&mut self, lower: &mut Lower, hop: Hop) {
        let len = self.outgoing.front().map_or(0, |(_, len)| len);
        let Some(queued) = self.outgoing.pop(lower.pool) else {
            return;
        };
        lower.counters.udp_out_datagrams += 1;
        let Ok(socket) = self.get_mut(queued.index) else {
            return;
        };
        if socket.serial != queued.serial {
            return;
        }
        socket.queued_bytes = socket.queued_bytes.saturating_sub(counted(len));
        if socket.peer == Some(queued.destination) {
            socket.hop = hop;
        }
        if socket.wants_room && socket.has_room() {
            socket.wants_room = false;
            self.change(queued.index);
        }
    }
}
