//! Work on a frame that is left to whoever takes it: checksum and segmentation offload.

/// What is still to be done to a frame: the fields of `struct virtio_net_hdr` (virtio 1.2,
/// 5.1.6), with its values. All zero: the frame is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    pub flags: u8,
    pub gso_type: u8,
    pub hdr_len: u16,
    pub gso_size: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
}

impl Offload {
    /// Of the first ten bytes of a header (little-endian).
    ///
    /// # Panics
    /// When there are fewer.
    #[must_use]
    pub fn of_header(bytes: &[u8]) -> Offload {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Offload {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: half(2),
            gso_size: half(4),
            csum_start: half(6),
            csum_offset: half(8),
        }
    }

    /// # Panics
    /// When there are fewer than ten bytes.
    pub fn write_header(self, bytes: &mut [u8]) {
        bytes[0] = self.flags;
        bytes[1] = self.gso_type;
        bytes[2..4].copy_from_slice(&self.hdr_len.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.gso_size.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.csum_start.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.csum_offset.to_le_bytes());
    }
}

/// What may be left undone of a frame that is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepts {
    pub checksums: bool,
    /// TCP over IPv4, up to 64 KiB in one; only with `checksums`.
    pub segments_v4: bool,
    /// TCP over IPv6.
    pub segments_v6: bool,
}
