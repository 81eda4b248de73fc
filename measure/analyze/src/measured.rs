//! How many measured calls there were, by what their probes cost.
use std::ops::AddAssign;

/// Calls that were measured, and how many of these have their entry's stamp from the exit before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    pub calls: u64,
    pub fused: u64,
}

impl Measured {
    pub const NONE: Measured = Measured { calls: 0, fused: 0 };

    pub fn one(fused: bool) -> Measured {
        Measured {
            calls: 1,
            fused: u64::from(fused),
        }
    }

    /// Of these: with stamps of their own.
    pub(crate) fn plain(self) -> i128 {
        i128::from(self.calls) - i128::from(self.fused)
    }
}

/// All of them with stamps of their own.
impl From<u64> for Measured {
    fn from(calls: u64) -> Measured {
        Measured { calls, fused: 0 }
    }
}

/// A damaged file's absurd numbers end at the highest.
impl AddAssign for Measured {
    fn add_assign(&mut self, other: Measured) {
        self.calls = self.calls.saturating_add(other.calls);
        self.fused = self.fused.saturating_add(other.fused);
    }
}
