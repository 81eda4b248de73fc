//! TCP segments in IP packets: the tests' own codec, which shares nothing with the engine's. Reading verifies everything
//! that a receiver could: lengths, checksums, option lengths.
use std::net::{IpAddr, SocketAddr};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;
pub const URG: u8 = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpOption {
    End,
    Nop,
    Mss(u16),
    WindowScale(u8),
    SackPermitted,
    Sack(Vec<(u32, u32)>),
    Timestamps {
        value: u32,
        echo: u32,
    },
    /// Kind, and whatever follows it, length byte and all.
    Raw(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Segment {
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub options: Vec<TcpOption>,
    pub payload: Vec<u8>,
}

impl Segment {
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Timestamps { value, echo } => Some((*value, *echo)),
            _ => None,
        })
    }

    pub fn sack(&self) -> Vec<(u32, u32)> {
        let blocks = self.options.iter().find_map(|option| match option {
            TcpOption::Sack(blocks) => Some(blocks.clone()),
            _ => None,
        });
        blocks.unwrap_or_default()
    }

    /// The IP packet, with good checksums.
    pub fn encode(&self, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        let mut options = Vec::new();
        for option in &self.options {
            write_option(option, &mut options);
        }
        while options.len() % 4 != 0 {
            options.push(0);
        }
        let mut tcp = Vec::with_capacity(20 + options.len() + self.payload.len());
        tcp.extend(from.port().to_be_bytes());
        tcp.extend(to.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.push((((20 + options.len()) / 4) as u8) << 4);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(&self.payload);
        let sum = transport_sum(from.ip(), to.ip(), 6, &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        ip_packet(from.ip(), to.ip(), 6, &tcp)
    }
}

fn write_option(option: &TcpOption, out: &mut Vec<u8>) {
    match option {
        TcpOption::End => out.push(0),
        TcpOption::Nop => out.push(1),
        TcpOption::Mss(mss) => {
            out.extend([2, 4]);
            out.extend(mss.to_be_bytes());
        }
        TcpOption::WindowScale(shift) => out.extend([3, 3, *shift]),
        TcpOption::SackPermitted => out.extend([4, 2]),
        TcpOption::Sack(blocks) => {
            out.extend([5, 2 + 8 * blocks.len() as u8]);
            for (start, end) in blocks {
                out.extend(start.to_be_bytes());
                out.extend(end.to_be_bytes());
            }
        }
        TcpOption::Timestamps { value, echo } => {
            out.extend([8, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        }
        TcpOption::Raw(bytes) => out.extend(bytes),
    }
}

/// An IP packet around the bytes of another protocol; its header has no options.
pub fn ip_packet(from: IpAddr, to: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(40 + payload.len());
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet.extend([0x45, 0]);
            packet.extend((20 + payload.len() as u16).to_be_bytes());
            packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
            let sum = !fold(add(0, &packet));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend((payload.len() as u16).to_be_bytes());
            packet.extend([protocol, 64]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        _ => panic!("{from} and {to} are of two families"),
    }
    packet.extend(payload);
    packet
}

/// RFC 1071 over the pseudo-header and the bytes, complemented; 0 over bytes that hold their right checksum.
pub fn transport_sum(from: IpAddr, to: IpAddr, protocol: u8, bytes: &[u8]) -> u16 {
    let mut sum = 0;
    for address in [from, to] {
        sum = match address {
            IpAddr::V4(address) => add(sum, &address.octets()),
            IpAddr::V6(address) => add(sum, &address.octets()),
        };
    }
    sum += u64::from(protocol) + bytes.len() as u64;
    !fold(add(sum, bytes))
}

pub fn add(mut sum: u64, bytes: &[u8]) -> u64 {
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    }
    sum
}

pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
