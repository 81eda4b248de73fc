//! The table that policies are compared by: five pairs of policies at eight loads.
use super::{BadSetup, Costs, Load, Setup, SimResult, Suppression, run};
use crate::Ns;
use crate::policy::PolicyKind;

/// A pair of policies, one for each end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kick: PolicyKind,
    pub call: PolicyKind,
}

const DRAIN: PolicyKind = PolicyKind::Batch { limit: u32::MAX };

/// Only the driver differs, but for the first: there each end notifies for each entry.
pub const COLUMNS: [Column; 5] = [
    Column {
        name: "plain",
        kick: PolicyKind::Plain,
        call: PolicyKind::Plain,
    },
    Column {
        name: "event-idx",
        kick: PolicyKind::EventIdx,
        call: DRAIN,
    },
    Column {
        name: "tam",
        kick: PolicyKind::Tam { limit: 1_024 },
        call: DRAIN,
    },
    Column {
        name: "ahc",
        kick: PolicyKind::Ahc {
            time: Ns::from_us(50),
            limit: 64,
        },
        call: DRAIN,
    },
    Column {
        name: "adaptive",
        kick: PolicyKind::Adaptive,
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
) -> Result<SimResult, BadSetup> {
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
