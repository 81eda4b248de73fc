//! A queue's state at one moment, for a report: what is not a count.
use super::kicks::Kicks;
use crate::Ns;
use crate::observe::Times;
use crate::policy::{PolicyCounts, PolicyKind};
use crate::shadow::{Advice, Did, Would};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct QueueState {
    /// Active notification policy.
    pub policy: PolicyKind,
    pub kick_policy: Kicks,
    /// The ring, while it is live.
    pub ring: Option<RingNow>,
    /// `None` without packets.
    pub kicks_per_packet: Option<f64>,
    pub calls_per_packet: Option<f64>,
    /// Each policy that was at work, in the order of their first turn.
    pub policies: Vec<ByPolicy>,
    /// Of packets that the guest sent, from the look that first found each available until it was given back. What
    /// the guest receives into waits for packets: no time is taken there.
    pub sojourn: Option<Times>,
    /// Looks that found more than those before, and the whole ring available. Packed rings do not tell.
    pub ring_full: Option<u64>,
    pub shadows: Option<Shadowed>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct RingNow {
    pub size: u16,
    pub packed: bool,
    pub event_idx: bool,
}

/// What a policy did while it was at work.
#[derive(Debug, Clone, Serialize)]
pub struct ByPolicy {
    pub policy: PolicyKind,
    #[serde(flatten)]
    pub counts: PolicyCounts,
    /// One for each announcement: how long its oldest entry had been unannounced.
    pub hold: Times,
}

/// What others would have sent since `since`.
#[derive(Debug, Clone, Serialize)]
pub struct Shadowed {
    /// Nanoseconds since the back end began.
    #[serde(rename = "since_ns")]
    pub since: Ns,
    /// What the policy at work did in that time.
    pub did: Did,
    pub would: Vec<Would>,
    pub advice: Advice,
    pub said: String,
}
