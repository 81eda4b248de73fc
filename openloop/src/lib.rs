//! Open-loop load. Packets or requests are due at times that are drawn beforehand; no answer, slow or missing, delays the
//! next one, and latency counts from the time at which something was due. In a closed loop each user waits for an answer
//! before the next request: a slow server is then sent less, and what it delayed is not measured.
//!
//! Schroeder, Wierman and Harchol-Balter, "Open Versus Closed: A Cautionary Tale" (NSDI 2006) has both models and how far
//! their results differ; Tene, "How NOT to Measure Latency" (2013) names the error coordinated omission.
#![forbid(unsafe_code)]

pub mod latency;
mod logarithm;
pub mod pending;
pub mod random;
pub mod schedule;

pub use pending::Pending;
pub use random::SplitMix64;
pub use schedule::{Arrivals, Schedule};
