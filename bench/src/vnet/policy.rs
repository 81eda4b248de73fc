//! The policies that are compared: what each end of a queue is told.
use serde::Serialize;

/// Both ends of a way of notifying.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Policy {
    pub(super) name: &'static str,
    pub(super) kicks: &'static str,
    /// Of entries that the back end used; the same for both queues.
    pub(super) calls: &'static str,
    /// Whether the event index is there. Without it suppression is a flag.
    pub(super) event_idx: bool,
}

const fn policy(
    name: &'static str,
    kicks: &'static str,
    calls: &'static str,
    event_idx: bool,
) -> Policy {
    Policy {
        name,
        kicks,
        calls,
        event_idx,
    }
}

pub(super) const ADAPTIVE: &str = "adaptive";
pub(super) const PLAIN: &str = "plain";
pub(super) const EVENT_IDX: &str = "event-idx";
pub(super) const TAM: &str = "tam";
pub(super) const AHC: &str = "ahc";

/// Of one transmit queue: the front end's policy is what differs. All but `plain` have the same back end,
/// which handles what is there and then calls once if it is asked to.
pub(super) const OF_KICKS: [Policy; 7] = [
    policy(PLAIN, "plain", "plain", false),
    policy("suppress", "suppress", "batch", false),
    policy(EVENT_IDX, "event-idx", "batch", true),
    policy(TAM, "tam", "batch", true),
    policy("tam:64", "tam:64", "batch", true),
    policy(AHC, "ahc:50:64", "batch", true),
    policy(ADAPTIVE, "adaptive", "batch", true),
];

/// Of a network: both ends as their authors have them. AHC is the front end's alone.
pub(super) const OF_ENDS: [Policy; 6] = [
    policy(PLAIN, "plain", "plain", false),
    policy("suppress", "suppress", "suppress", false),
    policy(EVENT_IDX, "event-idx", "event-idx", true),
    policy(TAM, "tam", "tam", true),
    policy(AHC, "ahc:50:64", "event-idx", true),
    policy(ADAPTIVE, "adaptive", "adaptive", true),
];
