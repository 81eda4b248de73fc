//! Names and values of the socket calls.
use crate::Ns;
use crate::config::Congestion;
use std::net::{IpAddr, SocketAddr};

/// A socket of one [`crate::Engine`]. Never names another one after it is closed, until 2³² sockets later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl SocketId {
    #[must_use]
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    #[must_use]
    pub fn from_bits(bits: u64) -> SocketId {
        SocketId {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SocketKind {
    Tcp,
    Udp,
}

/// What poll(2) says of a socket now, with poll's meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Readiness {
    /// POLLIN: bytes, a connection to accept, the end of the stream, or an error.
    pub readable: bool,
    /// POLLOUT: at least a third of the send buffer is free (Linux, sk_stream_is_writeable), or an error.
    pub writable: bool,
    /// POLLRDHUP: no more bytes will come.
    pub read_hangup: bool,
    /// POLLHUP: both directions are shut down.
    pub hangup: bool,
    /// POLLERR: SO_ERROR is set.
    pub error: bool,
}

/// Something happened on a socket after which its [`Readiness`] may be new: what EPOLLET would report. Events of one socket that were not
/// drained yet are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub socket: SocketId,
    /// What [`crate::Engine::set_token`] gave it; 0 at first. An accepted socket begins with 0.
    pub token: u64,
    pub readiness: Readiness,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowToShut {
    Read,
    Write,
    Both,
}

/// Of `send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendFlags {
    /// MSG_MORE.
    pub more: bool,
}

/// Of `recv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecvFlags {
    /// MSG_PEEK.
    pub peek: bool,
    /// MSG_TRUNC: TCP discards instead of copying; the count is of what was discarded.
    pub truncate: bool,
}

/// Where a datagram goes, and what of it is not as the socket's options say. Of `send_datagram`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outbound {
    /// `None`: to the connected peer.
    pub peer: Option<SocketAddr>,
    /// The address it comes from (IP_PKTINFO, IPV6_PKTINFO).
    pub source: Option<IpAddr>,
    /// IP_TTL, IPV6_HOPLIMIT.
    pub hop_limit: Option<u8>,
    /// IP_TOS, IPV6_TCLASS.
    pub traffic_class: Option<u8>,
}

/// A datagram that was received. Of `recv_datagram`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inbound {
    /// Of the whole datagram; what the buffer did not hold is discarded.
    pub len: usize,
    pub peer: SocketAddr,
    /// The address it was sent to, of ours or of a group (IP_PKTINFO, IPV6_RECVPKTINFO). As the peer's, mapped on an IPv6 socket.
    pub to: IpAddr,
    /// IP_RECVTTL, IPV6_RECVHOPLIMIT.
    pub hop_limit: u8,
    /// IP_RECVTOS, IPV6_RECVTCLASS.
    pub traffic_class: u8,
}

/// IP_MTU_DISCOVER, IPV6_MTU_DISCOVER: what becomes of datagrams beyond the path's MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MtuDiscovery {
    /// IP_PMTUDISC_DONT: fragmented here, and by routers.
    Dont,
    /// IP_PMTUDISC_WANT: fragmented here, never by routers.
    #[default]
    Want,
    /// IP_PMTUDISC_DO: refused (EMSGSIZE).
    Do,
    /// IP_PMTUDISC_PROBE: refused beyond the link's MTU; the path's is not looked at.
    Probe,
    /// IP_PMTUDISC_INTERFACE: as those, and fragmented by routers.
    Interface,
    /// IP_PMTUDISC_OMIT: as `Dont` (Linux' own fragments are as long as the link's MTU, these as the path's).
    Omit,
}

/// SO_LINGER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linger {
    /// Off: close returns at once, and what is unsent goes on to be sent.
    #[default]
    Background,
    /// l_onoff with l_linger 0: close sends RST.
    Reset,
    /// The owner waits by itself, up to so long; the engine treats it as [`Linger::Background`].
    Wait(Ns),
}

/// Options that can be set and read. Each is named after Linux' option and has its meaning and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketOption {
    /// TCP_NODELAY.
    NoDelay(bool),
    /// TCP_CORK.
    Cork(bool),
    /// TCP_QUICKACK.
    QuickAck(bool),
    /// TCP_MAXSEG, of the next connection, or the present one's upper bound.
    MaxSegment(u16),
    /// SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT.
    KeepAlive(bool),
    KeepIdle(Ns),
    KeepInterval(Ns),
    KeepCount(u8),
    /// TCP_USER_TIMEOUT; 0: none.
    UserTimeout(Ns),
    /// TCP_LINGER2; 0 s: the default, `None`: without a socket it ends with a reset.
    FinTimeout(Option<Ns>),
    /// TCP_SYNCNT.
    SynCount(u8),
    /// TCP_DEFER_ACCEPT; 0: off.
    DeferAccept(Ns),
    /// TCP_WINDOW_CLAMP; 0: none.
    WindowClamp(u32),
    /// TCP_NOTSENT_LOWAT.
    NotSentLowWater(u32),
    /// SO_RCVLOWAT.
    ReceiveLowWater(u32),
    /// SO_SNDBUF, SO_RCVBUF, doubled as Linux does; turns autotuning off.
    SendBuffer(u32),
    ReceiveBuffer(u32),
    /// SO_REUSEADDR, SO_REUSEPORT.
    ReuseAddress(bool),
    ReusePort(bool),
    /// SO_LINGER.
    Linger(Linger),
    /// IPV6_V6ONLY.
    V6Only(bool),
    /// TCP_CONGESTION.
    Congestion(Congestion),
    /// IP_TTL: for peers of IPv4, as the two below.
    HopLimit(u8),
    /// IP_TOS.
    TrafficClass(u8),
    /// IP_MTU_DISCOVER; of TCP it changes nothing.
    MtuDiscovery(MtuDiscovery),
    /// IPV6_UNICAST_HOPS: for peers of IPv6, as the two below.
    HopLimitV6(u8),
    /// IPV6_TCLASS.
    TrafficClassV6(u8),
    /// IPV6_MTU_DISCOVER; of TCP it changes nothing.
    MtuDiscoveryV6(MtuDiscovery),
}
