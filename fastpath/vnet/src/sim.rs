//! A transmit queue in virtual time: a driver and a device, each one thread, and what their steps cost.
//!
//! **Driver.** In this order: it kicks when a hold is over; it takes a pending interrupt; it publishes
//! the oldest packet that waits, if the ring has room; else it idles. It reclaims used entries when an
//! interrupt begins and when it ends, and with each packet that it publishes. It asks for calls (arms)
//! at the end of an interrupt, and from the start on.
//! **Device.** Asleep until a kick, then awake after the time of waking. It serves available entries
//! one by one, calls as its policy says, and sleeps when the ring is empty; what it serves is used
//! at the end of the service. A call reaches the driver at its end.
//! **Suppression** is seen at once and exactly, in one of two ways ([`Suppression`]).
//! **Packets** come in bursts at exponentially distributed gaps; their latency runs from then until the
//! driver reclaims them. Packets that do not fit the ring wait; nothing is dropped.
//! All is whole nanoseconds from a seed: the same run gives the same bits on every machine.
mod arrivals;
mod cost;
mod device;
mod driver;
mod outcome;
mod reference;
mod shared;
pub mod table;
mod world;

pub use arrivals::Load;
pub use cost::Costs;
pub use outcome::SimResult;
pub use reference::{COLUMNS, Column, LOADS, reference};
pub use world::run;

use crate::Ns;
use crate::policy::{BadPolicy, HOLD_MAX, PolicyKind};

/// A packet, by its number.
type Packet = usize;

/// How a busy end suppresses notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suppression {
    /// A flag (`NO_NOTIFY`, `NO_INTERRUPT`) that the peer sets once it runs: while it wakes up, each
    /// further test still says "notify".
    Flag,
    /// The event index: the first notification takes it, further tests say "no" until it is set anew.
    Index,
}

/// The device makes the driver kick less: before it sleeps it asks, by the event index, for a kick only at
/// the `entries`-th entry from now, and wakes up by itself after `time`. It does so only when it has served
/// that many since it woke up last; otherwise it asks for the next one, and sets no alarm. The driver
/// need not know: any that honours the event index does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Defer {
    pub entries: u32,
    #[serde(rename = "time_ns")]
    pub time: Ns,
}

#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub kick: PolicyKind,
    pub call: PolicyKind,
    pub suppression: Suppression,
    pub defer: Option<Defer>,
    pub costs: Costs,
    pub load: Load,
    /// Entries of the ring.
    pub ring: u32,
    pub packets: u32,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadSetup {
    #[error(transparent)]
    Policy(#[from] BadPolicy),
    #[error("a ring of {0} entries: 1 … 32768")]
    Ring(u32),
    #[error("{0} packets: 1 … 10,000,000")]
    Packets(u32),
    #[error("{0} Mpps: above 0 and at most 1,000, a packet in each nanosecond")]
    Load(f64),
    #[error("bursts of {0} packets: 1 … 65536")]
    Burst(u32),
    #[error("{what} of {ns} ns: at most a second")]
    Cost { what: &'static str, ns: u64 },
    #[error("a kick can be deferred by the event index only, not by a flag")]
    DeferByFlag,
    #[error("kicks deferred by {} entries and {} us: 1 … 32768 entries, at most {} us", .0.entries, .0.time.0 / 1_000, HOLD_MAX.0 / 1_000)]
    Defer(Defer),
    #[error("steps that take no time: publishing and serving take at least 1 ns")]
    Free,
}

#[cfg(test)]
mod tests;
