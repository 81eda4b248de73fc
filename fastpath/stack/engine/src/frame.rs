//! What comes with a frame, besides its bytes: offloads, in both directions.
use crate::SocketId;

/// What the device says of the checksums of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RxChecksum {
    /// Nothing: the engine verifies.
    #[default]
    Unknown,
    /// Verified by the device, or never computed because the frame did not leave this machine
    /// (VIRTIO_NET_HDR_F_DATA_VALID, _NEEDS_CSUM). IPv4's header checksum is always verified.
    Good,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxMeta {
    pub checksum: RxChecksum,
    /// Payload bytes of each of the segments that were merged into this frame (GRO, or TSO by a local sender);
    /// 0: it is one segment.
    pub segment_bytes: u16,
    /// All engines of the device are given it: the first counts and answers it ([`crate::config::Share`]).
    pub for_all: bool,
}

/// Checksum offload of a sent frame: the field holds the pseudo-header's sum (virtio 1.2, 5.1.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// From the start of the frame.
    pub start: u16,
    /// From `start`.
    pub offset: u16,
}

/// Segmentation offload of a sent frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    pub ipv6: bool,
    /// Payload bytes of each segment.
    pub segment_bytes: u16,
    /// Bytes of all headers, which are repeated before each segment.
    pub header_bytes: u16,
}

/// A frame that [`crate::Engine::transmit`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxFrame {
    /// Bytes from the start of the slot.
    pub len: usize,
    pub checksum: Option<PartialChecksum>,
    pub segmentation: Option<Segmentation>,
    /// Whose it is; `None` for ARP, ICMP, resets and SYN-ACKs without a socket.
    pub socket: Option<SocketId>,
    /// TCP payload bytes.
    pub payload_bytes: u32,
}

/// What [`crate::Engine::receive`] did with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// The socket that the frame belongs to, if any.
    pub socket: Option<SocketId>,
    /// TCP or UDP payload bytes in the frame, new or not.
    pub payload_bytes: u32,
}
