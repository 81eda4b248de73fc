//! The device, the addresses and the settings of a stack: what a server and a client take alike.
use crate::netns;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hopscope_netio::{PortError, PortName};
use hopscope_stack_engine::config::{
    Address, BufferSizes, Congestion, Medium, Route, SocketBuffers,
};
use hopscope_stack_engine::{Config, TcpConfig};
use hopscope_stack_instance::Device;
use hopscope_stack_instance::device::{self, Wanted};
use hopscope_stack_instance::handed::{HandedEngine, Reach};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Args)]
pub(super) struct LinkArgs {
    /// Port: DEVICE or packet:DEVICE, tap:NAME, xdp:DEVICE[:QUEUE] (docs/netio.md)
    #[arg(long = "if", value_name = "PORT")]
    pub(super) interface: PortName,
    /// Address of the stack and length of its prefix; repeat for several
    #[arg(long, value_name = "IP/LEN", required = true, value_parser = parse_prefix)]
    pub(super) addr: Vec<Address>,
    /// Gateway of the default route; repeat for IPv4 and IPv6
    #[arg(long, value_name = "IP")]
    gateway: Vec<IpAddr>,
    /// Ethernet address [default: the device's; tap: made from the address]
    #[arg(long, value_name = "MAC", value_parser = hopscope_load::packets::link::parse_mac)]
    mac: Option<[u8; 6]>,
    /// Longest IP packet in bytes [default, and at most: the device's MTU]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,
    /// Network namespace of the device: ip-netns name or path
    #[arg(long, value_name = "NAME|PATH")]
    netns: Option<String>,
    /// Compute checksums and cut segments here, not in the kernel or the device
    #[arg(long)]
    no_offload: bool,
    /// Timers: linux (RTO from 200 ms), lan (RTO from 5 ms)
    #[arg(long, value_enum, default_value_t = Profile::Linux)]
    profile: Profile,
    /// Congestion control
    #[arg(long, value_enum, default_value_t = CongestionArg::Cubic)]
    congestion: CongestionArg,
    /// Never sleep: busy-poll the device
    #[arg(long)]
    pub(super) spin: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Profile {
    Linux,
    Lan,
}

#[derive(Clone, Copy, ValueEnum)]
enum CongestionArg {
    Cubic,
    Reno,
}

/// `10.0.0.2/24`
pub(super) fn parse_prefix(text: &str) -> Result<Address, String> {
    let wrong = || format!("{text:?} is not IP/LEN like 10.0.0.2/24 or fd00::2/64");
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    Ok(Address {
        address: address.parse().map_err(|_| wrong())?,
        prefix_bits: bits.parse().map_err(|_| wrong())?,
    })
}

impl LinkArgs {
    /// A device for each engine.
    pub(super) fn open(
        &self,
        engines: u16,
        datagrams_at_first: bool,
    ) -> anyhow::Result<Vec<Device>> {
        self.check()?;
        let addresses: Vec<IpAddr> = self.addr.iter().map(|a| a.address).collect();
        let wanted = Wanted {
            offload: !self.no_offload,
            mac: self.mac,
            mtu: self.mtu,
            datagrams_at_first,
        };
        netns::within(self.netns.as_deref(), || {
            let devices = device::open(&self.interface, engines, &addresses, wanted)?;
            if let Some(Err(error)) = devices.first().and_then(|device| device.kept.as_ref()) {
                self.kernel_sees(error);
            }
            Ok(devices)
        })
    }

    /// Not without a word where that matters.
    fn kernel_sees(&self, error: &PortError) {
        let device = self.interface.device().unwrap_or_default();
        let forwards = |family: &str| {
            let switch = format!("/proc/sys/net/{family}/conf/{device}/forwarding");
            std::fs::read_to_string(switch).is_ok_and(|text| text.trim() != "0")
        };
        let said = format!("{error}: the kernel sees packets to the stack, too");
        if forwards("ipv4") || forwards("ipv6") {
            log::warn!("{said}, and may forward or answer them: switch forwarding off on {device}");
        } else {
            log::info!("{said}, and drops them");
        }
    }

