//! Headers before what a transport wrote.
use super::addresses::Recipient;
use super::interface::Interface;
use super::neighbors::Hop;
use super::outbox::Frame;
use super::outgoing::{FragmentOut, Outgoing};
use crate::frame::{PartialChecksum, Segmentation, TxFrame};
use crate::wire::ethernet::{self, Mac};
use crate::wire::{ipv4, ipv6};
use crate::{Counters, Ns};
use std::net::IpAddr;

/// IPv6's fragment header (RFC 8200, 4.5).
pub(super) const FRAGMENT_HEADER_BYTES: usize = 8;

/// How a frame is addressed.
enum Link {
    /// There are no link-layer addresses.
    None,
    Known(Mac),
    /// It has to wait.
    Unknown,
    /// It stays here.
    Own,
    NoRoute,
}

impl Interface {
    /// Completes the frame in `slot`, where the transport's bytes are at [`Interface::header_bytes`]. `hop` is the caller's to
    /// keep for the next packet to the same destination; a default one is looked up.
    ///
    /// `None`: there is nothing to send now. The neighbour's address is asked for first and the packet waits, or it is for us and waits to be
    /// received (it counts as sent), or it is dropped, which is counted.
    pub(crate) fn send(
        &mut self,
        now: Ns,
        slot: &mut [u8],
        packet: &Outgoing,
        hop: &mut Hop,
        counters: &mut Counters,
    ) -> Option<TxFrame> {
        // Of a datagram in fragments the first stands for it (net/ipv4/ip_output.c counts before it fragments).
        let is_first = packet.fragment.is_none_or(|fragment| fragment.offset == 0);
        let part = packet.fragment.filter(|fragment| fragment.is_part());
        let Some(meta) = self.write_ip(slot, packet) else {
            counters.ip_out_discards += 1;
            counters.ip_frag_fails += u64::from(part.is_some());
            return None;
        };
        counters.ip_out_requests += u64::from(is_first);
        let link = self.link(now, packet, hop, counters);
        if let Some(part) = part.filter(|_| !matches!(link, Link::NoRoute)) {
            counters.ip_frag_creates += 1;
            counters.ip_frag_oks += u64::from(!part.more);
        }
        let (destination, is_known) = match link {
            Link::None => return Some(meta),
            Link::NoRoute => {
                counters.ip_out_no_routes += u64::from(is_first);
                return None;
            }
            Link::Known(mac) => (mac, true),
            Link::Unknown => (Mac::default(), false),
            Link::Own => {
                let link_bytes = self.link_bytes();
                self.looped.push(slot, link_bytes, meta);
                return None;
            }
        };
        let header = ethernet::Header {
            destination,
            source: self.mac.unwrap_or_default(),
            ethertype: match packet.destination {
                IpAddr::V4(_) => ethernet::IPV4,
                IpAddr::V6(_) => ethernet::IPV6,
            },
        };
        header.emit(slot.first_chunk_mut()?);
        if is_known {
            return Some(meta);
        }
        let frame = Frame::of(slot, meta);
        self.neighbors.wait(*hop, frame, counters);
        None
    }

    /// Where the bytes of `packet` begin in its slot: [`Interface::header_bytes`], and a fragment header where it has one.
    pub(crate) fn transport_offset(&self, packet: &Outgoing) -> usize {
        let ipv6 = packet.destination.is_ipv6();
        let extension = packet.fragment.filter(|_| ipv6);
        self.header_bytes(ipv6) + extension.map_or(0, |_| FRAGMENT_HEADER_BYTES)
    }

    fn link(&mut self, now: Ns, packet: &Outgoing, hop: &mut Hop, counters: &mut Counters) -> Link {
        let destination = packet.destination;
        if let Some(mac) = self.neighbors.cached(now, *hop) {
            return Link::Known(mac);
        }
        if self.addresses.is_local(destination) {
            return Link::Own;
        }
        if packet.source.is_loopback() {
            return Link::NoRoute;
        }
        if self.mac.is_none() {
            return Link::None;
        }
        if let Some(mac) = Mac::of_multicast(destination) {
            return Link::Known(mac);
        }
        if self.addresses.recipient(destination) == Recipient::Group {
            return Link::Known(Mac::BROADCAST);
        }
        let Some(neighbor) = self.addresses.next_hop(destination) else {
            return Link::NoRoute;
        };
        match self.neighbors.resolve(now, neighbor, hop, counters) {
            Some(mac) => Link::Known(mac),
            None => Link::Unknown,
        }
    }

