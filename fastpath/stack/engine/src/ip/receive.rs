//! From a frame to a transport's bytes.
use super::addresses::Recipient;
use super::input::{Input, Packet};
use super::interface::Interface;
use crate::frame::{RxChecksum, RxMeta};
use crate::wire::checksum::Sum;
use crate::wire::ethernet::{self, Mac};
use crate::wire::{Malformed, be16, icmp, ipv4, ipv6, protocol, tcp, udp};
use crate::{Counters, Ns};
use std::net::{IpAddr, SocketAddr};

/// What the layers below know of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub now: Ns,
    pub meta: RxMeta,
    /// The frame was for others, too.
    pub link_group: bool,
    pub recipient: Recipient,
    /// It comes from here.
    pub looped: bool,
    /// Put together from fragments, each of which was counted as received.
    pub reassembled: bool,
}

impl Interface {
    /// Classifies one frame. ARP, NDISC, ICMP and fragments are handled here; answers come out of
    /// [`Interface::transmit`].
    pub(crate) fn receive<'a>(
        &mut self,
        now: Ns,
        frame: &'a [u8],
        meta: RxMeta,
        counters: &mut Counters,
    ) -> Input<'a> {
        if !meta.for_all || self.answers() {
            return self.receive_frame(now, frame, meta, counters);
        }
        let mut of_frame = Counters::default();
        let input = self.receive_frame(now, frame, meta, &mut of_frame);
        // What it led to is this engine's own, and counted here.
        counters.neighbor_evicted += of_frame.neighbor_evicted;
        counters.neighbor_conflicts += of_frame.neighbor_conflicts;
        counters.ip_out_discards += of_frame.ip_out_discards;
        input
    }

    fn receive_frame<'a>(
        &mut self,
        now: Ns,
        frame: &'a [u8],
        meta: RxMeta,
        counters: &mut Counters,
    ) -> Input<'a> {
        let Some(mac) = self.mac else {
            return self.receive_packet(frame, of_packet(now, meta, false), counters);
        };
        let Some((header, payload)) = ethernet::Header::parse(frame) else {
            counters.frames_malformed += 1;
            return Input::Done;
        };
        if header.destination != mac && !header.destination.is_group() {
            counters.frames_foreign += 1;
            return Input::Done;
        }
        let mut arrival = Arrival {
            now,
            meta,
            link_group: header.destination != mac,
            recipient: Recipient::Us,
            looped: false,
            reassembled: false,
        };
        match header.ethertype {
            ethernet::IPV4 => self.receive_v4(&mut arrival, payload, counters),
            ethernet::IPV6 => self.receive_v6(&mut arrival, payload, counters),
            ethernet::ARP => {
                self.receive_arp(now, payload, counters);
                Input::Done
            }
            // VLAN tags, too.
            _ => {
                counters.frames_foreign += 1;
                Input::Done
            }
        }
    }

    /// The packet of an [`Input::Reassembled`]. Never gives another one.
    pub(crate) fn receive_reassembled<'a>(
        &mut self,
        now: Ns,
        packet: &'a [u8],
        looped: bool,
        counters: &mut Counters,
    ) -> Input<'a> {
        let mut arrival = of_packet(now, RxMeta::default(), looped);
        arrival.reassembled = true;
        self.receive_packet(packet, arrival, counters)
    }

    /// A packet of [`Interface::next_looped`].
    pub(crate) fn receive_looped<'a>(
        &mut self,
        now: Ns,
        packet: &'a [u8],
        meta: RxMeta,
        counters: &mut Counters,
    ) -> Input<'a> {
        self.receive_packet(packet, of_packet(now, meta, true), counters)
    }

    fn receive_packet<'a>(
        &mut self,
        bytes: &'a [u8],
        mut arrival: Arrival,
        counters: &mut Counters,
    ) -> Input<'a> {
        match bytes.first().map(|b| b >> 4) {
            Some(4) => self.receive_v4(&mut arrival, bytes, counters),
            Some(6) => self.receive_v6(&mut arrival, bytes, counters),
            _ => {
                counters.frames_malformed += 1;
                Input::Done
            }
        }
    }

    fn receive_v4<'a>(
        &mut self,
        arrival: &mut Arrival,
        bytes: &'a [u8],
        counters: &mut Counters,
    ) -> Input<'a> {
        counters.ip_in_receives += u64::from(!arrival.reassembled);
        let packet = match ipv4::Packet::parse(bytes) {
            Ok(packet) => packet,
            Err(_) => {
                counters.ip_in_hdr_errors += 1;
                return Input::Done;
            }
        };
        let whole = Packet {
            source: packet.source.into(),
            destination: packet.destination.into(),
            hop_limit: packet.ttl,
            traffic_class: packet.traffic_class,
            bytes: &bytes[..packet.header.len() + packet.payload.len()],
        };
        if !self.accepts(arrival, &whole, counters) {
            return Input::Done;
        }
        if packet.is_fragment() {
            return self.fragment_v4(arrival, &packet, counters);
        }
        let (protocol, payload) = (packet.protocol, packet.payload);
        if let Some(input) = self.deliver(arrival, whole, protocol, payload, counters) {
            return input;
        }
        self.refuse_protocol(arrival, &whole, counters);
        Input::Done
    }

    fn receive_v6<'a>(
        &mut self,
        arrival: &mut Arrival,
        bytes: &'a [u8],
        counters: &mut Counters,
    ) -> Input<'a> {
        counters.ip_in_receives += u64::from(!arrival.reassembled);
        let parsed = ipv6::Packet::parse_fixed(bytes);
        let Ok(mut packet) = parsed else {
            counters.ip_in_hdr_errors += 1;
            return Input::Done;
        };
        let whole = Packet {
            source: packet.source.into(),
            destination: packet.destination.into(),
            hop_limit: packet.hop_limit,
            traffic_class: packet.traffic_class,
            bytes: packet.bytes,
        };
        if !self.accepts(arrival, &whole, counters) {
            return Input::Done;
        }
        if let Err(error) = packet.walk() {
            counters.ip_in_hdr_errors += 1;
            if let Malformed::Parameter { code, pointer } = error {
                self.parameter_problem(arrival, &whole, code, pointer, counters);
            }
            return Input::Done;
        }
        if let Some(fragment) = packet.fragment {
            return self.fragment_v6(arrival, &whole, &packet, fragment, counters);
        }
        if packet.has_no_payload() {
            counters.ip_in_delivers += 1;
            return Input::Done;
        }
        let (protocol, payload) = (packet.protocol, packet.payload);
        if let Some(input) = self.deliver(arrival, whole, protocol, payload, counters) {
            return input;
        }
        let code = icmp::v6::UNRECOGNIZED_NEXT_HEADER;
        self.parameter_problem(arrival, &whole, code, packet.protocol_at, counters);
        Input::Done
    }

    /// By its addresses. Sets `arrival.recipient`.
    fn accepts(&self, arrival: &mut Arrival, packet: &Packet, counters: &mut Counters) -> bool {
        arrival.recipient = match arrival.looped && self.addresses.is_local(packet.destination) {
            true => Recipient::Us,
            false => self.addresses.recipient(packet.destination),
        };
        // A duplicate address detection comes from nowhere (RFC 4862, 5.4.2).
        let unspecified = packet.source.is_ipv6() && packet.source.is_unspecified();
        let valid = unspecified
            || arrival.looped && self.addresses.is_local(packet.source)
            || self.addresses.is_valid_source(packet.source);
        let accepted = valid && arrival.recipient != Recipient::Others;
        if !accepted {
            counters.ip_in_addr_errors += 1;
        }
        accepted
    }

    /// `None`: no protocol that is served.
    fn deliver<'a>(
        &mut self,
        arrival: &Arrival,
        packet: Packet<'a>,
        protocol: u8,
        bytes: &'a [u8],
        counters: &mut Counters,
    ) -> Option<Input<'a>> {
        if arrival.reassembled && !arrival.looped && !self.owns(&packet, protocol, bytes) {
            return Some(Input::Done);
        }
        Some(match (protocol, packet.source) {
            (protocol::TCP, _) => self.deliver_tcp(arrival, packet, bytes, counters),
            (protocol::UDP, _) => self.deliver_udp(arrival, packet, bytes, counters),
            (protocol::ICMP, IpAddr::V4(_)) => {
                counters.ip_in_delivers += 1;
                self.receive_icmp(arrival, &packet, bytes, counters)
            }
            (protocol::ICMPV6, IpAddr::V6(_)) => {
                counters.ip_in_delivers += 1;
                self.receive_icmpv6(arrival, &packet, bytes, counters)
            }
            _ => {
                counters.ip_in_unknown_protos += 1;
                return None;
            }
        })
    }

    fn deliver_tcp<'a>(
        &mut self,
        arrival: &Arrival,
        packet: Packet<'a>,
        bytes: &'a [u8],
        counters: &mut Counters,
    ) -> Input<'a> {
        // RFC 9293, MUST-57 and RFC 1122, 4.2.3.10: no broadcast at either layer.
        if arrival.link_group || arrival.recipient != Recipient::Us || is_nowhere(&packet) {
            counters.ip_in_discards += 1;
            return Input::Done;
        }
        let Ok(segment) = tcp::Segment::parse(bytes) else {
            counters.ip_in_delivers += 1;
            counters.tcp_in_segs += 1;
            counters.tcp_in_errs += 1;
            return Input::Done;
        };
        let ports = (segment.source_port, segment.destination_port);
        let (peer, local) = ends(&packet, ports);
        if !arrival.looped && !self.share.has(peer, local) {
            counters.connections_of_other_engines += 1;
            return Input::Done;
        }
        counters.ip_in_delivers += 1;
        counters.tcp_in_segs += match usize::from(arrival.meta.segment_bytes) {
            0 => 1,
            bytes => segment.payload.len().div_ceil(bytes).max(1) as u64,
        };
        if !is_intact(arrival.meta, &packet, protocol::TCP, bytes) {
            counters.tcp_in_csum_errors += 1;
            counters.tcp_in_errs += 1;
            return Input::Done;
        }
        Input::Tcp(packet, segment)
    }

    fn deliver_udp<'a>(
        &mut self,
        arrival: &Arrival,
        packet: Packet<'a>,
        bytes: &'a [u8],
        counters: &mut Counters,
    ) -> Input<'a> {
        let datagram = match udp::Datagram::parse(bytes) {
            Ok(datagram) if !is_nowhere(&packet) => datagram,
            _ => {
                counters.udp_in_errors += 1;
                return Input::Done;
            }
        };
        let ports = (datagram.source_port, datagram.destination_port);
        let on_the_wire = arrival.recipient == Recipient::Us && !arrival.looped;
        let (peer, local) = ends(&packet, ports);
        if on_the_wire && !self.share.has_datagrams(peer, local) {
            counters.connections_of_other_engines += 1;
            return Input::Done;
        }
        counters.ip_in_delivers += 1;
        let intact = if datagram.has_checksum {
            is_intact(arrival.meta, &packet, protocol::UDP, datagram.bytes)
        } else {
            // RFC 8200, 8.1.
            packet.source.is_ipv4()
        };
        if !intact {
            counters.udp_in_csum_errors += 1;
            counters.udp_in_errors += 1;
            return Input::Done;
        }
        Input::Udp(packet, datagram)
    }

    /// All engines put fragments together; the whole is one engine's, as a packet is that came whole.
    fn owns(&self, packet: &Packet, protocol: u8, bytes: &[u8]) -> bool {
        let ports = (be16(bytes, 0), be16(bytes, 2));
        let (peer, local) = ends(packet, ports);
        match protocol {
            protocol::TCP => self.share.has(peer, local),
            protocol::UDP => self.share.has_datagrams(peer, local),
            _ => self.answers(),
        }
    }

    /// Of what several engines see the first answers questions, and counts all.
    pub(super) fn answers(&self) -> bool {
        self.share.index == 0
    }

    /// It is one of several that see this.
    pub(super) fn is_silent(&self, arrival: &Arrival) -> bool {
        arrival.meta.for_all && !self.answers()
    }
}

/// Of one without a link's header.
fn of_packet(now: Ns, meta: RxMeta, looped: bool) -> Arrival {
    Arrival {
        now,
        meta,
        link_group: false,
        recipient: Recipient::Us,
        looped,
        reassembled: false,
    }
}

/// The peer's, and ours.
fn ends(packet: &Packet, (source, destination): (u16, u16)) -> (SocketAddr, SocketAddr) {
    let peer = SocketAddr::new(packet.source, source);
    (peer, SocketAddr::new(packet.destination, destination))
}

/// From no address; such a packet has no transport.
fn is_nowhere(packet: &Packet) -> bool {
    packet.source.is_unspecified()
}

pub(super) fn is_intact(meta: RxMeta, packet: &Packet, protocol: u8, bytes: &[u8]) -> bool {
    meta.checksum == RxChecksum::Good
        || Sum::of_pseudo_header(
            packet.source,
            packet.destination,
            protocol,
            bytes.len() as u32,
        )
        .and(Sum::of(bytes))
        .is_valid()
}

/// Whether a link-layer address can be a neighbour's.
pub(super) fn is_host(mac: Mac, ours: Option<Mac>) -> bool {
    mac.is_unicast() && Some(mac) != ours
}
