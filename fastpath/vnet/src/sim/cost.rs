//! What the steps of both ends take.
use super::BadSetup;
use crate::Ns;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Costs {
    /// Driver: putting one packet into the ring.
    pub publish: Ns,
    /// Driver: a kick (exit, or write to an eventfd).
    pub kick: Ns,
    /// From the end of a kick until a sleeping device runs.
    pub wake: Ns,
    /// Device: serving one entry.
    pub serve: Ns,
    /// Device: a call.
    pub call: Ns,
    /// Driver: an interrupt.
    pub interrupt: Ns,
}

/// The costs of the reference table.
impl Default for Costs {
    fn default() -> Costs {
        Costs {
            publish: Ns(300),
            kick: Ns(2_000),
            wake: Ns(5_000),
            serve: Ns(500),
            call: Ns(2_000),
            interrupt: Ns(2_000),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

impl Costs {
    pub(super) fn check(self) -> Result<(), BadSetup> {
        let all = [
            ("publishing", self.publish),
            ("a kick", self.kick),
            ("waking", self.wake),
            ("serving", self.serve),
            ("a call", self.call),
            ("an interrupt", self.interrupt),
        ];
        for (what, Ns(ns)) in all {
            if ns > SECOND {
                return Err(BadSetup::Cost { what, ns });
            }
        }
        if self.publish.0 > 0 && self.serve.0 > 0 {
            Ok(())
        } else {
            Err(BadSetup::Free)
        }
    }
}
