//! A queue's ring while it is live.
use super::busy_poll::BusyPoll;
use crate::Ns;
use crate::common::Negotiated;
use crate::common::eventfd::EventfdError;
use crate::end::Back;
use crate::ring::{Chain, Layout, RingError};
use hopscope_netio::{Offload, PortError};
use std::collections::VecDeque;

/// A queue that ended here: by what the driver wrote, or by a doorbell that cannot be rung.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error(transparent)]
    Ring(#[from] RingError),
    #[error(transparent)]
    Eventfd(#[from] EventfdError),
    #[error(transparent)]
    Port(#[from] PortError),
}

pub(super) struct Live {
    pub(super) back: Back,
    pub(super) layout: Layout,
    pub(super) taken: Negotiated,
    /// Received into: chains taken and not used yet, oldest first.
    pub(super) held: VecDeque<Chain>,
    /// Entries since this end last slept.
    pub(super) served: u32,
    /// Of a deferred kick.
    pub(super) alarm: Option<Ns>,
    /// Until when to busy-poll with kicks disabled.
    pub(super) look: Option<Ns>,
    pub(super) busy_poll: BusyPoll,
}

/// A packet that was taken from the port and has no chains yet.
pub(super) struct Pending {
    pub(super) bytes: Vec<u8>,
    pub(super) offload: Offload,
}
