//! What both ends share, and whose turn it is.
use super::device::Device;
use super::driver::Driver;
use super::outcome::{Outcome, Tally};
use super::{BadSetup, Costs, Setup, Suppression, arrivals};
use crate::Ns;
use crate::policy::{HOLD_MAX, Peer};
use std::collections::VecDeque;

/// A packet, by its number.
pub(super) type Packet = usize;

/// The ring and the two requests for notifications.
pub(super) struct Shared {
    pub(super) costs: Costs,
    pub(super) suppression: Suppression,
    /// When each packet comes.
    pub(super) arrivals: Vec<Ns>,
    pub(super) available: VecDeque<Packet>,
    pub(super) used: VecDeque<Packet>,
    pub(super) free: u32,
    /// The device asks for a kick.
    pub(super) kick_wanted: Peer,
    /// Entries published since the start.
    pub(super) published: u64,
    /// The device asks for a kick when this entry is published.
    pub(super) kick_at: Option<u64>,
    /// The driver asks for a call.
    pub(super) call_wanted: Peer,
    /// A call has arrived that the driver has not taken.
    pub(super) interrupt: bool,
    pub(super) tally: Tally,
}

/// Runs until every packet is reclaimed.
///
/// # Errors
/// What the setup lacks.
pub fn run(setup: &Setup) -> Result<Outcome, BadSetup> {
    check(setup)?;
    let mut shared = Shared {
        costs: setup.costs,
        suppression: setup.suppression,
        arrivals: arrivals::arrivals(setup.load, setup.packets, setup.seed)?,
        available: VecDeque::new(),
        used: VecDeque::new(),
        free: setup.ring,
        kick_wanted: Peer::Asleep,
        published: 0,
        kick_at: None,
        call_wanted: Peer::Asleep,
        interrupt: false,
        tally: Tally::default(),
    };
    let mut driver = Driver::new(setup.kick)?;
    let mut device = Device::new(setup.call, setup.defer)?;
    loop {
        // At the same instant the driver is first; a step's end and the next one's beginning are one turn.
        let next = [driver.next(&shared), device.next(&shared)];
        match next {
            [Some(now), other] if other.is_none_or(|other| now <= other) => {
                driver.turn(now, &mut shared, &mut device);
            }
            [_, Some(now)] => device.turn(now, &mut shared),
            // Neither will ever move again: all is done, or all is stuck.
            _ => break,
        }
    }
    Ok(shared.tally.outcome(setup, &driver, &device))
}

fn check(setup: &Setup) -> Result<(), BadSetup> {
    setup.costs.check()?;
    setup.load.check()?;
    if let Some(defer) = setup.defer {
        if setup.suppression == Suppression::Flag {
            return Err(BadSetup::DeferByFlag);
        }
        if !(1..=32_768).contains(&defer.entries) || defer.time > HOLD_MAX {
            return Err(BadSetup::Defer(defer));
        }
    }
    if !(1..=32_768).contains(&setup.ring) {
        return Err(BadSetup::Ring(setup.ring));
    }
    match (1..=10_000_000).contains(&setup.packets) {
        true => Ok(()),
        false => Err(BadSetup::Packets(setup.packets)),
    }
}
