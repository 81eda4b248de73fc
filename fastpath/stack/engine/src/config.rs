//! What an engine is made with.
use crate::Ns;
use crate::wire::flow_hash;
use std::net::{IpAddr, SocketAddr};

/// An address of ours and how many of its leading bits are the network's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    pub address: IpAddr,
    pub prefix_bits: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub destination: Address,
    pub gateway: IpAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    Ethernet {
        mac: [u8; 6],
    },
    /// Frames are IP packets.
    Ip,
}

/// What the device does by itself with frames that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxOffload {
    /// Completes partial checksums of TCP and UDP.
    pub checksum: bool,
    /// Segments TCP over IPv4 of up to 64 KiB; only with `checksum`.
    pub segmentation_v4: bool,
    pub segmentation_v6: bool,
}

/// Several engines share one device and its addresses, by [`crate::wire::flow_hash`] of each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub index: u16,
    pub of: u16,
    /// Datagrams are all the first engine's.
    pub datagrams_at_first: bool,
}

impl Share {
    /// One engine that has the device for itself.
    pub const ALONE: Share = Share {
        index: 0,
        of: 1,
        datagrams_at_first: false,
    };

    /// Which engine has a connection.
    #[must_use]
    pub fn owner(self, peer: SocketAddr, local: SocketAddr) -> u16 {
        match self.of {
            0 | 1 => 0,
            of => (flow_hash(peer, local) % u32::from(of)) as u16,
        }
    }

    #[must_use]
    pub fn has(self, peer: SocketAddr, local: SocketAddr) -> bool {
        self.owner(peer, local) == self.index
    }

