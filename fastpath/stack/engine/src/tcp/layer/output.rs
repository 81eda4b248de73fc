//! Segments into the device's slots: replies first, then connections in turn.
use super::state::{Host, Tcp, context};
use crate::SocketId;
use crate::buffer::SendBuffer;
use crate::frame::TxFrame;
use crate::ip::{Hop, Outgoing};
use crate::tcp::connection::Emit;
use crate::tcp::replies::Reply;
use crate::tcp::tuple::Tuple;
use crate::wire::checksum::Sum;
use crate::wire::tcp::{self, Flags};
use std::net::IpAddr;

const PROTOCOL: u8 = 6;
/// A slot that holds the largest IP packet and the medium's header.
const GSO_SLOT_BYTES: usize = 65_549;
/// Frames in a row of one connection, while its state is in the cache; then others have their turn.
const MAX_BURST: u32 = 16;

impl Tcp {
    pub(crate) fn transmit(&mut self, host: &mut Host, slot: &mut [u8]) -> Option<TxFrame> {
        loop {
            while let Some(reply) = self.replies.pop() {
                let frame = self.write_reply(host, slot, &reply);
                if frame.is_some() {
                    return frame;
                }
            }
            let frame = self.transmit_segment(host, slot);
            // The reset of a connection that had something to send before.
            if frame.is_some() || self.replies.is_empty() {
                return frame;
            }
        }
    }

    fn transmit_segment(&mut self, host: &mut Host, slot: &mut [u8]) -> Option<TxFrame> {
        while let Some(&index) = self.output.front() {
            if self.burst >= MAX_BURST && self.output.len() > 1 {
                self.output.rotate_left(1);
                self.burst = 0;
                continue;
            }
            match self.transmit_of(host, index, slot) {
                Some(Some(frame)) => {
                    self.burst += 1;
                    return Some(frame);
                }
                // It waits, or was dropped: it counts as sent.
                Some(None) => {
                    self.burst += 1;
                    if host.ip.has_looped_enough() {
                        return None;
                    }
                }
                None => {
                    self.output.pop_front();
                    self.burst = 0;
                }
            }
        }
        None
    }

    /// `None`: the connection has nothing to send, and leaves the queue.
    fn transmit_of(
        &mut self,
        host: &mut Host,
        index: u32,
        slot: &mut [u8],
    ) -> Option<Option<TxFrame>> {
        let id = self.sockets.id(index);
        let connection = self.sockets.connection_mut(index)?;
        let offload = self.config.offload;
        let cuts = if connection.tuple.peer.is_v4() {
            offload.segmentation_v4
        } else {
            offload.segmentation_v6
        };
        let gso = offload.checksum && cuts && slot.len() >= GSO_SLOT_BYTES;
        let emit = connection.output(&mut context!(self, host), gso);
        if emit.is_none() {
            connection.queued = false;
            if connection.reset_behind {
                connection.abort(&mut context!(self, host));
                self.settle(host, index);
                return None;
            }
        }
        let deadline = connection.deadline();
        if deadline < connection.armed {
            connection.armed = deadline;
            self.timers.set(index, deadline);
        }
        let emit = emit?;
        let (header, peer) = (&connection.options.header, connection.tuple.peer.into());
        let out = Out {
            tuple: &connection.tuple,
            emit: &emit,
            buffer: Some(&connection.send.buffer),
            hop_limit: header.hop_limit(peer),
            traffic_class: header.traffic_class(peer),
            socket: id,
            offload: offload.checksum,
        };
        let frame = write(host, slot, &out, &mut connection.hop);
        Some(frame)
    }

    fn write_reply(&self, host: &mut Host, slot: &mut [u8], reply: &Reply) -> Option<TxFrame> {
        host.counters.tcp_out_segs += 1;
        host.counters.tcp_out_rsts += u64::from(reply.header.flags.has(Flags::RST));
        let emit = Emit {
            header: reply.header,
            offset: 0,
            payload_bytes: 0,
            segment_bytes: 0,
        };
        let out = Out {
            tuple: &reply.tuple,
            emit: &emit,
            buffer: None,
            hop_limit: reply.hop_limit,
            traffic_class: reply.traffic_class,
            socket: None,
            offload: self.config.offload.checksum,
        };
        write(host, slot, &out, &mut Hop::default())
    }
}

struct Out<'a> {
    tuple: &'a Tuple,
    emit: &'a Emit,
    buffer: Option<&'a SendBuffer>,
    hop_limit: u8,
    traffic_class: u8,
    socket: Option<SocketId>,
    /// The device completes the checksum.
    offload: bool,
}

fn write(host: &mut Host, slot: &mut [u8], out: &Out, hop: &mut Hop) -> Option<TxFrame> {
    let source = IpAddr::from(out.tuple.local);
    let destination = IpAddr::from(out.tuple.peer);
    let start = host.ip.header_bytes(destination.is_ipv6());
    let emit = out.emit;
    let Some(len) = write_segment(
        slot.get_mut(start..).unwrap_or_default(),
        source,
        destination,
        out,
    ) else {
        host.counters.ip_out_discards += 1;
        return None;
    };
    let header_bytes = len - emit.payload_bytes;
    let is_cut = emit.payload_bytes > emit.segment_bytes as usize;
    let packet = Outgoing {
        hop_limit: out.hop_limit,
        traffic_class: out.traffic_class,
        checksum_offset: out.offload.then_some(tcp::CHECKSUM_OFFSET),
        segment_bytes: if is_cut { emit.segment_bytes as u16 } else { 0 },
        transport_header_bytes: header_bytes as u16,
        socket: out.socket,
        payload_bytes: emit.payload_bytes as u32,
        ..Outgoing::new(source, destination, PROTOCOL, len)
    };
    host.ip.send(host.now, slot, &packet, hop, host.counters)
}

/// Header, payload and checksum; their length. `None`: they do not fit.
fn write_segment(into: &mut [u8], source: IpAddr, destination: IpAddr, out: &Out) -> Option<usize> {
    let emit = out.emit;
    let header_bytes = emit.header.len();
    let len = header_bytes + emit.payload_bytes;
    let into = into.get_mut(..len)?;
    emit.header.emit(into);
    let (header, payload) = into.split_at_mut(header_bytes);
    let pseudo = Sum::of_pseudo_header(source, destination, PROTOCOL, len as u32);
    let field = if out.offload {
        if let Some(buffer) = out.buffer {
            buffer.copy_unsummed(emit.offset, payload)?;
        }
        pseudo.partial()
    } else {
        let sum = match out.buffer {
            Some(buffer) => buffer.copy(emit.offset, payload)?,
            None => Sum::default(),
        };
        pseudo.and(Sum::of(header)).and(sum).field()
    };
    tcp::set_checksum(header, field);
    Some(len)
}
