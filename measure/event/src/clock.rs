//! Time: TSC ticks and nanoseconds are different types, converted only through a known frequency.
#[cfg(feature = "read-clocks")]
pub mod read;

use core::ops::{Add, Sub};
use serde::{Deserialize, Serialize};

/// A time-stamp counter value, in ticks (Intel SDM vol. 3, 19.17; AMD APM vol. 2, 13.2.4).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tsc(pub u64);

/// A duration or instant in nanoseconds; the clock is named where it is used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    pub const fn from_us(us: u64) -> Ns {
        Ns(us * 1_000)
    }

    pub const fn from_ms(ms: u64) -> Ns {
        Ns(ms * 1_000_000)
    }

    /// How long ago `earlier` was; 0 when it is still to come.
    pub fn since(self, earlier: Ns) -> Ns {
        Ns(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ns {
    type Output = Ns;

    fn add(self, other: Ns) -> Ns {
        Ns(self.0.saturating_add(other.0))
    }
}

impl Sub for Tsc {
    /// Ticks between two stamps; negative when `rhs` is later.
    type Output = i64;
    fn sub(self, rhs: Tsc) -> i64 {
        self.0.wrapping_sub(rhs.0) as i64
    }
}

impl Add<u64> for Tsc {
    type Output = Tsc;
    fn add(self, ticks: u64) -> Tsc {
        Tsc(self.0.wrapping_add(ticks))
    }
}

/// TSC ticks per second, measured against `CLOCK_MONOTONIC` by the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TscFrequency(pub u64);

impl TscFrequency {
    /// Nanoseconds for a number of ticks, rounded to nearest; sign kept.
    pub fn ns(self, ticks: i64) -> i64 {
        let scaled = ticks.unsigned_abs() as u128 * 1_000_000_000 + self.0 as u128 / 2;
        let ns = (scaled / self.0.max(1) as u128) as i64;
        if ticks < 0 { -ns } else { ns }
    }

    /// Ticks for a number of nanoseconds, rounded down.
    pub fn ticks(self, ns: Ns) -> u64 {
        (ns.0 as u128 * self.0 as u128 / 1_000_000_000) as u64
    }
}

/// One instant on three clocks, to align recordings with other traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSync {
    pub tsc: Tsc,
    /// `CLOCK_MONOTONIC`
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`
    pub realtime_ns: u64,
    /// Width of the window in which the three were read, in ticks: the error bound of this point.
    pub window_ticks: u64,
}

/// The same instant on the probes' clock and on `CLOCK_MONOTONIC_RAW`, which no time service slews
/// and which the kernel stamps its own events with when asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawSync {
    pub tsc: Tsc,
    pub raw_ns: u64,
    /// As in [`ClockSync`].
    pub window_ticks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_to_ns_rounds_and_keeps_sign() {
        let f = TscFrequency(2_500_000_000);
        assert_eq!(f.ns(5), 2);
        assert_eq!(f.ns(-5), -2);
        assert_eq!(f.ns(25_000_000_000), 10_000_000_000);
        assert_eq!(f.ticks(Ns(1_000)), 2_500);
    }

    #[test]
    fn tsc_difference_is_signed() {
        assert_eq!(Tsc(3) - Tsc(5), -2);
    }
}
