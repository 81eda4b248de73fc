//! Pure analysis: records in ring order in, calls and statistics out. No I/O.
//!
//! [`pair::Pairer`] rebuilds the calls of one thread from order and stack pointer alone and gives
//! them to a [`pair::Sink`]. [`Analysis`] is the sink that keeps bounded aggregates: statistics
//! for each function (or module, thread, process) and a tree of call paths. What could not be
//! paired is counted in a [`Balance`], whose identity always holds.
#![forbid(unsafe_code)]

mod analysis;
pub mod balance;
mod calls;
mod correct;
mod distribution;
mod index;
mod limbo;
mod packet;
mod packets;
pub mod pair;
mod run;
pub mod runs;
mod sink;
mod stacks;
mod stats;
pub mod tree;
mod values;
mod window;

pub use analysis::{Analysis, Batch, Group, Key, Options, Outcome, Row};
pub use balance::{Balance, Oddities};
pub use calls::{Calls, PlacedCall};
pub use correct::{Corrected, Correction};
pub use distribution::{Distribution, Quantile};
pub use index::{FUNCTION_IDS_MAX, Index};
pub use packet::{Match, NoMatch, Packet};
pub use packets::Packets;
pub use run::{Captured, Root, RootChoice, Run, RunCall, RunIx};
pub use runs::{RunCounts, RunOptions, Runs};
pub use stats::Stats;
pub use tree::{Node, NodeIx, Tree};
pub use window::{Window, WindowError, parse_span_ns};
