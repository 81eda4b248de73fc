//! Fragments that are received, and packets that are sent in fragments.
use super::addresses::Recipient;
use super::input::{Input, Packet};
use super::interface::Interface;
use super::neighbors::Hop;
use super::outbox::Frame;
use super::outgoing::{FragmentOut, Outgoing};
use super::reassembly::{Fragment, Outcome, Partial};
use super::receive::Arrival;
use super::send::FRAGMENT_HEADER_BYTES;
use crate::wire::icmp::{v4, v6};
use crate::wire::{ipv4, ipv6, protocol, tcp};
use crate::{Counters, Ns};
use std::net::IpAddr;

/// Linux: ipfrag_time.
const TIMEOUT_V4: Ns = Ns::from_ms(30_000);
/// RFC 8200, 4.5.
const TIMEOUT_V6: Ns = Ns::from_ms(60_000);

impl Interface {
    pub(super) fn fragment_v4<'a>(
        &mut self,
        arrival: &Arrival,
        packet: &ipv4::Packet,
        counters: &mut Counters,
    ) -> Input<'a> {
        let fragment = Fragment {
            source: packet.source.into(),
            destination: packet.destination.into(),
            identification: packet.identification.into(),
            key_protocol: packet.protocol,
            protocol: packet.protocol,
            hop_limit: packet.ttl,
            traffic_class: packet.traffic_class,
            offset: packet.fragment_offset,
            more: packet.more_fragments,
            bytes: packet.payload,
        };
        self.receive_fragment(arrival, TIMEOUT_V4, &fragment, counters)
    }

    pub(super) fn fragment_v6<'a>(
        &mut self,
        arrival: &Arrival,
        whole: &Packet,
        packet: &ipv6::Packet,
        place: ipv6::Fragment,
        counters: &mut Counters,
    ) -> Input<'a> {
        if let Some((code, pointer)) = problem_v6(packet, place) {
            counters.ip_reasm_reqds += 1;
            counters.ip_in_hdr_errors += 1;
            self.parameter_problem(arrival, whole, code, pointer, counters);
            return Input::Done;
        }
        let fragment = Fragment {
            source: packet.source.into(),
            destination: packet.destination.into(),
            identification: place.identification,
            key_protocol: 0,
            protocol: packet.protocol,
            hop_limit: packet.hop_limit,
            traffic_class: packet.traffic_class,
            offset: place.offset,
            more: place.more,
            bytes: packet.payload,
        };
        self.receive_fragment(arrival, TIMEOUT_V6, &fragment, counters)
    }

    fn receive_fragment<'a>(
        &mut self,
        arrival: &Arrival,
        timeout: Ns,
        fragment: &Fragment,
        counters: &mut Counters,
    ) -> Input<'a> {
        counters.ip_reasm_reqds += 1;
        let to_group = arrival.link_group && arrival.recipient == Recipient::Us;
        if to_group || !is_valid(fragment) {
            counters.ip_in_hdr_errors += 1;
            return Input::Done;
        }
        let (outcome, evicted) = self.reassembly.add(arrival.now, timeout, fragment);
        counters.ip_reasm_fails += evicted;
        match outcome {
            Outcome::Complete(partial) => {
                if let Some(packet) = whole(&partial) {
                    counters.ip_reasm_oks += 1;
                    return Input::Reassembled(packet);
                }
                counters.ip_reasm_fails += 1;
            }
            Outcome::Refused => {
                counters.overlapping_fragments += 1;
                counters.ip_reasm_fails += 1;
            }
            Outcome::Incomplete | Outcome::Duplicate => {}
        }
        Input::Done
    }

    pub(super) fn expire_fragments(&mut self, now: Ns, counters: &mut Counters) {
        while let Some(partial) = self.reassembly.expired(now) {
            // Another engine has the same fragments, and tells of them.
            if !self.answers() {
                continue;
            }
            counters.ip_reasm_timeout += 1;
            counters.ip_reasm_fails += 1;
            // RFC 792, RFC 4443, 3.3: only where the first fragment is there, which says whose the packet was.
            let Some(quote) = partial.first().map(|first| quote(&partial, first)) else {
                continue;
            };
            let packet = Packet {
                source: partial.source,
                destination: partial.destination,
                hop_limit: partial.hop_limit,
                traffic_class: partial.traffic_class,
                bytes: &quote,
            };
            let (kind, code) = match partial.source {
                IpAddr::V4(_) => (v4::TIME_EXCEEDED, v4::REASSEMBLY),
                IpAddr::V6(_) => (v6::TIME_EXCEEDED, v6::REASSEMBLY),
            };
            let recipient = self.addresses.recipient(packet.destination);
            if recipient == Recipient::Us && self.send_error(now, &packet, kind, code, 0, counters)
            {
                counters.icmp_out_time_excds += 1;
            }
        }
    }

    /// Sends `payload`, a transport's header and payload, in as many packets as the path's MTU makes necessary.
    pub(super) fn push_packet(
        &mut self,
        now: Ns,
        mut packet: Outgoing,
        payload: &[u8],
        hop: &mut Hop,
        counters: &mut Counters,
    ) {
        let ipv6 = packet.destination.is_ipv6();
        let ip_bytes = self.header_bytes(ipv6) - self.link_bytes();
        let mtu = usize::from(self.mtu(now, packet.destination));
        if payload.len() + ip_bytes <= mtu {
            packet.len = payload.len();
            return self.push_fragment(now, &packet, payload, hop, counters);
        }
        let identification = self.next_identification();
        let piece = fragment_bytes(mtu, ipv6);
        for (i, bytes) in payload.chunks(piece).enumerate() {
            packet.fragment = Some(FragmentOut {
                identification,
                offset: (i * piece) as u16,
                more: (i + 1) * piece < payload.len(),
            });
            packet.len = bytes.len();
            self.push_fragment(now, &packet, bytes, hop, counters);
        }
    }

    fn push_fragment(
        &mut self,
        now: Ns,
        packet: &Outgoing,
        bytes: &[u8],
        hop: &mut Hop,
        counters: &mut Counters,
    ) {
        let start = self.transport_offset(packet);
        let mut frame = self.outbox.buffer(start + bytes.len());
        frame[start..].copy_from_slice(bytes);
        match self.send(now, &mut frame, packet, hop, counters) {
            Some(meta) => self.push(Frame { bytes: frame, meta }, counters),
            None => self.outbox.recycle(frame),
        }
    }
}

