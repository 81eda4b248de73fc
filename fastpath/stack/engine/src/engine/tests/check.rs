//! Whether a frame that was sent is right, by smoltcp's parsers.
use crate::frame::TxFrame;
use smoltcp::wire::{
    ArpPacket, EthernetFrame, EthernetProtocol, Icmpv4Packet, Icmpv6Packet, IpAddress, IpProtocol,
    Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket,
};

/// # Errors
/// What is wrong.
pub(super) fn check(bytes: &[u8], meta: &TxFrame) -> Result<(), String> {
    let frame = EthernetFrame::new_checked(bytes).map_err(|e| format!("{e}"))?;
    let payload = frame.payload();
    match frame.ethertype() {
        EthernetProtocol::Arp => {
            ArpPacket::new_checked(payload).map_err(|e| format!("{e}"))?;
        }
        EthernetProtocol::Ipv4 => {
            let packet = Ipv4Packet::new_checked(payload).map_err(|e| format!("{e}"))?;
            need(packet.verify_checksum(), "IPv4 checksum")?;
            need(
                usize::from(packet.total_len()) == payload.len(),
                "total length",
            )?;
            need(packet.hop_limit() > 0, "TTL")?;
            if packet.more_frags() || packet.frag_offset() > 0 {
                return need(payload.len() <= 1500, "longer than the MTU");
            }
            let ends = (packet.src_addr().into(), packet.dst_addr().into());
            transport(packet.next_header(), ends, packet.payload(), meta)?;
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(payload).map_err(|e| format!("{e}"))?;
            need(packet.total_len() == payload.len(), "payload length")?;
            if packet.next_header() == IpProtocol::Ipv6Frag {
                return need(payload.len() <= 1500, "longer than the MTU");
            }
            let ends = (packet.src_addr().into(), packet.dst_addr().into());
            transport(packet.next_header(), ends, packet.payload(), meta)?;
        }
        other => return Err(format!("EtherType {other}")),
    }
    need(
        meta.segmentation.is_some() || payload.len() <= 1500,
        "longer than the MTU",
    )
}

fn transport(
    protocol: IpProtocol,
    ends: (IpAddress, IpAddress),
    payload: &[u8],
    meta: &TxFrame,
) -> Result<(), String> {
    match protocol {
        IpProtocol::Tcp => {
            let segment = TcpPacket::new_checked(payload).map_err(|e| format!("{e}"))?;
            let partial = meta.checksum.is_some();
            need(
                partial || segment.verify_checksum(&ends.0, &ends.1),
                "TCP checksum",
            )?;
            need(
                segment.payload().len() == meta.payload_bytes as usize,
                "payload_bytes",
            )?;
            let ports = segment.src_port() > 0 && segment.dst_port() > 0;
            // A reset goes back to where a forged segment came from, whatever that says.
            need(ports || segment.rst(), "port 0")?;
            let mut options = segment.options();
            while !options.is_empty() {
                let parsed = smoltcp::wire::TcpOption::parse(options);
                options = parsed.map_err(|e| format!("option: {e}"))?.0;
            }
            Ok(())
        }
        IpProtocol::Udp => {
            let datagram = UdpPacket::new_checked(payload).map_err(|e| format!("{e}"))?;
            let partial = meta.checksum.is_some();
            need(
                partial || datagram.verify_checksum(&ends.0, &ends.1),
                "UDP checksum",
            )?;
            need(
                partial || datagram.checksum() != 0,
                "UDP without a checksum",
            )?;
            need(usize::from(datagram.len()) == payload.len(), "UDP length")
        }
        IpProtocol::Icmp => {
            let message = Icmpv4Packet::new_checked(payload).map_err(|e| format!("{e}"))?;
            need(message.verify_checksum(), "ICMP checksum")
        }
        IpProtocol::Icmpv6 => {
            let message = Icmpv6Packet::new_checked(payload).map_err(|e| format!("{e}"))?;
            let (IpAddress::Ipv6(source), IpAddress::Ipv6(destination)) = ends else {
                return Err("ICMPv6 over IPv4".into());
            };
            need(
                message.verify_checksum(&source, &destination),
                "ICMPv6 checksum",
            )
        }
        other => Err(format!("protocol {other}")),
    }
}

fn need(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.into()) }
}