    /// RFC 4861, 7.3.1: the peer behind `hop` acknowledged something new, so its neighbour needs no probes.
    pub(crate) fn confirm(&mut self, now: Ns, hop: Hop) {
        self.neighbors.confirm(now, hop);
    }

    /// `None`: it does not fit the slot or the length fields, or the addresses are of two families.
    fn write_ip(&mut self, slot: &mut [u8], packet: &Outgoing) -> Option<TxFrame> {
        let link = self.link_bytes();
        let after_link = slot.get_mut(link..)?;
        let (header_bytes, ipv6) = match (packet.source, packet.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let fragment = packet.fragment;
                let header = ipv4::Header {
                    source,
                    destination,
                    protocol: packet.protocol,
                    ttl: packet.hop_limit,
                    traffic_class: packet.traffic_class,
                    identification: fragment.map_or(0, |f| f.identification as u16),
                    // RFC 6864, 4.1: an atomic datagram's identification means nothing.
                    dont_fragment: fragment.is_none(),
                    more_fragments: fragment.is_some_and(|f| f.more),
                    fragment_offset: fragment.map_or(0, |f| f.offset),
                    payload_bytes: fitting(packet.len, usize::from(u16::MAX) - 20)?,
                };
                header.emit(after_link.first_chunk_mut()?);
                (ipv4::HEADER_BYTES, false)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let extension = packet.fragment.map_or(0, |_| FRAGMENT_HEADER_BYTES);
                let header = ipv6::Header {
                    source,
                    destination,
                    protocol: packet.fragment.map_or(packet.protocol, |_| ipv6::FRAGMENT),
                    hop_limit: packet.hop_limit,
                    traffic_class: packet.traffic_class,
                    payload_bytes: fitting(packet.len + extension, usize::from(u16::MAX))?,
                };
                let (fixed, rest) = after_link.split_first_chunk_mut()?;
                header.emit(fixed);
                if let Some(fragment) = packet.fragment {
                    write_fragment(rest.first_chunk_mut()?, packet.protocol, fragment);
                }
                (ipv6::HEADER_BYTES + extension, true)
            }
            _ => return None,
        };
        let transport = link + header_bytes;
        let len = transport + packet.len;
        (len <= slot.len()).then(|| meta(packet, transport, len, ipv6))
    }
}

fn fitting(len: usize, most: usize) -> Option<u16> {
    u16::try_from(len).ok().filter(|_| len <= most)
}

fn write_fragment(into: &mut [u8; FRAGMENT_HEADER_BYTES], protocol: u8, fragment: FragmentOut) {
    let place = fragment.offset & !7 | u16::from(fragment.more);
    [into[0], into[1]] = [protocol, 0];
    into[2..4].copy_from_slice(&place.to_be_bytes());
    into[4..].copy_from_slice(&fragment.identification.to_be_bytes());
}

fn meta(packet: &Outgoing, transport: usize, len: usize, ipv6: bool) -> TxFrame {
    let payload_bytes = packet.len - usize::from(packet.transport_header_bytes).min(packet.len);
    let segments = usize::from(packet.segment_bytes);
    TxFrame {
        len,
        checksum: packet.checksum_offset.map(|offset| PartialChecksum {
            start: transport as u16,
            offset,
        }),
        segmentation: (segments > 0 && payload_bytes > segments).then(|| Segmentation {
            ipv6,
            segment_bytes: packet.segment_bytes,
            header_bytes: transport as u16 + packet.transport_header_bytes,
        }),
        socket: packet.socket,
        payload_bytes: packet.payload_bytes,
    }
}
