//! What is told of a connection: `ss -ti`'s names.
use crate::{Ns, SocketId, SocketKind};
use std::net::SocketAddr;

/// RFC 9293, 3.3.2. Numbers are Linux' (include/net/tcp_states.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TcpState {
    Established = 1,
    SynSent = 2,
    SynReceived = 3,
    FinWait1 = 4,
    FinWait2 = 5,
    TimeWait = 6,
    Closed = 7,
    CloseWait = 8,
    LastAck = 9,
    Listen = 10,
    Closing = 11,
}

/// Linux' tcpi_ca_state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum CongestionState {
    #[default]
    Open = 0,
    Disorder = 1,
    Cwr = 2,
    Recovery = 3,
    Loss = 4,
}

/// Fields of `struct tcp_info` (include/uapi/linux/tcp.h), with their names and units where those are bytes or segments; times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    pub state: TcpState,
    pub ca_state: CongestionState,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options_timestamps: bool,
    pub options_sack: bool,
    pub options_window_scaling: bool,
    pub snd_wscale: u8,
    pub rcv_wscale: u8,
    pub rto: Ns,
    pub ato: Ns,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub advmss: u32,
    pub pmtu: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub last_data_sent: Ns,
    pub last_data_recv: Ns,
    pub last_ack_recv: Ns,
    pub rtt: Ns,
    pub rttvar: Ns,
    pub min_rtt: Ns,
    pub snd_ssthresh: u32,
    /// In segments.
    pub snd_cwnd: u32,
    pub rcv_rtt: Ns,
    pub rcv_space: u32,
    pub rcv_ssthresh: u32,
    pub reordering: u32,
    pub total_retrans: u32,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub data_segs_out: u32,
    pub data_segs_in: u32,
    pub notsent_bytes: u32,
    pub delivered: u32,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    /// How long there was something to send or to be acknowledged; of it, how long the peer's window and the send buffer were the limit.
    pub busy_time: Ns,
    pub rwnd_limited: Ns,
    pub sndbuf_limited: Ns,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
}

/// A row of `ss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// `None` for TIME-WAIT and requests that are not accepted yet.
    pub socket: Option<SocketId>,
    pub token: u64,
    pub kind: SocketKind,
    pub state: TcpState,
    pub local: SocketAddr,
    pub peer: Option<SocketAddr>,
    /// Recv-Q: unread bytes, or connections that wait to be accepted.
    pub receive_queue: u32,
    /// Send-Q: bytes that are not acknowledged, or the backlog.
    pub send_queue: u32,
    pub info: Option<TcpInfo>,
}
