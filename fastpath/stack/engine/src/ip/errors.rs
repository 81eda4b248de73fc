//! ICMP errors that are sent (RFC 1122, 3.2.2; RFC 4443, 2.4).
use super::addresses::Recipient;
use super::input::Packet;
use super::interface::Interface;
use super::neighbors::Hop;
use super::outgoing::Outgoing;
use super::rate_limit::Verdict;
use super::receive::Arrival;
use crate::wire::checksum::Sum;
use crate::wire::icmp::{self, v4, v6};
use crate::wire::{ipv6, protocol};
use crate::{Counters, Ns};
use std::net::IpAddr;

/// Packets with errors (RFC 1812, 4.3.2.3; RFC 4443, 2.4 (c)).
const MAX_BYTES_V4: usize = 576;
const MAX_BYTES_V6: usize = ipv6::MIN_MTU as usize;

impl Interface {
    /// No socket has the port of a datagram that [`Interface::receive`] gave.
    pub(crate) fn refuse_port(&mut self, now: Ns, packet: &Packet, counters: &mut Counters) {
        let (kind, code) = match packet.source {
            IpAddr::V4(_) => (v4::UNREACHABLE, v4::PORT),
            IpAddr::V6(_) => (v6::UNREACHABLE, v6::PORT),
        };
        if self.addresses.is_local(packet.destination)
            && self.send_error(now, packet, kind, code, 0, counters)
        {
            counters.icmp_out_dest_unreachs += 1;
        }
    }

    /// IPv4 only; IPv6 has a parameter problem for it.
    pub(super) fn refuse_protocol(
        &mut self,
        arrival: &Arrival,
        packet: &Packet,
        counters: &mut Counters,
    ) {
        let (kind, code) = (v4::UNREACHABLE, v4::PROTOCOL);
        if may_answer(arrival)
            && !self.is_silent(arrival)
            && self.send_error(arrival.now, packet, kind, code, 0, counters)
        {
            counters.icmp_out_dest_unreachs += 1;
        }
    }

    pub(super) fn parameter_problem(
        &mut self,
        arrival: &Arrival,
        packet: &Packet,
        code: u8,
        pointer: u32,
        counters: &mut Counters,
    ) {
        // RFC 4443, 2.4 (e): unknown options are reported to senders of multicast, too; then our address is another one.
        if may_answer(arrival)
            && !self.is_silent(arrival)
            && self.send_error(
                arrival.now,
                packet,
                v6::PARAMETER_PROBLEM,
                code,
                pointer,
                counters,
            )
        {
            counters.icmp_out_parm_probs += 1;
        }
    }

    /// About `packet`, which was for us, to its source. False: it was not sent, which is counted where a limit is why.
    pub(super) fn send_error(
        &mut self,
        now: Ns,
        packet: &Packet,
        kind: u8,
        code: u8,
        word: u32,
        counters: &mut Counters,
    ) -> bool {
        let (source, destination) = (packet.destination, packet.source);
        if destination.is_unspecified() || super::quoted::is_icmp_error(packet.bytes) {
            return false;
        }
        // Linux has none on loopback (icmpv4_xrlim_allow).
        let allowed = match self.addresses.is_local(destination) {
            true => Verdict::Send,
            false => self.errors.take(now, destination),
        };
        match allowed {
            Verdict::Send => {}
            Verdict::OverAll => {
                counters.icmp_out_rate_limit_global += 1;
                return false;
            }
            Verdict::OverHost => {
                counters.icmp_out_rate_limit_host += 1;
                return false;
            }
        }
        let (protocol, most) = match destination {
            IpAddr::V4(_) => (protocol::ICMP, MAX_BYTES_V4 - 20),
            IpAddr::V6(_) => (protocol::ICMPV6, MAX_BYTES_V6 - ipv6::HEADER_BYTES),
        };
        let quoted = packet.bytes.len().min(most - icmp::HEADER_BYTES);
        let mut message = [0; MAX_BYTES_V6];
        let message = &mut message[..icmp::HEADER_BYTES + quoted];
        if let Some(header) = message.first_chunk_mut() {
            icmp::emit(header, kind, code, word);
        }
        message[icmp::HEADER_BYTES..].copy_from_slice(&packet.bytes[..quoted]);
        set_checksum(source, destination, message);
        let outgoing = Outgoing::new(source, destination, protocol, message.len());
        self.push_packet(now, outgoing, message, &mut Hop::default(), counters);
        counters.icmp_out_msgs += 1;
        true
    }
}

/// RFC 1122, 3.2.2: nothing is sent about packets to groups, at either layer.
fn may_answer(arrival: &Arrival) -> bool {
    !arrival.link_group && arrival.recipient == Recipient::Us
}

/// ICMPv6 has a pseudo-header (RFC 4443, 2.3), ICMP has none.
pub(super) fn set_checksum(source: IpAddr, destination: IpAddr, message: &mut [u8]) {
    icmp::set_checksum(message, 0);
    let pseudo = match source {
        IpAddr::V4(_) => Sum::default(),
        IpAddr::V6(_) => {
            let len = message.len() as u32;
            Sum::of_pseudo_header(source, destination, protocol::ICMPV6, len)
        }
    };
    icmp::set_checksum(message, pseudo.and(Sum::of(message)).field());
}
