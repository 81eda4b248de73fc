//! What a connection's sending half is made with.
use crate::Ns;
use crate::config::{Congestion, TcpConfig};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SenderConfig {
    pub(crate) congestion: Congestion,
    pub(crate) hystart: bool,
    /// Payload bytes of a full segment: the peer's MSS and the path's MTU, less the options of each segment (RFC 6691).
    pub(crate) mss: u32,
    /// In segments.
    pub(crate) initial_window: u32,
    /// Negotiated (RFC 2018, 2).
    pub(crate) sack: bool,
    pub(crate) rack: bool,
    pub(crate) tail_loss_probe: bool,
    pub(crate) f_rto: bool,
    pub(crate) rto_initial: Ns,
    pub(crate) rto_min: Ns,
    pub(crate) rto_max: Ns,
    /// How long the peer may delay an acknowledgement (RFC 8985, 7.2, TLP.max_ack_delay).
    pub(crate) max_ack_delay: Ns,
    /// Of the clock in our timestamps option: two stamps closer than this may be the same.
    pub(crate) timestamp_tick: Ns,
}

impl SenderConfig {
    /// `sack`: negotiated. `mss`: as above.
    pub(crate) fn new(
        config: &TcpConfig,
        mss: u32,
        sack: bool,
        timestamp_tick: Ns,
    ) -> SenderConfig {
        SenderConfig {
            congestion: config.congestion,
            hystart: config.hystart,
            mss: mss.max(1),
            initial_window: config.initial_window.max(1),
            sack,
            rack: config.rack && sack,
            tail_loss_probe: config.tail_loss_probe && sack,
            f_rto: config.f_rto,
            rto_initial: config.rto_initial,
            rto_min: config.rto_min,
            rto_max: config.rto_max,
            max_ack_delay: config.delayed_ack_max,
            timestamp_tick,
        }
    }
}
