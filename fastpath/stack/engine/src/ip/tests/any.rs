//! Any frames: nothing fails, and nothing happens without a count.
use super::super::Input;
use super::support::*;
use crate::config::Medium;
use crate::frame::{RxChecksum, RxMeta};
use crate::wire::checksum::Sum;
use crate::wire::{ethernet, protocol};
use crate::{Counters, Ns};
use proptest::prelude::*;

/// A frame that is right, of any kind.
fn valid() -> impl Strategy<Value = Vec<u8>> {
    let tcp = |payload: &[u8]| tcp_segment(PEER.into(), OURS.into(), 5000, payload);
    let bytes = || prop::collection::vec(any::<u8>(), 0..100);
    prop_oneof![
        Just(arp_request(PEER_MAC, PEER, OURS)),
        Just(arp_reply(PEER_MAC, PEER)),
        Just(ndisc_solicitation()),
        bytes().prop_map(move |b| v4(protocol::TCP, &tcp(&b))),
        bytes().prop_map(|b| v6(
            protocol::TCP,
            &tcp_segment(PEER_V6.into(), OURS_V6.into(), 1, &b)
        )),
        bytes().prop_map(|b| v4(
            protocol::UDP,
            &udp_datagram(PEER.into(), OURS.into(), 1, 2, &b)
        )),
        (any::<u8>(), any::<u8>(), any::<u32>(), bytes())
            .prop_map(|(k, c, w, b)| v4(protocol::ICMP, &icmp_message(false, k, c, w, &b))),
        (any::<u8>(), any::<u8>(), any::<u32>(), bytes())
            .prop_map(|(k, c, w, b)| v6(protocol::ICMPV6, &icmp_message(true, k, c, w, &b))),
        (
            prop::sample::select(vec![0u8, 43, 44, 60, 6, 17, 58, 59, 99]),
            bytes()
        )
            .prop_map(|(p, b)| v6(p, &b)),
        (
            any::<u16>(),
            0u16..20,
            any::<bool>(),
            prop::sample::select(vec![1u8, 6, 17]),
            bytes()
        )
            .prop_map(|(id, offset, more, protocol, b)| {
                let mut header = header_v4(OURS, protocol, b.len());
                header.identification = id % 4;
                (header.fragment_offset, header.more_fragments) = (offset * 8, more);
                ethernet(OUR_MAC, ethernet::IPV4, &packet_v4(&header, &b))
            }),
    ]
}

/// As it is, with bytes changed (the IPv4 header's checksum put right again half of the time), or cut.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (
        valid(),
        changes,
        any::<bool>(),
        any::<Option<prop::sample::Index>>(),
    )
        .prop_map(|(mut frame, changes, fix, cut)| {
            for (at, byte) in changes {
                let at = at.index(frame.len());
                frame[at] = byte;
            }
            if fix && frame.len() >= 34 {
                frame[24..26].fill(0);
                let field = Sum::of(&frame[14..34]).field().to_be_bytes();
                frame[24..26].copy_from_slice(&field);
            }
            if let Some(cut) = cut {
                frame.truncate(cut.index(frame.len() + 1));
            }
            frame
        })
}

proptest! {
    #[test]
    fn any_frames_are_handled_or_counted(
        frames in prop::collection::vec((frame(), 0u64..5_000, any::<bool>()), 1..60),
    ) {
        let mut net = Net::new();
        for (frame, ms, good) in frames {
            net.pass(ms);
            let checksum = if good { RxChecksum::Good } else { RxChecksum::Unknown };
            let meta = RxMeta { checksum, segment_bytes: u16::from(good), for_all: false };
            let before = net.counters;
            let input = net.ip.receive(net.now, &frame, meta, &mut net.counters);
            match input {
                Input::Reassembled(packet) => {
                    let again = net.ip.receive_reassembled(net.now, &packet, false, &mut net.counters);
                    prop_assert!(!matches!(again, Input::Reassembled(_)));
                }
                Input::Udp(packet, _) => net.ip.refuse_port(net.now, &packet, &mut net.counters),
                Input::Error(error) => {
                    net.ip.lower_mtu(net.now, &error);
                }
                Input::Tcp(..) | Input::Done => {}
            }
            prop_assert_ne!(before, net.counters, "nothing happens without a count");
            for frame in net.sent() {
                prop_assert!(frame.len() <= 1514);
            }
        }
        // Whatever was begun ends.
        for _ in 0..10 {
            net.pass(100_000);
            net.sent();
            while net.ip.next_unreachable().is_some() {}
        }
        prop_assert_eq!(net.ip.poll_at(), None::<Ns>);
    }

    #[test]
    fn any_bytes_are_no_frame(bytes in prop::collection::vec(any::<u8>(), 0..200), is_ip: bool) {
        let mut config = config();
        if is_ip {
            config.medium = Medium::Ip;
        }
        let mut net = Net::with(&config);
        net.receive(&bytes);
        prop_assert_ne!(net.counters, Counters::default());
    }
}
