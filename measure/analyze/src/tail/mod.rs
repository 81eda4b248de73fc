//! Why were these packets late?
//!
//! Two passes over the runs and the packets joined to them. [`Baseline`] learns what is ordinary:
//! how long each function takes at each batch size, how soon a packet is picked up, how long the
//! way out is, how often packets come. [`Tail`] then takes each packet above a [`Threshold`] apart:
//! its latency is split on the time line ([`Parts`], which add up exactly), and what exceeds the
//! ordinary is followed from the packet's own run back through the runs that were waited for, to
//! those that were slow by themselves. Packets that lead back to the same run are one *event*;
//! events become a named [`Cause`] only when chance does not explain them, else they are
//! [`Cause::Unknown`] with the [`Reason`].
//!
//! Both passes take runs in the order of their ends on each thread, and packets in any order that
//! is not more than half a history ([`RUNS_KEPT`]) away from their runs.
mod baseline;
mod bins;
mod blame;
mod brief;
mod cause;
mod chance;
mod events;
mod flows;
mod history;
mod off_cpu;
mod parts;
mod search;
mod verdict;
mod walk;

pub use baseline::{Baseline, BatchSize, Ordinary};
pub use brief::Place;
pub use cause::{Cause, Evidence, Link, Reason};
pub use events::Late;
pub use history::{RUNS_KEPT, SPANS_KEPT};
pub use parts::{PartOf, Parts, Segment};
pub use search::{Tail, TailCounts, Threshold};
pub use verdict::{Example, TailReport, TailRow};
