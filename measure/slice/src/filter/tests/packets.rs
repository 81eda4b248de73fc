//! Packets such as filters ask about, whole and damaged.
use proptest::prelude::*;

/// From the network header; at most 400 bytes.
pub(super) fn network() -> impl Strategy<Value = Vec<u8>> {
    let address = prop_oneof![
        Just([10u8, 0, 0, 1]),
        Just([10, 0, 0, 2]),
        Just([192, 168, 1, 7]),
        any::<[u8; 4]>()
    ];
    let port = prop::sample::select(vec![22u16, 53, 80, 443, 8080, 5001]);
    let proto = prop::sample::select(vec![1u8, 2, 6, 6, 6, 17, 17, 47, 50, 58, 132]);
    let fields = (
        any::<bool>(),
        proto,
        address.clone(),
        address,
        port.clone(),
        port,
        any::<u8>(),
        0u8..3,
    );
    let rest = (
        prop::collection::vec(any::<u8>(), 0..300),
        prop::option::of((0usize..60, any::<u8>())),
        prop::option::of(0usize..60),
    );
    (fields, rest).prop_map(
        |((v6, proto, src, dst, sport, dport, flags, options), (payload, damage, cut))| {
            let mut packet = if v6 {
                let mut header = vec![0x60, 0, 0, 0, 0, 0, proto, 64];
                for end in [src, dst] {
                    header.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
                    header.extend(end);
                }
                header
            } else {
                // One in three has options, one is a later fragment.
                let mut header = vec![0x45 + (options == 1) as u8, 0, 0, 0, 0, 0];
                header.extend([0, (options == 2) as u8 * 7, 64, proto, 0, 0]);
                header.extend(src);
                header.extend(dst);
                header.resize(20 + (options == 1) as usize * 4, 1);
                header
            };
            packet.extend(sport.to_be_bytes());
            packet.extend(dport.to_be_bytes());
            packet.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0, 9, 0, 0, 0, 0]);
            packet.extend(payload);
            if let Some((at, byte)) = damage
                && let Some(place) = packet.get_mut(at)
            {
                *place = byte;
            }
            packet.truncate(cut.unwrap_or(usize::MAX));
            packet
        },
    )
}

/// The same behind an Ethernet header, some with a VLAN tag, some of another protocol.
pub(super) fn ethernet() -> impl Strategy<Value = Vec<u8>> {
    (network(), any::<bool>(), 0u8..6).prop_map(|(packet, to_all, kind)| {
        let mut frame = if to_all {
            vec![0xff; 6]
        } else {
            vec![2, 0, 0, 0, 0, 2]
        };
        frame.extend([2, 0, 0, 0, 0, 1]);
        if kind == 1 {
            frame.extend([0x81, 0, 0, 100]);
        }
        frame.extend(match (kind, packet.first().map(|byte| byte >> 4)) {
            (2, _) => [0x08, 0x06],
            (_, Some(6)) => [0x86, 0xdd],
            _ => [0x08, 0x00],
        });
        frame.extend(packet);
        frame
    })
}
