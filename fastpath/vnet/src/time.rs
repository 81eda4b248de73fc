//! Time as an argument: nothing in the policies or the simulator reads a clock.
use std::ops::Add;

/// Nanoseconds: a duration, or a point in time since a start that the caller chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    pub const fn from_us(us: u64) -> Ns {
        Ns(us * 1_000)
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
