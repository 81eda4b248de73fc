//! What both ends share: the ring, and the two requests for notifications.
use super::outcome::Tally;
use super::{Costs, Packet, Suppression};
use crate::Ns;
use crate::policy::Peer;
use std::collections::VecDeque;

pub(super) struct Shared {
    pub(super) costs: Costs,
    pub(super) suppression: Suppression,
    /// When each packet comes.
    pub(super) arrivals: Vec<Ns>,
    pub(super) available: VecDeque<Packet>,
    pub(super) used: VecDeque<Packet>,
    pub(super) free: u32,
    /// The device enables kicks.
    pub(super) kick_wanted: Peer,
    /// Entries published since the start.
    pub(super) published: u64,
    /// The device requests a kick when this entry is published.
    pub(super) kick_at: Option<u64>,
    /// The driver enables interrupts.
    pub(super) call_wanted: Peer,
    /// A call has arrived that the driver has not taken.
    pub(super) interrupt: bool,
    pub(super) tally: Tally,
}
