//! Several engines on one device: what all of them are given is counted as by one alone.
use super::super::Input;
use super::fragments::{fragments_v4, fragments_v6};
use super::support::*;
use crate::config::Share;
use crate::frame::RxMeta;
use crate::wire::ndisc::Message;
use crate::wire::{ipv6, protocol};

/// What engine `index` counts of these frames, and of the time behind them.
fn counts(index: u16, of: u16, frames: &[Vec<u8>]) -> (Vec<u64>, usize) {
    let mut config = config();
    config.share = Share {
        index,
        of,
        ..Share::ALONE
    };
    let mut net = Net::with(&config);
    let meta = RxMeta {
        for_all: of > 1,
        ..RxMeta::default()
    };
    let mut for_transports = 0;
    for frame in frames {
        let mut input = net.ip.receive(net.now, frame, meta, &mut net.counters);
        let whole;
        if let Input::Reassembled(packet) = input {
            whole = packet;
            let (now, counters) = (net.now, &mut net.counters);
            input = net.ip.receive_reassembled(now, &whole, false, counters);
        }
        for_transports += usize::from(!matches!(input, Input::Done));
    }
    net.pass(60_000);
    net.sent();
    let values = net.counters.rows().map(|(_, _, value)| value).collect();
    (values, for_transports)
}

fn frames() -> Vec<Vec<u8>> {
    let advertisement = |target| Message::Advertisement {
        target,
        mac: Some(PEER_MAC),
        router: false,
        solicited: true,
        overrides: true,
    };
    let mut frames = vec![
        ndisc(&advertisement(PEER_V6), 255),
        ndisc(&advertisement(OURS_V6), 255),
        ndisc(&advertisement(PEER_V6), 64),
        arp_reply(PEER_MAC, PEER),
        arp_reply(PEER_MAC, OURS),
    ];
    for port in 1000..1020 {
        let bytes = tcp_segment(PEER.into(), OURS.into(), port, &[1; 100]);
        frames.extend(fragments_v4(protocol::TCP, &bytes, 40));
        let bytes = udp_datagram(PEER_V6.into(), OURS_V6.into(), port, 80, &[1; 100]);
        frames.extend(fragments_v6(protocol::UDP, &bytes, 40));
    }
    let echo = icmp_message(false, 8, 0, 0, &[1; 100]);
    frames.extend(fragments_v4(protocol::ICMP, &echo, 40));
    frames.extend(fragments_v4(132, &[1; 100], 40));
    // A rest that never comes, one that is no multiple of eight, and one for others.
    let datagram = udp_datagram(PEER.into(), OURS.into(), 1, 2, &[1; 100]);
    frames.push(fragments_v4(protocol::UDP, &datagram, 40)[0].clone());
    frames.push(v6(
        ipv6::FRAGMENT,
        &[17, 0, 0, 1, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    ));
    let mut foreign = fragments_v4(protocol::UDP, &datagram, 40).swap_remove(0);
    foreign[5] ^= 1;
    frames.push(foreign);
    frames
}

#[test]
fn what_all_engines_see_counts_once() {
    let (alone, for_transports) = counts(0, 1, &frames());
    assert_eq!(for_transports, 40);
    let several = [0, 1, 2].map(|index| counts(index, 3, &frames()));
    let sum = |at: usize| several.iter().map(|(values, _)| values[at]).sum::<u64>();
    let names = crate::Counters::default();
    for (at, (group, name, _)) in names.rows().enumerate() {
        assert_eq!(sum(at), alone[at], "{group}{name}");
    }
    for (_, for_transports) in several {
        assert!((3..38).contains(&for_transports), "{for_transports}");
    }
}
