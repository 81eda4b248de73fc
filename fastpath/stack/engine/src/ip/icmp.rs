//! ICMP (RFC 792): echo, and errors about packets of ours.
use super::addresses::Recipient;
use super::errors::set_checksum;
use super::input::{Input, Packet};
use super::interface::Interface;
use super::neighbors::Hop;
use super::outgoing::Outgoing;
use super::quoted;
use super::receive::Arrival;
use crate::wire::checksum::Sum;
use crate::wire::icmp::{Message, v4};
use crate::wire::protocol;
use crate::{Counters, SocketError};

/// Below it no path MTU is believed (Linux: min_pmtu).
const MIN_PATH_MTU: u16 = 552;
/// RFC 1191, 7.1: what an MTU may be where the router did not tell.
const PLATEAUS: [u16; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 576, 552];

impl Interface {
    pub(super) fn receive_icmp<'a>(
        &mut self,
        arrival: &Arrival,
        packet: &Packet,
        bytes: &[u8],
        counters: &mut Counters,
    ) -> Input<'a> {
        counters.icmp_in_msgs += 1;
        let Some(message) = Message::parse(bytes) else {
            counters.icmp_in_errors += 1;
            return Input::Done;
        };
        if !Sum::of(bytes).is_valid() {
            counters.icmp_in_csum_errors += 1;
            counters.icmp_in_errors += 1;
            return Input::Done;
        }
        match message.kind {
            v4::ECHO => {
                counters.icmp_in_echos += 1;
                self.answer_echo(arrival, packet, bytes, counters);
            }
            v4::ECHO_REPLY => counters.icmp_in_echo_reps += 1,
            v4::UNREACHABLE | v4::TIME_EXCEEDED | v4::PARAMETER_PROBLEM => {
                return self.receive_error(&message, counters);
            }
            // Redirects: routes are configured. Others are history.
            _ => counters.icmp_in_errors += 1,
        }
        Input::Done
    }

    fn receive_error<'a>(&mut self, message: &Message, counters: &mut Counters) -> Input<'a> {
        match message.kind {
            v4::UNREACHABLE => counters.icmp_in_dest_unreachs += 1,
            v4::TIME_EXCEEDED => counters.icmp_in_time_excds += 1,
            _ => counters.icmp_in_parm_probs += 1,
        }
        let (error, hard) = meaning(message.kind, message.code);
        let Some(mut error) = quoted::error(message.body, error) else {
            counters.icmp_in_errors += 1;
            return Input::Done;
        };
        error.hard = hard;
        if (message.kind, message.code) == (v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED) {
            let sent = quoted::total_len_v4(message.body);
            error.mtu = Some(match message.next_hop_mtu() {
                0 => plateau(sent),
                mtu => mtu.max(MIN_PATH_MTU),
            });
        }
        self.checked(error, counters)
    }

    /// RFC 1122, 3.2.2.6: an echo to a group may be ignored, and is, so that nobody uses us against others.
    pub(super) fn answer_echo(
        &mut self,
        arrival: &Arrival,
        packet: &Packet,
        bytes: &[u8],
        counters: &mut Counters,
    ) {
        let for_us = arrival.recipient == Recipient::Us && !arrival.link_group;
        if !for_us || packet.source.is_unspecified() || !self.answers() {
            counters.icmp_ignored += 1;
            return;
        }
        let (source, destination) = (packet.destination, packet.source);
        let (kind, protocol) = match source {
            std::net::IpAddr::V4(_) => (v4::ECHO_REPLY, protocol::ICMP),
            std::net::IpAddr::V6(_) => (crate::wire::icmp::v6::ECHO_REPLY, protocol::ICMPV6),
        };
        let mut reply = self.outbox.buffer(bytes.len());
        reply.copy_from_slice(bytes);
        reply[0] = kind;
        set_checksum(source, destination, &mut reply);
        let mut outgoing = Outgoing::new(source, destination, protocol, reply.len());
        outgoing.traffic_class = packet.traffic_class;
        self.push_packet(arrival.now, outgoing, &reply, &mut Hop::default(), counters);
        self.outbox.recycle(reply);
        counters.icmp_out_msgs += 1;
        counters.icmp_out_echo_reps += 1;
    }

    /// For transports only where the quoted packet can be ours.
    pub(super) fn checked<'a>(
        &self,
        error: super::input::IcmpError,
        counters: &mut Counters,
    ) -> Input<'a> {
        if self.addresses.is_local(error.local) {
            return Input::Error(error);
        }
        counters.icmp_in_errors += 1;
        Input::Done
    }
}

/// The largest plateau below `sent` bytes.
fn plateau(sent: u16) -> u16 {
    let below = PLATEAUS.into_iter().find(|mtu| *mtu < sent);
    below.unwrap_or(MIN_PATH_MTU)
}

/// As Linux converts (net/ipv4/icmp.c, icmp_err_convert): the error, and whether it is hard.
fn meaning(kind: u8, code: u8) -> (SocketError, bool) {
    use SocketError::{
        HostUnreachable, MessageTooLong, NetworkUnreachable, NoOption, NotSupported, Protocol,
        Refused,
    };
    match (kind, code) {
        (v4::UNREACHABLE, v4::NET) => (NetworkUnreachable, false),
        (v4::UNREACHABLE, v4::HOST) => (HostUnreachable, false),
        (v4::UNREACHABLE, v4::PROTOCOL) => (NoOption, true),
        (v4::UNREACHABLE, v4::PORT) => (Refused, true),
        (v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED) => (MessageTooLong, false),
        (v4::UNREACHABLE, 5) => (NotSupported, false),
        (v4::UNREACHABLE, 6 | 9) => (NetworkUnreachable, true),
        (v4::UNREACHABLE, 11) => (NetworkUnreachable, false),
        (v4::UNREACHABLE, 12) => (HostUnreachable, false),
        (v4::UNREACHABLE, _) => (HostUnreachable, true),
        (v4::TIME_EXCEEDED, _) => (HostUnreachable, false),
        _ => (Protocol, true),
    }
}
