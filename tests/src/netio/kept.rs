//! Packets that are kept from the kernel arrive at a packet socket as before; the kernel sees all others.
use super::veth::{self, ip};
use anyhow::{Context, Result, ensure};
use hopscope_netio::{DeviceInfo, Kept, Outgoing, PacketIo, PacketOptions, PacketPort};
use std::net::IpAddr;

const V4: &str = "10.0.0.2";
const V6: &str = "fd00::2";

pub(super) fn run() -> Result<()> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    std::fs::write("/proc/sys/net/ipv6/conf/right/disable_ipv6", "0")?;
    // What the kernel says of itself there is over.
    ip("link set right addrgenmode none")?;
    let mut here = PacketPort::open("right", PacketOptions::default())?;
    let mut there = PacketPort::open("left", PacketOptions::default())?;
    let mac = DeviceInfo::of("right")?.mac;
    let seen = |there: &mut PacketPort, frame: Vec<u8>| -> Result<bool> {
        let before = received()?;
        let mut fill = |slot: &mut [u8]| {
            slot[..frame.len()].copy_from_slice(&frame);
            Outgoing {
                len: frame.len(),
                ..Outgoing::default()
            }
        };
        ensure!(there.send(1, &mut fill)? == 1 && there.flush()? == 0);
        Ok(received()? > before)
    };
    let others = ["10.0.0.3", "fd00::3", "fd00:0:0:1::2", "10.1.0.2"];
    for address in [&[V4, V6][..], &others].concat() {
        ensure!(seen(&mut there, packet(mac, address))?, "{address}");
    }
    let both: Vec<IpAddr> = ["10.9.9.9", V4, "fd00::9", V6]
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let kept = Kept::from_kernel("right", &both)?;
    for address in [V4, V6] {
        ensure!(
            !seen(&mut there, packet(mac, address))?,
            "{address} is seen"
        );
    }
    for address in others {
        ensure!(seen(&mut there, packet(mac, address))?, "{address}");
    }
    // One that is too short to say: the kernel's to judge.
    let mut short = packet(mac, V4);
    short.truncate(14 + 18);
    seen(&mut there, short)?;
    drop(kept);
    for address in [V4, V6] {
        ensure!(
            seen(&mut there, packet(mac, address))?,
            "{address} is kept still"
        );
    }
    let mut count = 0;
    while here.receive(64, &mut |frame| {
        count += u32::from(frame.bytes.get(6..12) == Some(&FROM));
    })? > 0
    {}
    ensure!(count == 15, "{count} frames");
    Ok(())
}

/// Locally administered.
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 7];

/// For experiments (RFC 3692): with no transport.
fn packet(mac: [u8; 6], to: &str) -> Vec<u8> {
    let mut frame = [&mac[..], &FROM].concat();
    match to.parse() {
        Ok(IpAddr::V4(to)) => {
            frame.extend([8, 0]);
            let mut header = [0; 20];
            header[..10].copy_from_slice(&[0x45, 0, 0, 28, 0, 1, 0, 0, 64, 253]);
            header[12..16].copy_from_slice(&[10, 0, 0, 77]);
            header[16..].copy_from_slice(&to.octets());
            let words = header
                .chunks(2)
                .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum: u32 = words.sum();
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(header);
            frame.extend([0; 8]);
        }
        Ok(IpAddr::V6(to)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 253, 64]);
            let from: std::net::Ipv6Addr = "fd00::77".parse().unwrap_or(to);
            frame.extend(from.octets());
            frame.extend(to.octets());
            frame.extend([0; 8]);
        }
        Err(_) => {}
    }
    frame.resize(60, 0);
    frame
}

/// Packets that the kernel's IP of both versions has seen.
pub(crate) fn received() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut of_ip = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (of_ip.next(), of_ip.next());
    let (names, values) = names.zip(values).context("no counters")?;
    let mut all = names.split(' ').zip(values.split(' '));
    let v4 = all.find(|(name, _)| *name == "InReceives");
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp6")?;
    let v6 = text
        .lines()
        .find_map(|line| line.strip_prefix("Ip6InReceives"));
    let v4: u64 = v4.context("no InReceives")?.1.parse()?;
    Ok(v4 + v6.context("no Ip6InReceives")?.trim().parse::<u64>()?)
}
