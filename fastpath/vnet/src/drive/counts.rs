//! What a front end did, exactly.
use crate::Ns;
use crate::policy::PolicyCounts;
use hopscope_netio::Counters;
use serde::Serialize;

/// One queue.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DriveQueueCounts {
    /// Written to the back end's eventfd.
    pub kicks: u64,
    /// Interrupts (used-buffer notifications), as counted by the eventfd.
    pub calls: u64,
    /// Transmitted to the back end, or received from it.
    pub packets: u64,
    /// Of those, without headers.
    pub bytes: u64,
    /// Used by the back end: entries of the ring.
    pub entries: u64,
    /// Times a packet was at hand and the ring was full.
    pub full: u64,
    /// Times this end enabled notifications before it slept.
    pub asked: u64,
    /// What the policy of kicks did.
    pub kick_policy: PolicyCounts,
}

/// Outcomes of received packets.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReceiveCounts {
    /// Frames of ours, to the byte.
    pub own: u64,
    /// Of those, not the next number.
    pub disordered: u64,
    /// Frames of ours with other bytes.
    pub wrong: u64,
    /// Frames of others.
    pub others: u64,
    /// Not longer than their header, or longer than the port takes.
    pub dropped: u64,
}

/// From a packet's coming until it was reclaimed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Latency {
    #[serde(rename = "latency_p50_ns")]
    pub p50: Ns,
    #[serde(rename = "latency_p99_ns")]
    pub p99: Ns,
    #[serde(rename = "latency_max_ns")]
    pub max: Ns,
}

/// The thread's own, from the first packet's time until all were back.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ResourceUsage {
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Ns,
    #[serde(rename = "cpu_ns")]
    pub cpu: Ns,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct DriveCounts {
    pub tx: DriveQueueCounts,
    pub rx: DriveQueueCounts,
    pub came: ReceiveCounts,
    #[serde(flatten)]
    pub latency: Latency,
    #[serde(flatten)]
    pub spent: ResourceUsage,
    /// The other side of a bridge.
    pub port: Option<Counters>,
}
