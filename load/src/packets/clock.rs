//! The time that a generator goes by: the counter that probes read. An argument everywhere, so
//! that tests run on one that they turn themselves.
use hopscope_event::{Tsc, TscFrequency};
use hopscope_netio::clock::tsc_now;
pub use hopscope_netio::clock::{clock_sync as sync, measure_frequency as frequency};
use std::time::Duration;

pub trait Clock {
    fn now(&self) -> Tsc;
}

/// The processor's.
#[derive(Debug, Clone, Copy)]
pub struct Machine;

impl Clock for Machine {
    #[inline]
    fn now(&self) -> Tsc {
        tsc_now()
    }
}

/// Ticks of a duration, rounded down.
pub fn ticks(frequency: TscFrequency, time: Duration) -> u64 {
    (time.as_nanos() * u128::from(frequency.0) / 1_000_000_000) as u64
}
