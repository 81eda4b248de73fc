//! What a device does with a frame that is sent with offloads: completes checksums, cuts segments.
use crate::support::decode::{ip, unverified};
use crate::support::host::Sent;
use crate::support::packet::{FIN, PSH};

/// The packets on the wire, each with its payload bytes.
pub fn packets(sent: Sent) -> Vec<(Vec<u8>, u32)> {
    let frame = sent.frame;
    let Some(segmentation) = frame.segmentation else {
        let packet = match frame.checksum {
            Some(_) => whole(&sent.packet),
            None => sent.packet,
        };
        return vec![(packet, frame.payload_bytes)];
    };
    assert!(
        frame.checksum.is_some(),
        "segmentation without checksum offload"
    );
    let size = usize::from(segmentation.segment_bytes);
    let (from, to, segment) = unverified(&ip(&sent.packet).expect("IP")).expect("TCP");
    let header = sent.packet.len() - segment.payload.len();
    assert_eq!(
        usize::from(segmentation.header_bytes),
        header,
        "header_bytes"
    );
    let pieces = segment.payload.len().div_ceil(size);
    assert!(
        pieces > 1,
        "{} bytes need no segmentation by {size}",
        segment.payload.len()
    );
    let cut = |(index, payload): (usize, &[u8])| {
        let mut piece = segment.clone();
        piece.seq = segment.seq.wrapping_add((index * size) as u32);
        piece.payload = payload.to_vec();
        if index + 1 < pieces {
            piece.flags &= !(FIN | PSH);
        }
        (piece.encode(from, to), payload.len() as u32)
    };
    segment.payload.chunks(size).enumerate().map(cut).collect()
}

/// With its checksum computed. The partial one is of the pseudo-header (virtio 1.2, 5.1.6.2).
fn whole(packet: &[u8]) -> Vec<u8> {
    let (from, to, segment) = unverified(&ip(packet).expect("IP")).expect("TCP");
    segment.encode(from, to)
}
