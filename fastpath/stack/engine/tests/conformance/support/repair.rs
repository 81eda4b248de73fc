//! Makes checksums right again after a packet was changed, as far as its headers allow.
use super::packet::{add, fold, transport_sum};
use std::net::{IpAddr, Ipv4Addr};

pub fn checksums(packet: &mut [u8]) {
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return;
    }
    let header = usize::from(packet[0] & 15) * 4;
    if header < 20 || header > packet.len() {
        return;
    }
    let total = packet.len() as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[10..12].fill(0);
    let sum = !fold(add(0, &packet[..header]));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let at = header + 16;
    if packet[9] != 6 || packet.len() < at + 2 {
        return;
    }
    let address = |at: usize| -> IpAddr {
        Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]).into()
    };
    let (from, to) = (address(12), address(16));
    packet[at..at + 2].fill(0);
    let sum = transport_sum(from, to, 6, &packet[header..]);
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}
