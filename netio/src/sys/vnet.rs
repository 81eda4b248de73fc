//! `struct virtio_net_hdr` (virtio 1.2, 5.1.6), little-endian as the kernel's sockets and TAP use
//! it on this machine.
use crate::Offload;

pub(crate) const PACKET_HDR_LEN: usize = 10;

/// Checksum seen to be right by the device: nothing is left to be done.
const DATA_VALID: u8 = 2;

pub(crate) struct VnetHeader;

impl VnetHeader {
    /// # Panics
    /// When there are fewer than ten bytes.
    pub(crate) fn read(bytes: &[u8]) -> Offload {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Offload {
            flags: bytes[0] & !DATA_VALID,
            gso_type: bytes[1],
            hdr_len: half(2),
            gso_size: half(4),
            csum_start: half(6),
            csum_offset: half(8),
        }
    }

    /// # Panics
    /// When there are fewer than ten bytes.
    pub(crate) fn write(offload: Offload, bytes: &mut [u8]) {
        bytes[0] = offload.flags;
        bytes[1] = offload.gso_type;
        bytes[2..4].copy_from_slice(&offload.hdr_len.to_le_bytes());
        bytes[4..6].copy_from_slice(&offload.gso_size.to_le_bytes());
        bytes[6..8].copy_from_slice(&offload.csum_start.to_le_bytes());
        bytes[8..10].copy_from_slice(&offload.csum_offset.to_le_bytes());
    }
}
