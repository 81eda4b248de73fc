//! When packets come: bursts of one size at exponentially distributed gaps.
use super::BadSetup;
use crate::Ns;
use hopscope_openloop::{Arrivals, Schedule, SplitMix64};

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Load {
    /// Millions of packets a second, all bursts together.
    pub mpps: f64,
    /// Packets that come at the same instant.
    pub burst: u32,
}

impl Load {
    pub(super) fn check(self) -> Result<(), BadSetup> {
        if !(self.mpps > 0.0 && self.mpps <= 1_000.0) {
            return Err(BadSetup::Load(self.mpps));
        }
        if !(1..=65_536).contains(&self.burst) {
            return Err(BadSetup::Burst(self.burst));
        }
        Ok(())
    }
}

/// One instant for each of `packets` packets, in order; the last burst may be cut short.
pub(super) fn arrivals(load: Load, packets: u32, seed: u64) -> Result<Vec<Ns>, BadSetup> {
    let bursts = Arrivals::PoissonBursts {
        size: load.burst,
        every: 1,
    };
    let schedule = Schedule::new(bursts, load.mpps * 1e6, 1e9, SplitMix64::new(seed));
    let mut schedule = schedule.ok_or(BadSetup::Load(load.mpps))?.portable();
    Ok((0..packets).map(|_| Ns(schedule.next_due())).collect())
}
