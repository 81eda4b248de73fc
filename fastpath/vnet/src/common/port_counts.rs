//! What a packet port counted.
use hopscope_netio::Counters;
use serde::Serialize;

#[derive(Debug, Clone, Default, Serialize)]
pub struct PortCounts {
    pub received: u64,
    pub received_bytes: u64,
    pub receive_dropped: u64,
    /// `receive_dropped` is what was read before, at least.
    pub device_gone: bool,
    pub receive_cut: u64,
    pub sent: u64,
    pub sent_bytes: u64,
    pub send_failed: u64,
}

impl From<Counters> for PortCounts {
    fn from(c: Counters) -> PortCounts {
        PortCounts {
            received: c.received,
            received_bytes: c.received_bytes,
            receive_dropped: c.receive_dropped,
            device_gone: c.device_gone,
            receive_cut: c.receive_cut,
            sent: c.sent,
            sent_bytes: c.sent_bytes,
            send_failed: c.send_failed,
        }
    }
}
