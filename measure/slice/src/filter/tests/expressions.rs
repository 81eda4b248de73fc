//! Expressions of every form of the manual page, over packets: libpcap's compiler and interpreter,
//! ours, and the translation.
use super::{machine, packets};
use crate::filter::{Filter, FilterError, Link, REACH, Scratch, Verdict, libpcap};
use proptest::prelude::*;
use std::ffi::CString;

/// For packets from the network header; all can be translated.
pub(super) const NETWORK: &[&str] = &[
    "",
    "ip",
    "ip6",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "igmp",
    "sctp",
    "esp",
    "ah",
    "ip proto 47",
    "ip6 proto 17",
    "proto \\tcp",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "dst host 10.0.0.2",
    "src or dst host 10.0.0.2",
    "src and dst host 10.0.0.1",
    "ip host 10.0.0.1",
    "host 2001:db8::a00:1",
    "ip6 src host 2001:db8::a00:2",
    "net 10.0.0.0/8",
    "net 10",
    "net 192.168.1.0 mask 255.255.255.0",
    "src net 192.168.1",
    "net 2001:db8::/32",
    "dst net 2001:db8::a00:0/112",
    "port 80",
    "src port 53",
    "dst port 443",
    "tcp port 22",
    "udp port 53",
    "tcp dst port 80",
    "src or dst port 22",
    "src and dst port 80",
    "port ssh",
    "portrange 50-90",
    "tcp src portrange 400-500",
    "less 100",
    "greater 200",
    "len > 60",
    "len = 40",
    "len & 1 != 0",
    "tcp[tcpflags] & (tcp-syn) != 0",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[tcpflags] == tcp-syn|tcp-ack",
    "tcp[13] & 2 = 2",
    "ip[6:2] & 0x1fff = 0",
    "ip[0] & 0xf > 5",
    "ip[8] < 65",
    "icmp[icmptype] = icmp-echo",
    "icmp6[icmp6type] = 128",
    "udp[4:2] > 20",
    "ip6[6] = 17",
    "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
    "ip[ip[0]&0xf] = 3",
    "tcp[((tcp[12:1] & 0xf0) >> 2):4] = 0x47455420",
    "ip[9] + ip[8] * 2 > 70",
    "ip[16] % 3 = 1",
    "ip[2:2] / (ip[8] - 63) > 1",
    "ip[12:4] ^ ip[16:4] < 16",
    "1 << (ip[8] - 40) & 0xff000000 != 0",
    "not tcp",
    "not (tcp or udp)",
    "! port 22",
    "tcp and not port 22 and (host 10.0.0.1 or net 192.168.0.0/16)",
    "host 10.0.0.1 and tcp port 80 or udp port 53",
    "(tcp or udp) && port 53 || icmp",
    "ip multicast",
    "ip6 multicast",
    "arp or tcp",
    "ip[1] & 0xfc >> 2 = 46",
];

pub(super) const ETHERNET: &[&str] = &[
    "tcp",
    "arp",
    "port 80",
    "vlan",
    "vlan 100",
    "vlan and tcp port 80",
    "vlan 100 and host 10.0.0.1",
    "ether host 02:00:00:00:00:01",
    "ether src 02:00:00:00:00:02",
    "ether broadcast",
    "ether multicast",
    "broadcast",
    "ether proto 0x86dd",
    "ether[0] & 1 = 1",
    "ether proto \\arp",
    "mpls",
    "pppoes",
    "tcp[tcpflags] & tcp-syn != 0 and not ether broadcast",
    "host 10.0.0.2 and not vlan",
    "len > 100 and ip",
];

