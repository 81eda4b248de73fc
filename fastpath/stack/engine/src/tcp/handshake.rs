//! What SYNs offer and agree on: MSS (RFC 9293, 3.7.1), window scale and timestamps (RFC 7323), SACK (RFC 2018).
use super::options::SocketOptions;
use crate::TcpConfig;
use crate::wire::tcp_options::{self, Timestamps};

/// RFC 9293, 3.7.1: a peer that does not say.
const DEFAULT_MSS: u16 = 536;

/// What counts for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) peer_mss: u16,
    /// Of the windows that the peer announces; of ours. Both 0 where there is no scaling.
    pub(crate) snd_wscale: u8,
    pub(crate) rcv_wscale: u8,
    pub(crate) window_scaling: bool,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ts_offset: u32,
    /// The peer's TSval.
    pub(crate) ts_recent: u32,
}

/// Options of our first SYN. `wscale`: of our windows.
pub(crate) fn offer(
    config: &TcpConfig,
    mss: u16,
    wscale: u8,
    stamps: Timestamps,
) -> tcp_options::TcpOptions {
    tcp_options::TcpOptions {
        mss: Some(mss),
        window_scale: config.window_scaling.then_some(wscale),
        sack_permitted: config.sack,
        timestamps: config.timestamps.then_some(stamps),
        ..tcp_options::TcpOptions::default()
    }
}

/// Options of our SYN that answers one: none that the peer did not offer.
pub(crate) fn answer(agreed: &Agreed, mss: u16, value: u32) -> tcp_options::TcpOptions {
    tcp_options::TcpOptions {
        mss: Some(mss),
        window_scale: agreed.window_scaling.then_some(agreed.rcv_wscale),
        sack_permitted: agreed.sack,
        timestamps: agreed.timestamps.then_some(Timestamps {
            value,
            echo: agreed.ts_recent,
        }),
        ..tcp_options::TcpOptions::default()
    }
}

/// Of the peer's SYN.
pub(crate) fn agree(
    config: &TcpConfig,
    options: &SocketOptions,
    peer: &tcp_options::TcpOptions,
    wscale: u8,
    ts_offset: u32,
) -> Agreed {
    let scaling = config.window_scaling && peer.window_scale.is_some();
    let mut peer_mss = peer.mss.filter(|mss| *mss > 0).unwrap_or(DEFAULT_MSS);
    if options.max_segment > 0 {
        peer_mss = peer_mss.min(options.max_segment);
    }
    let stamps = peer.timestamps.filter(|_| config.timestamps);
    Agreed {
        peer_mss,
        snd_wscale: peer.window_scale.filter(|_| scaling).unwrap_or(0),
        rcv_wscale: if scaling { wscale } else { 0 },
        window_scaling: scaling,
        sack: config.sack && peer.sack_permitted,
        timestamps: stamps.is_some(),
        ts_offset,
        ts_recent: stamps.map_or(0, |s| s.value),
    }
}

/// The MSS that we announce for packets of `mtu` bytes (RFC 6691: options are not subtracted).
pub(crate) fn announced_mss(mtu: u16, v4: bool, options: &SocketOptions) -> u16 {
    let headers = if v4 { 40 } else { 60 };
    let mss = mtu.saturating_sub(headers).max(48);
    match options.max_segment {
        0 => mss,
        most => mss.min(most),
    }
}