    #[must_use]
    pub fn has_datagrams(self, peer: SocketAddr, local: SocketAddr) -> bool {
        match self.datagrams_at_first {
            true => self.index == 0,
            false => self.has(peer, local),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Config {
    pub medium: Medium,
    /// Of IP packets, in bytes.
    pub mtu: u16,
    pub addresses: Vec<Address>,
    pub routes: Vec<Route>,
    pub offload: TxOffload,
    pub share: Share,
    pub tcp: TcpConfig,
    pub buffers: SocketBuffers,
    pub max_sockets: u32,
    /// Of all buffers together. Beyond it windows close and segments are dropped, which is counted.
    pub memory_bytes: u64,
    /// Ephemeral ports, both included (ip_local_port_range).
    pub ephemeral_ports: (u16, u16),
    /// Initial sequence numbers, cookies, ports and hashes come from it.
    pub seed: [u8; 32],
}

impl Config {
    /// Linux' defaults on Ethernet, without addresses.
    #[must_use]
    pub fn new(medium: Medium, seed: [u8; 32]) -> Config {
        Config {
            medium,
            mtu: 1500,
            addresses: Vec::new(),
            routes: Vec::new(),
            offload: TxOffload::default(),
            share: Share::ALONE,
            tcp: TcpConfig::default(),
            buffers: SocketBuffers::default(),
            max_sockets: 1 << 20,
            memory_bytes: 1 << 30,
            ephemeral_ports: (32_768, 60_999),
            seed,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Congestion {
    NewReno,
    /// RFC 9438 with HyStart++ (RFC 9406).
    #[default]
    Cubic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SynCookies {
    /// When the SYN queue is full.
    #[default]
    WhenFull,
    Always,
    Never,
}

/// Sizes in bytes of a socket's buffer: at the beginning, and what autotuning may make of it (tcp_rmem, tcp_wmem).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSizes {
    pub initial: u32,
    pub max: u32,
}

/// net.core.wmem_default and rmem_default, which are UDP's; net.core.wmem_max and rmem_max: beyond them SO_SNDBUF and SO_RCVBUF set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketBuffers {
    pub send: BufferSizes,
    pub receive: BufferSizes,
}

impl Default for SocketBuffers {
    fn default() -> SocketBuffers {
        let sizes = BufferSizes {
            initial: 212_992,
            max: 212_992,
        };
        SocketBuffers {
            send: sizes,
            receive: sizes,
        }
    }
}

impl SocketBuffers {
    /// SO_SNDBUF's value: Linux counts its own overhead, too, and doubles it (SOCK_MIN_SNDBUF).
    pub(crate) fn send_bytes(&self, asked: u32) -> u32 {
        doubled(asked, self.send.max).max(4_608)
    }

    /// SO_RCVBUF's value (SOCK_MIN_RCVBUF).
    pub(crate) fn receive_bytes(&self, asked: u32) -> u32 {
        doubled(asked, self.receive.max).max(2_304)
    }
}

/// INT_MAX / 2 of them at most (`__sock_set_rcvbuf`).
fn doubled(asked: u32, max: u32) -> u32 {
    asked.min(max).min(i32::MAX as u32 / 2) * 2
}

/// Defaults are Linux' sysctls of the same meaning.
#[derive(Debug, Clone)]
pub struct TcpConfig {
    pub congestion: Congestion,
    pub hystart: bool,
    /// In segments (RFC 6928).
    pub initial_window: u32,
    pub sack: bool,
    pub timestamps: bool,
    pub window_scaling: bool,
    pub rack: bool,
    pub tail_loss_probe: bool,
    pub f_rto: bool,
    /// RFC 6298: before the first sample, lower bound, upper bound.
    pub rto_initial: Ns,
    pub rto_min: Ns,
    pub rto_max: Ns,
    /// Longest delay of an acknowledgement; the shortest that adaption may reach.
    pub delayed_ack_max: Ns,
    pub delayed_ack_min: Ns,
    pub syn_retries: u8,
    pub synack_retries: u8,
    /// tcp_retries2: time-outs in a row until a connection is given up.
    pub retries: u8,
    pub orphan_retries: u8,
    /// Connections whose sockets are closed; beyond so many (tcp_max_orphans), or without memory, closing resets.
    pub orphans_max: u32,
    /// tcp_fin_timeout: in FIN-WAIT-2 without a socket.
    pub fin_timeout: Ns,
    pub time_wait: Ns,
    /// A new connection may take a TIME-WAIT's place (tcp_tw_reuse, RFC 6191).
    pub time_wait_reuse: bool,
    pub time_wait_max: u32,
    pub keep_idle: Ns,
    pub keep_interval: Ns,
    pub keep_count: u8,
    pub syn_backlog: u32,
    pub syn_cookies: SynCookies,
    /// tcp_abort_on_overflow.
    pub abort_on_overflow: bool,
    pub receive_buffer: BufferSizes,
    pub send_buffer: BufferSizes,
    /// Challenge ACKs of all connections together, each second (RFC 5961, 7).
    pub challenge_acks_per_s: u32,
    /// ACKs of invalid segments, of one connection (tcp_invalid_ratelimit).
    pub invalid_ack_interval: Ns,
    /// A frame for the device to cut has at least so many segments where there are as many to send (Linux tcp_min_tso_segs).
    pub min_frame_segments: u32,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            congestion: Congestion::Cubic,
            hystart: true,
            initial_window: 10,
            sack: true,
            timestamps: true,
            window_scaling: true,
            rack: true,
            tail_loss_probe: true,
            f_rto: true,
            rto_initial: Ns::from_ms(1_000),
            rto_min: Ns::from_ms(200),
            rto_max: Ns::from_ms(120_000),
            delayed_ack_max: Ns::from_ms(200),
            delayed_ack_min: Ns::from_ms(40),
            syn_retries: 6,
            synack_retries: 5,
            retries: 15,
            orphan_retries: 8,
            orphans_max: 65_536,
            fin_timeout: Ns::from_ms(60_000),
            time_wait: Ns::from_ms(60_000),
            time_wait_reuse: true,
            time_wait_max: 262_144,
            keep_idle: Ns::from_ms(7_200_000),
            keep_interval: Ns::from_ms(75_000),
            keep_count: 9,
            syn_backlog: 4096,
            syn_cookies: SynCookies::WhenFull,
            abort_on_overflow: false,
            receive_buffer: BufferSizes {
                initial: 131_072,
                max: 6 << 20,
            },
            send_buffer: BufferSizes {
                initial: 16_384,
                max: 4 << 20,
            },
            challenge_acks_per_s: 1_000,
            invalid_ack_interval: Ns::from_ms(500),
            min_frame_segments: 2,
        }
    }
}

impl TcpConfig {
    /// For round trips below some milliseconds: a lost last segment is repaired in milliseconds where Linux' defaults wait 200.
    #[must_use]
    pub fn lan() -> TcpConfig {
        TcpConfig {
            rto_initial: Ns::from_ms(100),
            rto_min: Ns::from_ms(5),
            delayed_ack_max: Ns::from_ms(10),
            delayed_ack_min: Ns::from_ms(1),
            ..TcpConfig::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("MTU {mtu} is below {least}, the least of {family}: choose a larger one")]
    MtuTooSmall {
        mtu: u16,
        least: u16,
        family: &'static str,
    },
    #[error("{0} is no unicast address: choose an address of this host's network")]
    NotUnicast(IpAddr),
    #[error("no address: give at least one")]
    NoAddress,
    #[error("a prefix of {bits} bits is longer than {address}: choose at most {most}")]
    Prefix { address: IpAddr, bits: u8, most: u8 },
    #[error("engine {index} of {of}: the index must be less")]
    Share { index: u16, of: u16 },
    #[error("segmentation offload needs checksum offload")]
    SegmentationWithoutChecksum,
}
