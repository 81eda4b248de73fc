//! The header before each packet, `struct virtio_net_hdr` (virtio 1.3, 5.1.6), little-endian.
use hopscope_netio::Offload;

/// Bytes, with the number of chains.
pub(crate) const LEN_MAX: usize = 12;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`
pub(crate) const NEEDS_CSUM: u8 = 1;

/// Bytes 0 to 9; the rest has no meaning when a driver transmits.
pub(crate) fn decode(bytes: &[u8; LEN_MAX]) -> Offload {
    let mut offload = Offload::of_header(bytes);
    offload.flags &= NEEDS_CSUM;
    offload
}

pub(crate) fn encode(offload: Offload, chains: u16) -> [u8; LEN_MAX] {
    let mut bytes = [0; LEN_MAX];
    offload.write_header(&mut bytes);
    bytes[10..12].copy_from_slice(&chains.to_le_bytes());
    bytes
}
