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

/// What may be left undone of a frame that is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepts {
    pub checksums: bool,
    /// TCP over IPv4, up to 64 KiB in one; only with `checksums`.
    pub segments_v4: bool,
    /// TCP over IPv6.
    pub segments_v6: bool,
}
