//! Neighbor Discovery (RFC 4861) for hosts: solicitations and advertisements. Routers' messages and redirects are ignored:
//! routes are configured.
use super::addresses::{ALL_NODES, Recipient};
use super::input::Packet;
use super::interface::Interface;
use super::neighbors::{Evidence, Hop};
use super::outgoing::Outgoing;
use super::receive::{Arrival, is_host};
use crate::frame::TxFrame;
use crate::wire::checksum::Sum;
use crate::wire::ethernet::{self, Mac};
use crate::wire::ndisc::{self, Message};
use crate::wire::{icmp, ipv6, protocol};
use crate::{Counters, Ns};
use std::net::{IpAddr, Ipv6Addr};

/// What routers have not decremented (RFC 4861, 7.1): the sender is on the link.
const HOP_LIMIT: u8 = 255;

impl Interface {
    /// The checksum of the ICMPv6 message `bytes` is right.
    pub(super) fn receive_ndisc(
        &mut self,
        arrival: &Arrival,
        packet: &Packet,
        bytes: &[u8],
        counters: &mut Counters,
    ) {
        counters.nd_in += 1;
        let message = Message::parse(bytes).filter(|_| packet.hop_limit == HOP_LIMIT);
        let (Some(message), Some(_)) = (message, self.mac) else {
            counters.nd_ignored += 1;
            return;
        };
        match message {
            Message::Solicitation { target, mac } => {
                self.receive_solicitation(arrival, packet, target, mac, counters);
            }
            Message::Advertisement {
                target,
                mac,
                solicited,
                overrides,
                ..
            } => {
                // RFC 4861, 7.1.2.
                let solicited = solicited && arrival.recipient == Recipient::Us;
                let evidence = Evidence::Answers {
                    solicited,
                    overrides,
                };
                self.receive_advertisement(arrival.now, target, mac, evidence, counters);
            }
        }
        self.send_resolved(counters);
    }

    fn receive_solicitation(
        &mut self,
        arrival: &Arrival,
        packet: &Packet,
        target: Ipv6Addr,
        mac: Option<Mac>,
        counters: &mut Counters,
    ) {
        let detection = packet.source.is_unspecified();
        // RFC 4861, 7.1.1: a detection goes to the group and names no link-layer address.
        let valid = !detection || (mac.is_none() && arrival.recipient == Recipient::Group);
        if !valid || !self.addresses.is_ours(target.into()) {
            counters.nd_ignored += 1;
            return;
        }
        if let Some(mac) = mac.filter(|m| is_host(*m, self.mac))
            && self.is_link_neighbor(packet.source)
        {
            let evidence = Evidence::Wants;
            self.neighbors
                .learn(arrival.now, packet.source, mac, evidence, counters);
        }
        if self.answers() {
            self.advertise(arrival.now, target, packet.source, detection, counters);
        }
    }

    fn receive_advertisement(
        &mut self,
        now: Ns,
        target: Ipv6Addr,
        mac: Option<Mac>,
        evidence: Evidence,
        counters: &mut Counters,
    ) {
        if self.addresses.is_ours(target.into()) {
            counters.address_conflicts += 1;
            return;
        }
        let solicited = matches!(
            evidence,
            Evidence::Answers {
                solicited: true,
                ..
            }
        );
        match mac {
            Some(mac) if is_host(mac, self.mac) && self.is_link_neighbor(target.into()) => {
                let neighbors = &mut self.neighbors;
                neighbors.learn(now, target.into(), mac, evidence, counters);
            }
            None if solicited => self.neighbors.confirm_solicited(now, target.into()),
            _ => counters.nd_ignored += 1,
        }
    }

    fn is_link_neighbor(&self, address: IpAddr) -> bool {
        self.addresses.is_valid_source(address) && self.addresses.is_neighbor(address)
    }

    /// RFC 4861, 7.2.4.
    fn advertise(
        &mut self,
        now: Ns,
        target: Ipv6Addr,
        to: IpAddr,
        detection: bool,
        counters: &mut Counters,
    ) {
        let message = Message::Advertisement {
            target,
            mac: self.mac,
            router: false,
            solicited: !detection,
            overrides: true,
        };
        let to = if detection { ALL_NODES.into() } else { to };
        let mut bytes = [0; ndisc::BYTES];
        let len = message.emit(&mut bytes);
        let mut packet = Outgoing::new(target.into(), to, protocol::ICMPV6, len);
        packet.hop_limit = HOP_LIMIT;
        set_checksum(target, to, &mut bytes[..len]);
        self.push_packet(now, packet, &bytes[..len], &mut Hop::default(), counters);
        counters.nd_out += 1;
    }

    /// Writes a solicitation of `target`; to one host that is to be confirmed, or to all that could be it.
    pub(super) fn solicit_v6(
        &mut self,
        target: Ipv6Addr,
        unicast: Option<Mac>,
        slot: &mut [u8],
        counters: &mut Counters,
    ) -> Option<TxFrame> {
        let IpAddr::V6(source) = self.addresses.source_for(target.into())? else {
            return None;
        };
        let destination = match unicast {
            Some(_) => target,
            None => ethernet::solicited_node(target),
        };
        let message = Message::Solicitation {
            target,
            mac: self.mac,
        };
        let mut bytes = [0; ndisc::BYTES];
        let len = message.emit(&mut bytes);
        set_checksum(source, destination.into(), &mut bytes[..len]);
        let link = ethernet::Header {
            destination: unicast.or_else(|| Mac::of_multicast(destination.into()))?,
            source: self.mac?,
            ethertype: ethernet::IPV6,
        };
        let header = ipv6::Header {
            source,
            destination,
            protocol: protocol::ICMPV6,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            payload_bytes: len as u16,
        };
        let (place, rest) = slot.split_first_chunk_mut()?;
        link.emit(place);
        let (place, rest) = rest.split_first_chunk_mut()?;
        header.emit(place);
        rest.get_mut(..len)?.copy_from_slice(&bytes[..len]);
        counters.nd_out += 1;
        Some(TxFrame {
            len: ethernet::HEADER_BYTES + ipv6::HEADER_BYTES + len,
            checksum: None,
            segmentation: None,
            socket: None,
            payload_bytes: 0,
        })
    }
}

fn set_checksum(source: Ipv6Addr, destination: IpAddr, message: &mut [u8]) {
    let len = message.len() as u32;
    let pseudo = Sum::of_pseudo_header(source.into(), destination, protocol::ICMPV6, len);
    icmp::set_checksum(message, pseudo.and(Sum::of(message)).field());
}
