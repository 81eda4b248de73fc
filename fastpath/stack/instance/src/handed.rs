//! What `stack run` hands to the process in which the stack is to run: the open port by its descriptor, and what the engine is
//! made with. JSON in a sealed memfd, whose number is in the environment.
use hopscope_netio::{PacketIo, PacketOptions, PacketPort, PortError};
use hopscope_stack_engine::config::{
    Address, BufferSizes, Congestion, Medium, Route, SocketBuffers, TxOffload,
};
use hopscope_stack_engine::{Config, TcpConfig};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub mod policy;

pub use policy::Policy;

/// Of the configuration.
pub const BYTES_MAX: usize = 1 << 20;
/// Holds two numbers of descriptors: of the configuration, and of the file whose lock the owner of the stack has.
pub const ENVIRONMENT: &str = "HOPSCOPE_STACK";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handed {
    /// Of both programs, which must be the same one.
    pub version: String,
    pub stack: HandedStack,
    pub reach: Reach,
    pub policy: Policy,
    pub trace: bool,
}

/// Where the stack is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum HandedStack {
    Inline(HandedInline),
    Instance(HandedInstance),
}

/// To be made in the program's process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HandedInline {
    pub port: HandedPort,
    pub engine: HandedEngine,
}

/// In a `stack serve`, where the program is attached ([`crate::programs`]).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HandedInstance {
    pub device: String,
    /// The device's number, which programs are told with datagrams.
    pub index: u32,
    pub door: i32,
    pub table: i32,
    /// Where it is found again, by whom it was, and what the program is called there.
    pub again: Again,
}

/// The way to an instance that has gone and come back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Again {
    pub path: PathBuf,
    pub user: u32,
    pub program: String,
}

/// Addresses of the stack, and where it has a way to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    pub addresses: Vec<(IpAddr, u8)>,
    /// Destination, bits of its prefix, gateway.
    pub routes: Vec<(IpAddr, u8, IpAddr)>,
}

/// A packet socket with its ring, bound to the device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HandedPort {
    pub device: String,
    /// The device's number, which programs are told with datagrams.
    pub index: u32,
    pub fd: i32,
    pub max_frame_len: usize,
    pub receive_frames: usize,
    pub gso: bool,
    /// What keeps packets from the kernel, as long as it is open.
    pub kept: Option<i32>,
    /// What has its addresses for this stack alone, as long as they are open.
    pub claims: Vec<i32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HandedEngine {
    pub mac: [u8; 6],
    pub mtu: u16,
    /// The device's is followed up to it.
    pub mtu_most: Option<u16>,
    pub offload: bool,
    pub lan: bool,
    pub cubic: bool,
    /// net.core.wmem_default and wmem_max.
    pub wmem: (u32, u32),
    /// net.core.rmem_default and rmem_max.
    pub rmem: (u32, u32),
    /// net.ipv4.ip_local_port_range.
    pub ports: (u16, u16),
}

/// # Errors
/// The version is another one, or it is no such text.
pub fn parse(text: &[u8]) -> Result<Handed, String> {
    let handed: Handed = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if handed.version != env!("CARGO_PKG_VERSION") {
        return Err(format!("made by version {}", handed.version));
    }
    Ok(handed)
}

impl Handed {
    /// What the stack is made from in this process.
    #[must_use]
    pub fn inline(&self) -> Option<&HandedInline> {
        match &self.stack {
            HandedStack::Inline(inline) => Some(inline),
            HandedStack::Instance(_) => None,
        }
    }

    #[must_use]
    pub fn instance(&self) -> Option<&HandedInstance> {
        match &self.stack {
            HandedStack::Inline(_) => None,
            HandedStack::Instance(instance) => Some(instance),
        }
    }

    /// Of what was handed over.
    #[must_use]
    pub fn descriptors(&self) -> Vec<i32> {
        match &self.stack {
            HandedStack::Inline(inline) => std::iter::once(inline.port.fd)
                .chain(inline.port.kept)
                .chain(inline.port.claims.iter().copied())
                .collect(),
            HandedStack::Instance(instance) => vec![instance.door, instance.table],
        }
    }
}

impl HandedPort {
    /// # Errors
    /// `socket` is another one.
    pub fn adopt(&self, socket: OwnedFd) -> Result<Box<dyn PacketIo>, PortError> {
        let options = options(self.gso, self.receive_frames);
        let port = PacketPort::adopt(
            &self.device,
            self.index,
            socket,
            self.max_frame_len,
            options,
        )?;
        Ok(Box::new(port))
    }
}

fn options(gso: bool, receive_frames: usize) -> PacketOptions {
    PacketOptions {
        gso,
        qdisc_bypass: !gso,
        receive_frames,
        ..PacketOptions::default()
    }
}

impl HandedEngine {
    #[must_use]
    pub fn config(&self, reach: &Reach, seed: [u8; 32]) -> Config {
        let mut config = Config::new(Medium::Ethernet { mac: self.mac }, seed);
        config.mtu = self.mtu;
        let address = |address, prefix_bits| Address {
            address,
            prefix_bits,
        };
        let addresses = reach.addresses.iter();
        config.addresses = addresses.map(|(ip, bits)| address(*ip, *bits)).collect();
        let routes = reach.routes.iter();
        config.routes = routes
            .map(|(to, bits, gateway)| Route {
                destination: address(*to, *bits),
                gateway: *gateway,
            })
            .collect();
        config.offload = TxOffload {
            checksum: self.offload,
            segmentation_v4: self.offload,
            segmentation_v6: self.offload,
        };
        if self.lan {
            config.tcp = TcpConfig::lan();
        }
        let sizes = |(initial, max)| BufferSizes { initial, max };
        config.buffers = SocketBuffers {
            send: sizes(self.wmem),
            receive: sizes(self.rmem),
        };
        config.ephemeral_ports = self.ports;
        config.tcp.congestion = match self.cubic {
            true => Congestion::Cubic,
            false => Congestion::NewReno,
        };
        config
    }
}
