//! What a run came to.
use super::{Packet, Setup};
use crate::Ns;
use crate::policy::PolicyCounts;

/// Kept during the run.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) now: Ns,
    pub(super) kicks: u64,
    pub(super) calls: u64,
    pub(super) served: u64,
    /// By packet; one that is never reclaimed, or twice, shows.
    latencies: Vec<Ns>,
    reclaimed_in_order: u64,
}

impl Tally {
    pub(super) fn reclaimed(&mut self, packet: Packet, latency: Ns) {
        self.reclaimed_in_order += u64::from(packet == self.latencies.len());
        self.latencies.push(latency);
    }

    pub(super) fn outcome(
        mut self,
        setup: &Setup,
        kicks: PolicyCounts,
        calls: PolicyCounts,
    ) -> SimResult {
        self.latencies.sort_unstable();
        let rank = |part: usize| {
            // The smallest latency that at least part/100 of the packets do not exceed.
            let rank = (self.latencies.len() * part).div_ceil(100);
            self.latencies.get(rank.max(1) - 1).copied()
        };
        SimResult {
            packets: u64::from(setup.packets),
            served: self.served,
            reclaimed: self.latencies.len() as u64,
            reclaimed_in_order: self.reclaimed_in_order,
            kicks: self.kicks,
            calls: self.calls,
            p50: rank(50).unwrap_or_default(),
            p99: rank(99).unwrap_or_default(),
            latency_max: rank(100).unwrap_or_default(),
            lasted: self.now,
            kick_counts: kicks,
            call_counts: calls,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimResult {
    pub packets: u64,
    /// Handled by the device.
    pub served: u64,
    /// Seen by the driver as used.
    pub reclaimed: u64,
    /// Of those, in the order in which the packets came, none twice.
    pub reclaimed_in_order: u64,
    pub kicks: u64,
    pub calls: u64,
    /// From a packet's coming until it is reclaimed.
    pub p50: Ns,
    pub p99: Ns,
    pub latency_max: Ns,
    /// From the start, the first gap included, until neither end had anything left to do.
    pub lasted: Ns,
    pub kick_counts: PolicyCounts,
    pub call_counts: PolicyCounts,
}

impl SimResult {
    /// Every packet came through, once, in its order.
    pub fn conserved(&self) -> bool {
        [self.served, self.reclaimed, self.reclaimed_in_order] == [self.packets; 3]
    }

    /// Notifications for each packet.
    pub fn per_packet(&self, notifications: u64) -> f64 {
        notifications as f64 / self.packets as f64
    }

    /// Millions of packets a second over the whole run.
    pub fn mpps(&self) -> f64 {
        self.packets as f64 * 1_000.0 / self.lasted.0.max(1) as f64
    }
}
