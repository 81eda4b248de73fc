//! MAC addresses: given, or looked up. No ARP is sent: a generator must not wait for answers.
use super::args::PacketsArgs;
use crate::address::parse_mac;
use anyhow::bail;
use hopscope_load::packets::frame::Link;
use hopscope_netio::PortName;
use std::net::IpAddr;

/// Locally administered, for ports that are no device.
const OURS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

pub(super) fn link(args: &PacketsArgs, destination: IpAddr) -> anyhow::Result<Link> {
    let sender = args.tx.as_ref().and_then(device);
    let receiver = args.rx.as_ref().and_then(device);
    let own = |device: &str| {
        let path = format!("/sys/class/net/{device}/address");
        let text = std::fs::read_to_string(path).ok()?;
        parse_mac(text.trim()).ok()
    };
    let source = args.src_mac.or_else(|| sender.as_deref().and_then(own));
    let found = || match &sender {
        None => Some(OURS[1]),
        Some(sender) => neighbour(sender, destination)
            .or_else(|| receiver.as_deref().and_then(own))
            .or_else(|| own(&peer(sender)?)),
    };
    let Some(destination_mac) = args.dst_mac.or_else(found) else {
        bail!(
            "no MAC address is known for {destination} on {}: give --dst-mac, or `ping` it once so that the kernel learns it",
            sender.unwrap_or_default()
        );
    };
    Ok(Link {
        source: source.unwrap_or(OURS[0]),
        destination: destination_mac,
    })
}

/// The device behind a port, if one is.
pub(super) fn device(port: &PortName) -> Option<String> {
    let name = port.to_string();
    // Kind, device and, of some, what else.
    let device = name.split(':').nth(1)?;
    let is_name = !device.is_empty() && !device.contains('/');
    let exists = || std::path::Path::new("/sys/class/net").join(device).exists();
    (is_name && exists()).then(|| device.to_owned())
}

/// Longest frame without FCS and VLAN tags that the device of a port takes.
pub(super) fn device_max_frame_len(port: &PortName) -> Option<usize> {
    let path = format!("/sys/class/net/{}/mtu", device(port)?);
    let mtu: usize = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(mtu + 14)
}

/// The other end of a cable between two virtual devices of this namespace.
fn peer(device: &str) -> Option<String> {
    let read = |device: &str, file: &str| {
        std::fs::read_to_string(format!("/sys/class/net/{device}/{file}")).ok()
    };
    let link = read(device, "iflink")?;
    let mut devices = std::fs::read_dir("/sys/class/net").ok()?.flatten();
    devices.find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        (name != device && read(&name, "ifindex")? == link).then_some(name)
    })
}

/// From the kernel's table of IPv4 neighbours: address, type, flags, MAC, mask, device.
fn neighbour(device: &str, address: IpAddr) -> Option<[u8; 6]> {
    const COMPLETE: u32 = 2;
    let table = std::fs::read_to_string("/proc/net/arp").ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [ip, _, flags, mac, _, on] = fields[..] else {
            return None;
        };
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
        let is_it = on == device && ip.parse() == Ok(address) && flags & COMPLETE != 0;
        is_it.then(|| parse_mac(mac).ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses() {
        assert_eq!(parse_mac("02:00:00:00:00:0a"), Ok([2, 0, 0, 0, 0, 10]));
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "g2:00:00:00:00:01",
            "002:0:0:0:0:1",
        ] {
            assert!(parse_mac(wrong).is_err(), "{wrong}");
        }
    }
}
