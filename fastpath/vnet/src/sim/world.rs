//! Whose turn it is.
use super::device::Device;
use super::driver::Driver;
use super::outcome::{SimResult, Tally};
use super::shared::Shared;
use super::{BadSetup, Setup, Suppression, arrivals};
use crate::policy::{HOLD_MAX, Peer};
use std::collections::VecDeque;

/// Runs until every packet is reclaimed.
///
/// # Errors
/// What the setup lacks.
pub fn run(setup: &Setup) -> Result<SimResult, BadSetup> {
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
    Ok(shared
        .tally
        .outcome(setup, driver.counts(), device.counts()))
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
    if (1..=10_000_000).contains(&setup.packets) {
        Ok(())
    } else {
        Err(BadSetup::Packets(setup.packets))
    }
}
