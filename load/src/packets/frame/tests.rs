use super::*;
use crate::packets::flow::{Flow, numbered};
use crate::packets::stamp::Stamped;
use hopscope_event::Tsc;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LINK: Link = Link {
    source: [2, 0, 0, 0, 0, 1],
    destination: [2, 0, 0, 0, 0, 2],
};

fn flow(family: Family, protocol: Protocol) -> Flow {
    let (source, destination): (IpAddr, IpAddr) = match family {
        Family::V4 => (
            Ipv4Addr::new(198, 18, 0, 1).into(),
            Ipv4Addr::new(198, 19, 255, 1).into(),
        ),
        Family::V6 => (
            "2001:2::1".parse::<Ipv6Addr>().expect("valid").into(),
            "2001:2:0:ffff::1"
                .parse::<Ipv6Addr>()
                .expect("valid")
                .into(),
        ),
    };
    Flow {
        protocol,
        source,
        destination,
        source_port: 1024,
        destination_port: 9,
    }
}

fn frames(family: Family, protocol: Protocol, sizes: &str) -> Result<Frames, PacketsError> {
    let flows = FlowTable::new(&numbered(flow(family, protocol), 70_000)).expect("one family");
    Frames::new(flows, &sizes.parse().expect("sizes"), LINK, 1514)
}

/// Word by word from the frame alone, as a receiver that knows nothing of templates does it.
fn checksums_hold(frame: &[u8]) {
    let words = |bytes: &[u8]| -> u64 {
        bytes
            .chunks(2)
            .map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0)))
            .sum()
    };
    let (addresses, number, start) = match frame[12..14] {
        [0x08, 0x00] => {
            assert_eq!(super::super::checksum::fold(words(&frame[14..34])), 0xffff);
            assert_eq!(
                u16::from_be_bytes([frame[16], frame[17]]) as usize,
                frame.len() - 14
            );
            (26..34, frame[23], 34)
        }
        _ => {
            assert_eq!(
                u16::from_be_bytes([frame[18], frame[19]]) as usize,
                frame.len() - 54
            );
            (22..54, frame[20], 54)
        }
    };
    let mut total = words(&frame[start..]);
    if number != 1 {
        total += words(&frame[addresses]) + u64::from(number) + (frame.len() - start) as u64;
    }
    assert_eq!(super::super::checksum::fold(total), 0xffff, "{frame:02x?}");
}

#[test]
fn every_kind_and_size_has_right_checksums_and_lengths() {
    for family in [Family::V4, Family::V6] {
        for protocol in Protocol::ALL {
            let frames = frames(family, protocol, "96,512,1499,1500,1518").expect("room");
            for flow in [0, 1, 777, 64_511, 64_512, 69_999] {
                for size in 0..5 {
                    let seq = u64::from(flow) * 5 + size as u64;
                    let sent = Tsc(0xfedc_ba98_7654 + seq);
                    let stamp = Stamped::new(7, seq, flow, sent, sent + seq);
                    let mut slot = [0xaa; 2048];
                    let len = frames.write(&mut slot, flow, size, stamp.to_bytes());
                    checksums_hold(&slot[..len]);
                    assert_eq!(len, [92, 508, 1495, 1496, 1514][size]);
                    assert!(slot[len..].iter().all(|byte| *byte == 0xaa));
                    let at = frames.layouts()[0].stamp();
                    let bytes = slot[at..at + STAMP_BYTES].try_into().expect("its length");
                    assert_eq!(Stamped::from_bytes(bytes), Some(stamp));
                }
            }
        }
    }
}

#[test]
fn the_smallest_frame_holds_a_stamp_where_the_headers_leave_room() {
    for protocol in [Protocol::Udp, Protocol::Icmp] {
        assert!(frames(Family::V4, protocol, "64").is_ok());
    }
    let refused = |family, protocol| {
        frames(family, protocol, "64")
            .expect_err("too short")
            .to_string()
    };
    assert!(refused(Family::V4, Protocol::Tcp).contains("76"));
    assert!(refused(Family::V6, Protocol::Udp).contains("84"));
    assert!(refused(Family::V6, Protocol::Tcp).contains("96"));
    let error = frames(Family::V4, Protocol::Udp, "1519").expect_err("longer than the MTU");
    assert!(error.to_string().contains("1518"), "{error}");
}

/// A whole frame, byte by byte.
#[test]
fn udp_over_ipv4() {
    let frames = frames(Family::V4, Protocol::Udp, "64").expect("room");
    let stamp = Stamped::new(1, 2, 3, Tsc(4), Tsc(5));
    let mut slot = [0; 64];
    assert_eq!(frames.write(&mut slot, 3, 0, stamp.to_bytes()), 60);
    let headers = [
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0xaf, 0x96, 198, 18, 0, 1, 198, 19, 255,
        1, // IPv4
        0x04, 0x03, 0, 9, 0, 26, // UDP up to the checksum
    ];
    assert_eq!(slot[..40], headers);
    assert_eq!(slot[42..60], stamp.to_bytes());
}
