//! What happened at each queue and port, exactly. Nothing that came is missing: a packet was handed on, or is
//! under one of the reasons in [`Drops`].
use super::queue_state::QueueState;
use crate::policy::PolicyCounts;
use hopscope_netio::Counters;
use hopscope_serving::control::ControlCounts;
use serde::Serialize;

/// Why a packet went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drop {
    /// Not longer than its header.
    Empty,
    /// Longer than the port takes, or than all chains of the queue hold.
    TooLong,
    /// A checksum or segments left to be done, which was not negotiated.
    Unfinished,
    /// A header that points outside its packet.
    Header,
    /// The port had cut it.
    Cut,
    /// Its queue ended before it was there whole: while it waited for room, or by what the driver wrote.
    Ended,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    pub empty: u64,
    pub too_long: u64,
    pub unfinished: u64,
    pub header: u64,
    pub cut: u64,
    pub ended: u64,
}

impl Drops {
    pub(super) fn count(&mut self, why: Drop) {
        *match why {
            Drop::Empty => &mut self.empty,
            Drop::TooLong => &mut self.too_long,
            Drop::Unfinished => &mut self.unfinished,
            Drop::Header => &mut self.header,
            Drop::Cut => &mut self.cut,
            Drop::Ended => &mut self.ended,
        } += 1;
    }

    pub fn sum(&self) -> u64 {
        self.empty + self.too_long + self.unfinished + self.header + self.cut + self.ended
    }
}

/// One queue, over all its front ends.
#[derive(Debug, Clone, Default, Serialize)]
pub struct QueueCounts {
    /// As often as the driver kicked: the eventfd adds up.
    pub kicks: u64,
    /// As often as this end saw that it had been.
    pub kicks_seen: u64,
    /// Written to the driver's eventfd.
    pub calls: u64,
    /// Of those, written because the eventfd was replaced or the back end is another, so that no earlier call is lost.
    pub calls_repeated: u64,
    /// Meant, but the driver gave no eventfd.
    pub calls_unheard: u64,
    /// Forwarded.
    pub packets: u64,
    pub bytes: u64,
    pub drops: Drops,
    /// Chains that were done with.
    pub chains: u64,
    /// Packets that had to wait for chains (received), or for room in the port (transmitted).
    pub waits: u64,
    /// Alarms of `--kick-policy defer` that came before the kick.
    pub alarms: u64,
    /// Times that `--kick-policy adaptive` looked again after the price of a kick, in place of asking for one.
    pub looks: u64,
    pub starts: u64,
    /// Of those, at a place that was read from the ring: the front end did not know it, as QEMU 7.2 of a packed ring.
    pub found: u64,
    /// Entries used with length 0 for that.
    pub emptied: u64,
    /// Ended because of what the driver wrote.
    pub broken: u64,
    /// Sum of the notification policies' counts.
    pub call_policy: PolicyCounts,
    /// In a report: what is not counted packet by packet.
    #[serde(flatten)]
    pub seen: Option<QueueState>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct PairCounts {
    /// From the port to the guest.
    pub rx: QueueCounts,
    /// From the guest to the port.
    pub tx: QueueCounts,
    pub port: Counters,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ServeCounts {
    /// Front ends that connected.
    pub connections: u64,
    /// Those that came while one was connected, and were sent away.
    pub turned_away: u64,
    /// Connections closed here after a protocol error.
    pub broken_off: u64,
    pub control: ControlCounts,
    pub pairs: Vec<PairCounts>,
}

impl PairCounts {
    /// Whether every packet is accounted for.
    pub fn conserved(&self) -> bool {
        self.rx.packets + self.rx.drops.sum() == self.port.received
            && self.tx.packets == self.port.sent
            && self.tx.chains == self.tx.packets + self.tx.drops.sum()
    }
}
