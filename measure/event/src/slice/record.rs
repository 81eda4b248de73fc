//! The record of one packet.
use super::stamp::{self, StampWord};
use super::{Point, SliceFlags};
use core::mem::{offset_of, size_of};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What the BPF programs submit when a packet's path has ended. Host byte order.
/// Identities are 0 and names empty where they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SliceRecord {
    /// Unique within a recording, from 1.
    pub id: u64,
    /// Of the packet this one was cut from by software GSO; 0: none.
    pub parent: u64,
    /// `CLOCK_MONOTONIC` at the first stamp.
    pub t0_ns: u64,
    pub tx_cookie: u64,
    pub rx_cookie: u64,
    pub tx_tgid: u32,
    pub tx_tid: u32,
    pub rx_tgid: u32,
    pub rx_tid: u32,
    pub tx_ifindex: u32,
    pub rx_ifindex: u32,
    /// Inode of the network namespace.
    pub tx_netns: u32,
    pub rx_netns: u32,
    /// An IPv4 address lies in the first four bytes.
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub source_port: u16,
    pub destination_port: u16,
    pub tcp_seq: u32,
    pub tcp_ack: u32,
    /// Bytes after the transport's header.
    pub payload: u32,
    /// Bytes from the network header on.
    pub ip_len: u32,
    pub tcp_window: u16,
    pub tcp_flags: u8,
    /// IANA protocol number.
    pub protocol: u8,
    /// 4 or 6
    pub family: u8,
    pub stamps_taken: u8,
    /// `enum skb_drop_reason` of the running kernel; the recording has the names.
    pub drop_reason: u16,
    pub flags: SliceFlags,
    /// TCP sequence number at which the sending call's data begin, as on the wire.
    pub tx_call_seq: u32,
    /// As `tx_call_seq`, of the receiving call.
    pub rx_call_seq: u32,
    /// Bytes the receiving call returned; negative: an error number.
    pub rx_returned: i32,
    /// Segments in one: sent as one (TSO), or merged into this one (GRO); 0 and 1: one.
    pub segments: u16,
    pub ip_id: u16,
    /// Bytes that the sending call was given.
    pub tx_call_len: u32,
    /// Always 0.
    pub reserved: u32,
    pub tx_comm: [u8; 16],
    pub rx_comm: [u8; 16],
    pub stamps: [StampWord; Point::MAX],
}

const _: () = {
    assert!(size_of::<SliceRecord>() == 384);
    assert!(offset_of!(SliceRecord, tx_tgid) == 40);
    assert!(offset_of!(SliceRecord, source) == 72);
    assert!(offset_of!(SliceRecord, source_port) == 104);
    assert!(offset_of!(SliceRecord, tcp_window) == 124);
    assert!(offset_of!(SliceRecord, flags) == 132);
    assert!(offset_of!(SliceRecord, segments) == 148);
    assert!(offset_of!(SliceRecord, tx_comm) == 160);
    assert!(offset_of!(SliceRecord, stamps) == 192);
};

impl SliceRecord {
    pub const BYTES: usize = size_of::<SliceRecord>();

    /// Stamps that were taken, in the order of points.
    pub fn taken(&self) -> impl Iterator<Item = (Point, StampWord)> {
        stamp::taken(&self.stamps)
    }

    pub fn stamp(&self, point: Point) -> Option<StampWord> {
        let word = self.stamps[point as usize];
        word.is_taken().then_some(word)
    }

    pub fn source_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(self.source), self.source_port)
    }

    pub fn destination_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(self.destination), self.destination_port)
    }

    fn address(&self, bytes: [u8; 16]) -> IpAddr {
        match self.family {
            6 => Ipv6Addr::from(bytes).into(),
            _ => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
        }
    }

    /// From the first to the last stamp.
    pub fn total(&self) -> u32 {
        self.taken()
            .map(|(_, word)| word.delta())
            .max()
            .unwrap_or(0)
    }
}