/// Payload of each fragment but the last: a multiple of 8.
pub(crate) fn fragment_bytes(mtu: usize, ipv6: bool) -> usize {
    let headers = if ipv6 {
        ipv6::HEADER_BYTES + FRAGMENT_HEADER_BYTES
    } else {
        ipv4::HEADER_BYTES
    };
    (mtu.saturating_sub(headers) & !7).max(8)
}

/// All but the last are multiples of 8 bytes (RFC 791); the end is below 64 KiB. However small, IPv4's are reassembled: RFC 1858's rules are
/// those of filters, which look at the first fragment alone. Here ports and flags are read from the whole packet.
fn is_valid(fragment: &Fragment) -> bool {
    let len = fragment.bytes.len();
    let aligned = !fragment.more || len.is_multiple_of(8);
    aligned && len > 0 && usize::from(fragment.offset) + len <= usize::from(u16::MAX)
}

/// RFC 8200, 4.5, and RFC 7112, 5: code and pointer of the parameter problem where a fragment is dropped with one.
fn problem_v6(packet: &ipv6::Packet, place: ipv6::Fragment) -> Option<(u8, u32)> {
    const PAYLOAD_LENGTH_AT: u32 = 4;
    let len = packet.payload.len();
    let header_at = (packet.bytes.len() - len - FRAGMENT_HEADER_BYTES) as u32;
    let least = match packet.protocol {
        protocol::TCP => tcp::HEADER_BYTES,
        protocol::UDP | protocol::ICMPV6 => 8,
        _ => 0,
    };
    if place.more && !len.is_multiple_of(8) {
        Some((v6::ERRONEOUS_FIELD, PAYLOAD_LENGTH_AT))
    } else if usize::from(place.offset) + len > usize::from(u16::MAX) {
        Some((v6::ERRONEOUS_FIELD, header_at + 2))
    } else if place.offset == 0 && len < least {
        Some((v6::INCOMPLETE_HEADER_CHAIN, 0))
    } else {
        None
    }
}

/// One packet without extension headers. `None`: longer than packets can be.
fn whole(partial: &Partial) -> Option<Box<[u8]>> {
    let payload = partial.payload();
    let payload_bytes = u16::try_from(payload.len()).ok()?;
    let mut packet = match (partial.source, partial.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            payload_bytes.checked_add(ipv4::HEADER_BYTES as u16)?;
            let mut header = [0; ipv4::HEADER_BYTES];
            header_v4(partial, source, destination, payload_bytes).emit(&mut header);
            header.to_vec()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = [0; ipv6::HEADER_BYTES];
            header_v6(partial, source, destination, payload_bytes).emit(&mut header);
            header.to_vec()
        }
        _ => return None,
    };
    packet.extend_from_slice(&payload);
    Some(packet.into_boxed_slice())
}

fn header_v4(
    partial: &Partial,
    source: std::net::Ipv4Addr,
    destination: std::net::Ipv4Addr,
    payload_bytes: u16,
) -> ipv4::Header {
    ipv4::Header {
        source,
        destination,
        protocol: partial.protocol,
        ttl: partial.hop_limit,
        traffic_class: partial.traffic_class,
        identification: partial.identification as u16,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        payload_bytes,
    }
}

fn header_v6(
    partial: &Partial,
    source: std::net::Ipv6Addr,
    destination: std::net::Ipv6Addr,
    payload_bytes: u16,
) -> ipv6::Header {
    ipv6::Header {
        source,
        destination,
        protocol: partial.protocol,
        hop_limit: partial.hop_limit,
        traffic_class: partial.traffic_class,
        payload_bytes,
    }
}

/// The first fragment as it came, without options or other extension headers.
fn quote(partial: &Partial, first: &[u8]) -> Vec<u8> {
    let len = first.len() as u16;
    let mut quote = match (partial.source, partial.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = header_v4(partial, source, destination, len);
            header.more_fragments = true;
            let mut bytes = [0; ipv4::HEADER_BYTES];
            header.emit(&mut bytes);
            bytes.to_vec()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let len = len.saturating_add(FRAGMENT_HEADER_BYTES as u16);
            let mut header = header_v6(partial, source, destination, len);
            header.protocol = ipv6::FRAGMENT;
            let mut bytes = [0; ipv6::HEADER_BYTES];
            header.emit(&mut bytes);
            let [a, b, c, d] = partial.identification.to_be_bytes();
            let mut quote = bytes.to_vec();
            quote.extend([partial.protocol, 0, 0, 1, a, b, c, d]);
            quote
        }
        _ => Vec::new(),
    };
    quote.extend_from_slice(first);
    quote
}
