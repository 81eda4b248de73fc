//! ICMPv6 (RFC 4443): echo, errors about packets of ours, and what NDISC takes.
use super::input::{Input, Packet};
use super::interface::Interface;
use super::quoted;
use super::receive::{Arrival, is_intact};
use crate::wire::icmp::{Message, v6};
use crate::wire::{ipv6, protocol};
use crate::{Counters, SocketError};

impl Interface {
    pub(super) fn receive_icmpv6<'a>(
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
        if !is_intact(
            crate::frame::RxMeta::default(),
            packet,
            protocol::ICMPV6,
            bytes,
        ) {
            counters.icmp_in_csum_errors += 1;
            counters.icmp_in_errors += 1;
            return Input::Done;
        }
        match message.kind {
            v6::ECHO => {
                counters.icmp_in_echos += 1;
                self.answer_echo(arrival, packet, bytes, counters);
            }
            v6::ECHO_REPLY => counters.icmp_in_echo_reps += 1,
            v6::NEIGHBOR_SOLICITATION | v6::NEIGHBOR_ADVERTISEMENT => {
                self.receive_ndisc(arrival, packet, bytes, counters);
            }
            v6::ROUTER_SOLICITATION | v6::ROUTER_ADVERTISEMENT | v6::REDIRECT => {
                counters.nd_in += 1;
                counters.nd_ignored += 1;
            }
            0..v6::ECHO => return self.receive_error_v6(&message, counters),
            // Multicast listener queries and other information.
            _ => counters.icmp_ignored += 1,
        }
        Input::Done
    }

    fn receive_error_v6<'a>(&mut self, message: &Message, counters: &mut Counters) -> Input<'a> {
        match message.kind {
            v6::TIME_EXCEEDED => counters.icmp_in_time_excds += 1,
            v6::PARAMETER_PROBLEM => counters.icmp_in_parm_probs += 1,
            v6::UNREACHABLE | v6::PACKET_TOO_BIG => counters.icmp_in_dest_unreachs += 1,
            // Whoever it is about is told (RFC 4443, 2.4 (a)): an error where that is nobody.
            _ => {}
        }
        let (error, hard) = meaning(message.kind, message.code);
        let Some(mut error) = quoted::error(message.body, error) else {
            counters.icmp_in_errors += 1;
            return Input::Done;
        };
        error.hard = hard;
        if message.kind == v6::PACKET_TOO_BIG {
            // RFC 8201, 4: less than the least MTU is not believed.
            let mtu = u16::try_from(message.word).unwrap_or(u16::MAX);
            error.mtu = Some(mtu).filter(|mtu| *mtu >= ipv6::MIN_MTU);
            if error.mtu.is_none() {
                counters.icmp_in_errors += 1;
                return Input::Done;
            }
        }
        self.checked(error, counters)
    }
}

/// As Linux converts (net/ipv6/icmp.c, icmpv6_err_convert).
fn meaning(kind: u8, code: u8) -> (SocketError, bool) {
    use SocketError::{
        Access, HostUnreachable, MessageTooLong, NetworkUnreachable, Protocol, Refused,
    };
    match (kind, code) {
        (v6::UNREACHABLE, v6::NO_ROUTE) => (NetworkUnreachable, false),
        (v6::UNREACHABLE, v6::PORT) => (Refused, true),
        (v6::UNREACHABLE, v6::PROHIBITED | 5 | 6) => (Access, true),
        (v6::UNREACHABLE, _) => (HostUnreachable, false),
        (v6::PACKET_TOO_BIG, _) => (MessageTooLong, false),
        (v6::TIME_EXCEEDED, _) => (HostUnreachable, false),
        (v6::PARAMETER_PROBLEM, _) => (Protocol, true),
        // Of a type that is not known, which ends nothing (icmpv6_err_convert in net/ipv6/icmp.c).
        _ => (Protocol, false),
    }
}
