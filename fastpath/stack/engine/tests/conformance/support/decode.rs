//! Reading what the engine sent. Whatever a receiver would have to refuse is an error here.
use super::packet::{Segment, TcpOption, add, fold, transport_sum};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An IP packet's ends, protocol and payload.
#[derive(Debug)]
pub struct Ip<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    pub protocol: u8,
    pub payload: &'a [u8],
}

pub fn ip(packet: &[u8]) -> Result<Ip<'_>, String> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => ipv4(packet),
        Some(6) => ipv6(packet),
        _ => Err("no IP version".to_owned()),
    }
}

fn ipv4(packet: &[u8]) -> Result<Ip<'_>, String> {
    let header_bytes = usize::from(packet[0] & 15) * 4;
    let total = usize::from(be16(packet, 2)?);
    if header_bytes < 20 || total < header_bytes || total != packet.len() {
        return Err(format!(
            "IPv4: header {header_bytes}, total {total}, packet {}",
            packet.len()
        ));
    }
    if fold(add(0, &packet[..header_bytes])) != 0xffff {
        return Err("IPv4 header checksum".to_owned());
    }
    Ok(Ip {
        from: Ipv4Addr::from(be32(packet, 12)?).into(),
        to: Ipv4Addr::from(be32(packet, 16)?).into(),
        protocol: packet[9],
        payload: &packet[header_bytes..],
    })
}

fn ipv6(packet: &[u8]) -> Result<Ip<'_>, String> {
    let length = usize::from(be16(packet, 4)?);
    if packet.len() != 40 + length {
        return Err(format!("IPv6: payload {length}, packet {}", packet.len()));
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = packet[at..at + 16].try_into().expect("16 bytes");
        IpAddr::from(Ipv6Addr::from(bytes))
    };
    Ok(Ip {
        from: address(8),
        to: address(24),
        protocol: packet[6],
        payload: &packet[40..],
    })
}

/// A segment with its ends. `None`: the packet is of another protocol.
pub fn segment(packet: &[u8]) -> Result<Option<(SocketAddr, SocketAddr, Segment)>, String> {
    let ip = ip(packet)?;
    if ip.protocol != 6 {
        return Ok(None);
    }
    if transport_sum(ip.from, ip.to, 6, ip.payload) != 0 {
        return Err("TCP checksum".to_owned());
    }
    let (from, to, segment) = unverified(&ip)?;
    Ok(Some((from, to, segment)))
}

/// Without a look at the checksum, which offload leaves partial.
pub fn unverified(ip: &Ip<'_>) -> Result<(SocketAddr, SocketAddr, Segment), String> {
    let tcp = ip.payload;
    let header_bytes = usize::from(be16(tcp, 12)? >> 12) * 4;
    if header_bytes < 20 || header_bytes > tcp.len() {
        return Err(format!(
            "TCP header of {header_bytes} in {} bytes",
            tcp.len()
        ));
    }
    let segment = Segment {
        flags: tcp[13] & 0x3f,
        seq: be32(tcp, 4)?,
        ack: be32(tcp, 8)?,
        window: be16(tcp, 14)?,
        options: options(&tcp[20..header_bytes])?,
        payload: tcp[header_bytes..].to_vec(),
    };
    let from = SocketAddr::new(ip.from, be16(tcp, 0)?);
    Ok((from, SocketAddr::new(ip.to, be16(tcp, 2)?), segment))
}

fn options(mut bytes: &[u8]) -> Result<Vec<TcpOption>, String> {
    let mut found = Vec::new();
    while let Some(&kind) = bytes.first() {
        if kind < 2 {
            found.push(if kind == 0 {
                TcpOption::End
            } else {
                TcpOption::Nop
            });
            bytes = &bytes[1..];
            continue;
        }
        let length = usize::from(*bytes.get(1).ok_or("option without length")?);
        if length < 2 || length > bytes.len() {
            return Err(format!(
                "option {kind} of length {length} in {}",
                bytes.len()
            ));
        }
        let value = &bytes[2..length];
        found.push(match (kind, length) {
            (2, 4) => TcpOption::Mss(be16(value, 0)?),
            (3, 3) => TcpOption::WindowScale(value[0]),
            (4, 2) => TcpOption::SackPermitted,
            (5, 10 | 18 | 26 | 34) => {
                let block = |b: &[u8]| Ok::<_, String>((be32(b, 0)?, be32(b, 4)?));
                TcpOption::Sack(value.chunks(8).map(block).collect::<Result<_, _>>()?)
            }
            (8, 10) => TcpOption::Timestamps {
                value: be32(value, 0)?,
                echo: be32(value, 4)?,
            },
            _ => return Err(format!("option {kind} of length {length}")),
        });
        bytes = &bytes[length..];
    }
    Ok(found)
}

fn be16(bytes: &[u8], at: usize) -> Result<u16, String> {
    let two = bytes.get(at..at + 2).ok_or("cut")?;
    Ok(u16::from_be_bytes(two.try_into().expect("2 bytes")))
}

fn be32(bytes: &[u8], at: usize) -> Result<u32, String> {
    let four = bytes.get(at..at + 4).ok_or("cut")?;
    Ok(u32::from_be_bytes(four.try_into().expect("4 bytes")))
}