    /// What cannot be, whatever the device is.
    fn check(&self) -> anyhow::Result<()> {
        for (n, addr) in self.addr.iter().enumerate() {
            let address = addr.address;
            if self.addr[..n].iter().any(|other| other.address == address) {
                bail!("--addr {address}/{} is given twice", addr.prefix_bits);
            }
        }
        for (n, gateway) in self.gateway.iter().enumerate() {
            let before = self.gateway[..n].iter();
            if let Some(other) = before
                .into_iter()
                .find(|g| g.is_ipv6() == gateway.is_ipv6())
            {
                bail!("--gateway {gateway}: {other} is the gateway of that family already");
            }
            reachable(*gateway, &self.addr)?;
        }
        match self.mac {
            Some([0, 0, 0, 0, 0, 0]) => bail!("--mac 00:00:00:00:00:00 is no address of a host"),
            Some(mac) if mac[0] & 1 != 0 => {
                let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
                bail!("--mac {mac} is a group's address: the first byte must be even");
            }
            _ => Ok(()),
        }
    }

    /// Of one engine on one of those.
    pub(super) fn config(&self, device: &Device) -> anyhow::Result<Config> {
        let mut config = Config::new(device.medium, seed()?);
        config.mtu = device.mtu.get();
        config.addresses.clone_from(&self.addr);
        config.routes = self.gateway.iter().map(|ip| default_route(*ip)).collect();
        config.offload = device.offload;
        config.buffers = socket_buffers();
        config.ephemeral_ports = ephemeral_ports().unwrap_or(config.ephemeral_ports);
        config.tcp = match self.profile {
            Profile::Linux => TcpConfig::default(),
            Profile::Lan => TcpConfig::lan(),
        };
        config.tcp.congestion = match self.congestion {
            CongestionArg::Cubic => Congestion::Cubic,
            CongestionArg::Reno => Congestion::NewReno,
        };
        Ok(config)
    }

    /// The same, for another process.
    pub(super) fn handed(&self, device: &Device) -> anyhow::Result<HandedEngine> {
        let Medium::Ethernet { mac } = device.medium else {
            bail!("a device without Ethernet addresses");
        };
        let config = self.config(device)?;
        Ok(HandedEngine {
            mac,
            mtu: config.mtu,
            mtu_most: self.mtu,
            offload: config.offload.checksum,
            lan: matches!(self.profile, Profile::Lan),
            cubic: matches!(self.congestion, CongestionArg::Cubic),
            wmem: (config.buffers.send.initial, config.buffers.send.max),
            rmem: (config.buffers.receive.initial, config.buffers.receive.max),
            ports: config.ephemeral_ports,
        })
    }

    /// Where the stack is, and leads to.
    pub(super) fn reach(&self) -> Reach {
        let addresses = self.addr.iter();
        let routes = self.gateway.iter().map(|ip| default_route(*ip));
        Reach {
            addresses: addresses.map(|a| (a.address, a.prefix_bits)).collect(),
            routes: routes
                .map(|r| (r.destination.address, r.destination.prefix_bits, r.gateway))
                .collect(),
        }
    }

    /// The first setting that is the stack's, where it is somebody else's.
    pub(super) fn of_the_stack(&self) -> Option<&'static str> {
        match (self.addr.is_empty(), self.gateway.is_empty()) {
            (false, _) => Some("--addr"),
            (_, false) => Some("--gateway"),
            (true, true) => self.beside_reach(),
        }
    }

    /// What of it does not say where the stack leads.
    pub(super) fn beside_reach(&self) -> Option<&'static str> {
        let given = [
            (self.mac.is_some(), "--mac"),
            (self.mtu.is_some(), "--mtu"),
            (self.netns.is_some(), "--netns"),
            (self.no_offload, "--no-offload"),
            (matches!(self.profile, Profile::Lan), "--profile"),
            (
                matches!(self.congestion, CongestionArg::Reno),
                "--congestion",
            ),
            (self.spin, "--spin"),
        ];
        given.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
    }

    /// Whether one of the addresses is of that family.
    pub(super) fn has(&self, ipv6: bool) -> bool {
        self.addr.iter().any(|a| a.address.is_ipv6() == ipv6)
    }
}

