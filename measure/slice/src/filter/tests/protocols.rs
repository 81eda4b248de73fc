//! Which expressions choose TCP's packets only.
use super::{expressions, packets};
use crate::filter::{Filter, Link};
use proptest::prelude::*;

fn only_tcp(expression: &str) -> bool {
    let filter = Filter::compile(expression, Link::Network).unwrap();
    filter.takes_only_tcp()
}

#[test]
fn expressions_of_tcp_alone_are_known() {
    for expression in [
        "tcp port 80",
        "ip and tcp",
        "ip6[6] = 6 and ip6",
        "tcp[tcpflags] & tcp-syn != 0",
        "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
        "tcp port 80 or (ip and tcp and host 10.0.0.1)",
        "ip[8:2] & 0xff = 6",
    ] {
        assert!(only_tcp(expression), "{expression}");
    }
}

#[test]
fn expressions_that_take_other_packets_are_too() {
    for expression in [
        "",
        "udp",
        "icmp",
        "port 80",
        "not tcp port 80",
        "tcp port 80 or udp port 53",
        "tcp port 80 or host 10.0.0.1",
        "ip[9] > 5",
        "ip[8:2] & 0xfe = 6",
        // Behind a fragment's header of IPv6.
        "tcp",
    ] {
        assert!(!only_tcp(expression), "{expression}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_takes_only_tcp_takes_nothing_else(
        expression in prop::sample::select(expressions::NETWORK),
        packet in packets::network(),
    ) {
        let filter = Filter::compile(expression, Link::Network).unwrap();
        let protocol = match packet.first().map(|byte| byte >> 4) {
            Some(4) => packet.get(9),
            Some(6) => packet.get(6),
            _ => None,
        };
        if filter.takes_only_tcp() && filter.matches(&packet, packet.len() as u32) {
            prop_assert!(matches!(protocol, None | Some(6)), "{expression} took {protocol:?}");
        }
    }
}
