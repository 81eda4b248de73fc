//! The table that policies are compared by: five pairs of policies at eight loads.
use super::{BadSetup, Costs, Load, Outcome, Setup, Suppression, run};
use crate::Ns;
use crate::policy::Kind;

/// A pair of policies, one for each end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kick: Kind,
    pub call: Kind,
}

const DRAIN: Kind = Kind::Batch { limit: u32::MAX };

/// Only the driver differs, but for the first: there each end notifies for each entry.
pub const COLUMNS: [Column; 5] = [
    Column {
        name: "plain",
        kick: Kind::Plain,
        call: Kind::Plain,
    },
    Column {
        name: "event-idx",
        kick: Kind::EventIdx,
        call: DRAIN,
    },
    Column {
        name: "tam",
        kick: Kind::Tam { limit: 1_024 },
        call: DRAIN,
    },
    Column {
        name: "ahc",
        kick: Kind::Ahc {
            time: Ns::from_us(50),
            limit: 64,
        },
        call: DRAIN,
    },
    Column {
        name: "adaptive",
        kick: Kind::Adaptive,
        call: DRAIN,
    },
];

/// From one packet a millisecond to two and a half times what the device can serve.
pub const LOADS: [Load; 8] = [
    load(0.001, 1),
    load(0.05, 1),
    load(0.2, 1),
    load(0.2, 16),
    load(0.5, 1),
    load(1.0, 1),
    load(1.6, 1),
    load(5.0, 1),
];

const fn load(mpps: f64, burst: u32) -> Load {
    Load { mpps, burst }
}

/// One cell.
///
/// # Errors
/// None that these columns and loads can have; `suppression` and `seed` are the caller's.
pub fn reference(
    column: Column,
    load: Load,
    suppression: Suppression,
    seed: u64,
) -> Result<Outcome, BadSetup> {
    run(&Setup {
        kick: column.kick,
        call: column.call,
        suppression,
        defer: None,
        costs: Costs::default(),
        load,
        ring: 1_024,
        packets: 20_000,
        seed,
    })
}
