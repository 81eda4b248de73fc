//! The header before each packet, `struct virtio_net_hdr` (virtio 1.3, 5.1.6), little-endian.
use hopscope_netio::Offload;

/// Bytes, with the number of chains.
pub(crate) const LEN_MAX: usize = 12;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`
pub(crate) const NEEDS_CSUM: u8 = 1;

/// Bytes 0 to 9; the rest has no meaning when a driver transmits.
pub(crate) fn decode(bytes: &[u8; LEN_MAX]) -> Offload {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    Offload {
        flags: bytes[0] & NEEDS_CSUM,
        gso_type: bytes[1],
        hdr_len: half(2),
        gso_size: half(4),
        csum_start: half(6),
        csum_offset: half(8),
    }
}

pub(crate) fn encode(offload: Offload, chains: u16) -> [u8; LEN_MAX] {
    let mut bytes = [0; LEN_MAX];
    bytes[0] = offload.flags;
    bytes[1] = offload.gso_type;
    bytes[2..4].copy_from_slice(&offload.hdr_len.to_le_bytes());
    bytes[4..6].copy_from_slice(&offload.gso_size.to_le_bytes());
    bytes[6..8].copy_from_slice(&offload.csum_start.to_le_bytes());
    bytes[8..10].copy_from_slice(&offload.csum_offset.to_le_bytes());
    bytes[10..12].copy_from_slice(&chains.to_le_bytes());
    bytes
}