/// Whether a gateway is on the link: else nothing would ever get beyond it.
fn reachable(gateway: IpAddr, addresses: &[Address]) -> anyhow::Result<()> {
    let mut of_family = addresses
        .iter()
        .filter(|a| a.address.is_ipv6() == gateway.is_ipv6())
        .peekable();
    if of_family.peek().is_none() {
        let family = if gateway.is_ipv6() { "IPv6" } else { "IPv4" };
        bail!("--gateway {gateway}: there is no {family} address: give --addr");
    }
    if addresses.iter().any(|a| a.address == gateway) {
        bail!("--gateway {gateway} is the stack's own address");
    }
    let is_link_local = matches!(gateway, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if !is_link_local && !of_family.any(|ours| contains(ours, gateway)) {
        bail!("--gateway {gateway} is in no network of --addr: it must be on the link");
    }
    Ok(())
}

fn contains(network: &Address, address: IpAddr) -> bool {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    };
    let differ = bits(network.address) ^ bits(address);
    differ.leading_zeros() >= u32::from(network.prefix_bits)
}

fn default_route(gateway: IpAddr) -> Route {
    let any: IpAddr = match gateway {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Route {
        destination: Address {
            address: any,
            prefix_bits: 0,
        },
        gateway,
    }
}

/// As the kernel's sockets have them; its own defaults where they cannot be read.
fn socket_buffers() -> SocketBuffers {
    let sysctl = |name: &str| sysctl(&format!("core/{name}"))?.trim().parse::<u32>().ok();
    let sizes = |default: BufferSizes, [initial, max]: [&str; 2]| BufferSizes {
        initial: sysctl(initial).unwrap_or(default.initial),
        max: sysctl(max).unwrap_or(default.max),
    };
    let default = SocketBuffers::default();
    SocketBuffers {
        send: sizes(default.send, ["wmem_default", "wmem_max"]),
        receive: sizes(default.receive, ["rmem_default", "rmem_max"]),
    }
}

fn ephemeral_ports() -> Option<(u16, u16)> {
    let range = sysctl("ipv4/ip_local_port_range")?;
    let mut ports = range.split_whitespace().map(str::parse);
    Some((ports.next()?.ok()?, ports.next()?.ok()?))
}

fn sysctl(name: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/net/{name}")).ok()
}

fn seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    let mut random = std::fs::File::open("/dev/urandom").context("/dev/urandom")?;
    random.read_exact(&mut seed).context("/dev/urandom")?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_on_the_link() {
        let ours = ["10.0.0.2/24", "fd00::2/64"].map(|text| parse_prefix(text).unwrap());
        let is_reachable = |gateway: &str| reachable(gateway.parse().unwrap(), &ours).is_ok();
        for good in ["10.0.0.1", "fd00::1", "fe80::1"] {
            assert!(is_reachable(good), "{good}");
        }
        for bad in ["10.0.1.1", "10.0.0.2", "fd01::1", "fd00::2"] {
            assert!(!is_reachable(bad), "{bad}");
        }
        assert!(reachable("fe80::1".parse().unwrap(), &ours[..1]).is_err());
        assert!(reachable("10.0.0.1".parse().unwrap(), &ours[1..]).is_err());
    }

    #[test]
    fn prefixes() {
        let prefix = parse_prefix("fd00::2/64").unwrap();
        assert_eq!(prefix.address, "fd00::2".parse::<IpAddr>().unwrap());
        assert_eq!(prefix.prefix_bits, 64);
        for wrong in ["10.0.0.2", "10.0.0.2/", "10.0.0/24", "/24", "a/b", ""] {
            assert!(parse_prefix(wrong).is_err(), "{wrong}");
        }
    }
}
