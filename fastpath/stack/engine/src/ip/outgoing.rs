//! What a transport says of a packet that it sends.
use crate::SocketId;
use std::net::IpAddr;

/// The transport's header and payload are in the slot already, from [`super::Interface::header_bytes`] on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    /// The transport's header and payload.
    pub len: usize,
    /// Where the checksum is in the transport's header, when the device has to complete it.
    pub checksum_offset: Option<u16>,
    /// Payload bytes of each segment, when the device has to cut it; 0: it is one.
    pub segment_bytes: u16,
    /// Of `len`, what is no payload.
    pub transport_header_bytes: u16,
    pub socket: Option<SocketId>,
    /// For [`crate::frame::TxFrame`].
    pub payload_bytes: u32,
    pub fragment: Option<FragmentOut>,
}

/// A part of a packet. In IPv6 it has a header of [`super::FRAGMENT_HEADER_BYTES`] more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentOut {
    pub identification: u32,
    /// In bytes, a multiple of 8.
    pub offset: u16,
    pub more: bool,
}

impl FragmentOut {
    /// Not a whole packet that has an identification.
    pub(crate) fn is_part(self) -> bool {
        self.more || self.offset > 0
    }
}

impl Outgoing {
    /// Without offload, of no socket.
    pub(crate) fn new(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> Outgoing {
        Outgoing {
            source,
            destination,
            protocol,
            hop_limit: 64,
            traffic_class: 0,
            len,
            checksum_offset: None,
            segment_bytes: 0,
            transport_header_bytes: 0,
            socket: None,
            payload_bytes: 0,
            fragment: None,
        }
    }
}