fn of_all(expressions: &'static [&str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(expressions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn of_the_network_layer(expression in of_all(NETWORK), packet in packets::network(), more in prop_oneof![Just(0u32), 0u32..2000]) {
        let wire_len = packet.len() as u32 + more;
        let filter = Filter::compile(expression, Link::Network).unwrap();
        let insns = libpcap::compile(&CString::new(expression).unwrap(), libpcap::DLT_RAW).unwrap();
        prop_assert_eq!(filter.matches(&packet, wire_len), libpcap::interpret(&insns, &packet, wire_len) != 0);
        let copied = &packet[..packet.len().min(REACH as usize)];
        let ours = filter.verdict(copied, wire_len);
        let block = filter.to_ebpf(400, Scratch::Stack(-64)).unwrap();
        let outcome = machine::run(&block, &packet, wire_len);
        prop_assert_eq!(outcome.matched, ours == Verdict::Match);
        prop_assert_eq!(outcome.cut_off, ours == Verdict::CutOff);
    }

    #[test]
    fn of_ethernet(expression in of_all(ETHERNET), frame in packets::ethernet()) {
        let wire_len = frame.len() as u32;
        let filter = Filter::compile(expression, Link::Ethernet).unwrap();
        let insns = libpcap::compile(&CString::new(expression).unwrap(), libpcap::DLT_EN10MB).unwrap();
        prop_assert_eq!(filter.matches(&frame, wire_len), libpcap::interpret(&insns, &frame, wire_len) != 0);
    }
}

#[test]
fn an_ethernet_filter_is_no_block() {
    let filter = Filter::compile("tcp", Link::Ethernet).unwrap();
    let refused = filter.to_ebpf(4096, Scratch::Stack(-64));
    assert_eq!(refused, Err(FilterError::LinkHeader));
}

#[test]
fn what_the_copied_bytes_cannot_answer_is_refused() {
    let block = |expression, room| {
        Filter::compile(expression, Link::Network)
            .unwrap()
            .to_ebpf(room, Scratch::Stack(-64))
    };
    assert!(block("ip[252:4] = 0", 100).is_ok());
    let (end, reach) = (257, REACH);
    assert_eq!(
        block("ip[253:4] = 0", 100),
        Err(FilterError::TooFar { end, reach })
    );
    assert_eq!(
        block("ip[256] = 0", 100),
        Err(FilterError::TooFar { end, reach })
    );
    let whole = block("tcp port 80", 100).unwrap();
    let (needed, room) = (whole.len(), whole.len() - 1);
    assert_eq!(
        block("tcp port 80", room),
        Err(FilterError::TooLong { needed, room })
    );
}

#[test]
fn errors_say_where() {
    let at = |expression, link| match Filter::compile(expression, link) {
        Ok(_) => panic!("{expression} compiles"),
        Err(error) => (error.at(), error.to_string()),
    };
    for (expression, place, words) in [
        ("tcp prot 80", Some(4), "syntax error"),
        ("tcp and", Some(7), "syntax error"),
        ("(tcp", Some(4), "syntax error"),
        ("tcp) and udp", Some(3), "syntax error"),
        ("tcp or or udp", Some(7), "syntax error"),
        (
            "host 10.0.0.1 and port 99999",
            Some(23),
            "illegal port number",
        ),
        (
            "tcp and port nosuchport and udp",
            Some(13),
            "port 'nosuchport'",
        ),
        ("net 10.0.0.1/8", Some(4), "non-network bits"),
        ("udp and vlan", Some(8), "VLAN"),
        (
            "tcp and ether host 02:00:00:00:00:01",
            Some(19),
            "only on ethernet",
        ),
        ("arp", Some(0), "rejects all"),
        ("tcp and ip broadcast", Some(11), "netmask"),
        ("tcp\0", Some(3), "NUL"),
        ("tcp and ether[0] & 1 = 1", Some(8), "link header"),
        ("ip[0]-link [ 0 ] = 1", Some(6), "link header"),
        ("inbound", None, "inbound"),
        ("ip6 protochain 6", None, "loop"),
    ] {
        let (found, said) = at(expression, Link::Network);
        assert_eq!(found, place, "{expression}: {said}");
        assert!(said.contains(words), "{expression}: {said}");
    }
    let (found, _) = at("ether host 02:00:00:00:00:01 and vlan 5000", Link::Ethernet);
    assert_eq!(found, Some(38));
}
