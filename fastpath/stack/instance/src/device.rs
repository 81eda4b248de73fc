//! A port with what the engine has to know of it.
use crate::{InstanceError, LinkMtu, claim, steering};
use hopscope_netio::{
    Accepts, DeviceInfo, Fanout, Kept, OpenOptions, PacketIo, PacketOptions, PacketPort, PortError,
    PortName, TapOptions, TapPort,
};
use hopscope_stack_engine::config::{Medium, TxOffload};
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// That a packet socket's ring holds: of 9,000 connections that send at once, each its request.
pub const RECEIVE_FRAMES: usize = 8_192;
/// Where nothing has one.
const MTU: usize = 1500;

pub struct Device {
    pub port: Box<dyn PacketIo>,
    pub medium: Medium,
    pub mtu: LinkMtu,
    pub offload: TxOffload,
    /// What keeps packets to the stack from the kernel, or why nothing does. Of several engines' devices the first has it; of ports that
    /// share nothing with the kernel none.
    pub kept: Option<Result<Kept, PortError>>,
    /// What has the addresses for this stack alone. Of several engines' devices the first has it.
    pub claims: Vec<OwnedFd>,
}

impl Device {
    #[must_use]
    pub fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()?.as_ref().ok()
    }
}

/// What is asked of a device beyond its name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Checksums and segmentation are left to the device, where it takes them.
    pub offload: bool,
    /// In place of the device's.
    pub mac: Option<[u8; 6]>,
    pub mtu: Option<u16>,
    /// Of several engines the first has all datagrams.
    pub datagrams_at_first: bool,
}

/// Opens `name` for as many engines, each with a port of its own, in the calling thread's network namespace. `first` is an
/// address of ours, from which a TAP device's far end has its Ethernet address.
///
/// # Errors
/// As the port's; a port of that kind has one queue; an address is the kernel's, or another stack's.
pub fn open(
    name: &PortName,
    engines: u16,
    addresses: &[IpAddr],
    wanted: Wanted,
) -> Result<Vec<Device>, InstanceError> {
    for address in addresses {
        if let Some(device) = kernel_has(*address) {
            let address = *address;
            return Err(InstanceError::AddressInUse { address, device });
        }
    }
    let ports = ports(name, engines, wanted)?;
    let claims = name.device().map(|device| claim::all(device, addresses));
    let claims = claims.transpose()?.unwrap_or_default();
    let info = name.device().map(DeviceInfo::of).transpose()?;
    // The kernel's end of a TAP device has the device's address: ours is another.
    let own = info.filter(|_| !matches!(name, PortName::Tap { .. }));
    let mac = own.map_or_else(|| mac_of(addresses.first().copied()), |info| info.mac);
    let mtu = info.map_or(MTU, |info| info.mtu).min(usize::from(u16::MAX));
    if let (Some(asked), Some(device)) = (wanted.mtu, name.device())
        && usize::from(asked) > mtu
    {
        let (device, most) = (device.to_owned(), mtu);
        return Err(InstanceError::MtuBeyondDevice {
            asked,
            device,
            most,
        });
    }
    let medium = Medium::Ethernet {
        mac: wanted.mac.unwrap_or(mac),
    };
    let device = |port: Box<dyn PacketIo>| {
        let can = wanted.offload && port.capabilities().offload;
        Device {
            port,
            medium,
            mtu: LinkMtu::new(wanted.mtu.unwrap_or(mtu as u16), wanted.mtu),
            offload: TxOffload {
                checksum: can,
                segmentation_v4: can,
                segmentation_v6: can,
            },
            kept: None,
            claims: Vec::new(),
        }
    };
    let mut devices: Vec<Device> = ports.into_iter().map(device).collect();
    if let Some(first) = devices.first_mut() {
        first.claims = claims;
    }
    if let (PortName::Packet { device }, Some(first)) = (name, devices.first_mut()) {
        first.kept = Some(Kept::from_kernel(device, addresses));
    }
    Ok(devices)
}

fn ports(
    name: &PortName,
    engines: u16,
    wanted: Wanted,
) -> Result<Vec<Box<dyn PacketIo>>, InstanceError> {
    let offload = wanted.offload;
    match name {
        PortName::Tap { name } => {
            let options = TapOptions {
                queues: engines.into(),
                gso: offload,
            };
            let mut ports: Vec<Box<dyn PacketIo>> = Vec::new();
            for mut port in TapPort::open(name, options)? {
                port.accept(Accepts {
                    checksums: offload,
                    segments_v4: offload,
                    segments_v6: offload,
                })?;
                ports.push(Box::new(port));
            }
            Ok(ports)
        }
        PortName::Packet { device } => {
            let options = PacketOptions {
                gso: offload,
                qdisc_bypass: !offload,
                fanout: (engines > 1).then_some(Fanout::New),
                receive_frames: RECEIVE_FRAMES,
                ..PacketOptions::default()
            };
            let first = PacketPort::open(device, options)?;
            let mut ports: Vec<Box<dyn PacketIo>> = Vec::new();
            if engines > 1 {
                let fanout = Some(Fanout::Join(first.fanout()?));
                for _ in 1..engines {
                    let other = PacketPort::open(device, PacketOptions { fanout, ..options })?;
                    ports.push(Box::new(other));
                }
                first.steer(&steering::program(wanted.datagrams_at_first))?;
            }
            ports.insert(0, Box::new(first));
            Ok(ports)
        }
        _ if engines > 1 => Err(InstanceError::Queues { engines }),
        name => Ok(vec![name.open(OpenOptions {
            gso: offload,
            ..OpenOptions::default()
        })?]),
    }
}

/// Locally administered (IEEE 802, 8.4), and the same at each start: neighbours remember it.
fn mac_of(address: Option<IpAddr>) -> [u8; 6] {
    let bits = match address {
        Some(IpAddr::V4(v4)) => v4.to_bits(),
        Some(IpAddr::V6(v6)) => v6.to_bits() as u32,
        None => 1,
    };
    let [a, b, c, d] = bits.to_be_bytes();
    [0x02, 0x68, a, b, c, d]
}

/// The device on which the kernel has this address itself.
fn kernel_has(address: IpAddr) -> Option<String> {
    let mut interfaces = nix::ifaddrs::getifaddrs().ok()?;
    interfaces.find_map(|interface| {
        let storage = interface.address?;
        let v4 = storage.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        let v6 = storage.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()));
        (v4.or(v6) == Some(address)).then_some(interface.interface_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_our_own_is_local_and_unicast() {
        let mac = mac_of(Some("10.0.0.2".parse().unwrap()));
        assert_eq!(mac, [2, 0x68, 10, 0, 0, 2]);
        assert_eq!(mac[0] & 0b11, 0b10);
    }

    #[test]
    fn loopback_is_the_kernels() {
        let found = kernel_has("127.0.0.1".parse().unwrap());
        // A namespace whose loopback device is down may have none.
        assert!(found.is_none_or(|device| device == "lo"));
        assert_eq!(kernel_has("198.51.100.77".parse().unwrap()), None);
    }
}
