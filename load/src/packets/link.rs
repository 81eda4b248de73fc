//! MAC addresses: given, or looked up. No ARP is sent: a generator must not wait for answers.
use super::PacketsError;
use super::frame::Link;
use hopscope_netio::PortName;
use std::net::IpAddr;

/// Locally administered, for ports that are no device.
const OURS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// `tx`, `rx`: the ports, as far as there are any. `source` and `to`: addresses that were given.
///
/// # Errors
/// None is known for `destination`.
pub fn link(
    tx: Option<&PortName>,
    rx: Option<&PortName>,
    source: Option<[u8; 6]>,
    to: Option<[u8; 6]>,
    destination: IpAddr,
) -> Result<Link, PacketsError> {
    let sender = tx.and_then(device);
    let receiver = rx.and_then(device);
    let own = |device: &str| {
        let path = format!("/sys/class/net/{device}/address");
        let text = std::fs::read_to_string(path).ok()?;
        parse_mac(text.trim()).ok()
    };
    let source = source.or_else(|| sender.as_deref().and_then(own));
    let found = || match &sender {
        None => Some(OURS[1]),
        Some(sender) => neighbour(sender, destination)
            .or_else(|| receiver.as_deref().and_then(own))
            .or_else(|| own(&peer(sender)?)),
    };
    let Some(to) = to.or_else(found) else {
        let device = sender.unwrap_or_default();
        return Err(PacketsError::NoMac {
            destination,
            device,
        });
    };
    Ok(Link {
        source: source.unwrap_or(OURS[0]),
        destination: to,
    })
}

/// `02:00:00:00:00:01`
pub fn parse_mac(text: &str) -> Result<[u8; 6], String> {
    let byte = |part: &str| match part.len() {
        1 | 2 => u8::from_str_radix(part, 16).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    let mac = bytes.and_then(|bytes| bytes.try_into().ok());
    mac.ok_or_else(|| format!("{text:?} is not a MAC address like 02:00:00:00:00:01"))
}

/// The device behind a port, if one is.
fn device(port: &PortName) -> Option<String> {
    let name = port.to_string();
    // Kind, device and, of some, what else.
    let device = name.split(':').nth(1)?;
    let is_name = !device.is_empty() && !device.contains('/');
    let exists = || std::path::Path::new("/sys/class/net").join(device).exists();
    (is_name && exists()).then(|| device.to_owned())
}

/// Longest frame without FCS and VLAN tags that the device of a port takes.
pub fn device_max_frame_len(port: &PortName) -> Option<usize> {
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
