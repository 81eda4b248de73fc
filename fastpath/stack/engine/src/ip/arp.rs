//! ARP (RFC 826), and the requests that neighbours' states lead to.
use super::interface::Interface;
use super::neighbors::{Evidence, Solicitation};
use super::outbox::Frame;
use super::receive::is_host;
use crate::frame::TxFrame;
use crate::wire::arp::{self, Packet};
use crate::wire::ethernet::{self, Mac};
use crate::{Counters, Ns};
use std::net::{IpAddr, Ipv4Addr};

impl Interface {
    pub(super) fn receive_arp(&mut self, now: Ns, bytes: &[u8], counters: &mut Counters) {
        let Some(packet) = Packet::parse(bytes) else {
            counters.frames_malformed += 1;
            return;
        };
        counters.arp_in += 1;
        let sender = IpAddr::V4(packet.sender);
        let ours = self.addresses.is_ours(packet.target.into());
        if self.addresses.is_ours(sender) && Some(packet.sender_mac) != self.mac {
            counters.address_conflicts += 1;
            self.defend(now, packet.sender, counters);
        }
        // RFC 5227, 2.1.1: a probe for our address comes from 0.0.0.0 and is answered, too.
        if packet.is_request && ours && self.answers() {
            self.reply(&packet, counters);
        }
        let neighbor = self.addresses.is_valid_source(sender)
            && self.addresses.is_neighbor(sender)
            && is_host(packet.sender_mac, self.mac);
        if !neighbor {
            return;
        }
        let evidence = match packet.is_request {
            true if ours => Evidence::Wants,
            is_request => Evidence::Answers {
                solicited: !is_request && !packet.is_gratuitous(),
                overrides: true,
            },
        };
        let (neighbors, mac) = (&mut self.neighbors, packet.sender_mac);
        neighbors.learn(now, sender, mac, evidence, counters);
        self.send_resolved(counters);
    }

    /// RFC 5227, 2.4 (c): the address is kept, and announced once in ten seconds, so that two hosts that both keep it do not answer each other
    /// for ever. An announcement is a request for the sender's own address.
    fn defend(&mut self, now: Ns, address: Ipv4Addr, counters: &mut Counters) {
        let Some(mac) = self.mac.filter(|_| self.answers()) else {
            return;
        };
        let last = self.defended.iter().position(|(of, _)| *of == address);
        match last {
            Some(i) if now.since(self.defended[i].1) < DEFEND_INTERVAL => return,
            Some(i) => self.defended[i].1 = now,
            None => self.defended.push((address, now)),
        }
        let announcement = Packet {
            is_request: true,
            sender_mac: mac,
            sender: address,
            target_mac: Mac::default(),
            target: address,
        };
        let mut bytes = self.outbox.buffer(FRAME_BYTES);
        write(&announcement, Mac::BROADCAST, &mut bytes);
        self.push(Frame { bytes, meta: META }, counters);
        counters.arp_out += 1;
        counters.addresses_defended += 1;
    }

    fn reply(&mut self, request: &Packet, counters: &mut Counters) {
        let Some(mac) = self.mac.filter(|_| is_host(request.sender_mac, self.mac)) else {
            return;
        };
        let reply = Packet {
            is_request: false,
            sender_mac: mac,
            sender: request.target,
            target_mac: request.sender_mac,
            target: request.sender,
        };
        let mut bytes = self.outbox.buffer(FRAME_BYTES);
        write(&reply, reply.target_mac, &mut bytes);
        self.push(Frame { bytes, meta: META }, counters);
        counters.arp_out += 1;
    }

    /// What waited for a neighbour that has answered.
    pub(super) fn send_resolved(&mut self, counters: &mut Counters) {
        let mut resolved = std::mem::take(&mut self.neighbors.resolved);
        for frame in resolved.drain(..) {
            self.push(frame, counters);
        }
        self.neighbors.resolved = resolved;
    }

    pub(super) fn push(&mut self, frame: Frame, counters: &mut Counters) {
        if !self.outbox.push(frame) {
            counters.ip_out_discards += 1;
        }
    }

    /// Writes an ARP request or a Neighbor Solicitation into `slot`.
    pub(super) fn solicit(
        &mut self,
        solicitation: Solicitation,
        slot: &mut [u8],
        counters: &mut Counters,
    ) -> Option<TxFrame> {
        let target = match solicitation.target {
            IpAddr::V4(target) => target,
            IpAddr::V6(target) => {
                return self.solicit_v6(target, solicitation.unicast, slot, counters);
            }
        };
        let IpAddr::V4(sender) = self.addresses.source_for(target.into())? else {
            return None;
        };
        let request = Packet {
            is_request: true,
            sender_mac: self.mac?,
            sender,
            target_mac: Mac::default(),
            target,
        };
        let destination = solicitation.unicast.unwrap_or(Mac::BROADCAST);
        write(&request, destination, slot.get_mut(..FRAME_BYTES)?);
        counters.arp_out += 1;
        Some(META)
    }
}

/// RFC 5227, 1.1.
const DEFEND_INTERVAL: Ns = Ns::from_ms(10_000);
const FRAME_BYTES: usize = ethernet::HEADER_BYTES + arp::BYTES;
const META: TxFrame = TxFrame {
    len: FRAME_BYTES,
    checksum: None,
    segmentation: None,
    socket: None,
    payload_bytes: 0,
};

/// `into` has [`FRAME_BYTES`].
fn write(packet: &Packet, destination: Mac, into: &mut [u8]) {
    let header = ethernet::Header {
        destination,
        source: packet.sender_mac,
        ethertype: ethernet::ARP,
    };
    let Some((link, rest)) = into.split_first_chunk_mut() else {
        return;
    };
    header.emit(link);
    if let Some(rest) = rest.first_chunk_mut() {
        packet.emit(rest);
    }
}
