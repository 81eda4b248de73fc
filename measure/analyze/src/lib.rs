//! Pure analysis: records in ring order in, calls and statistics out. No I/O.
//!
//! [`pair::Pairer`] rebuilds the calls of one thread from order and stack pointer alone and gives
//! them to a [`pair::Sink`]. [`Analysis`] is the sink that keeps bounded aggregates: statistics
//! for each function (or module, thread, process) and a tree of call paths. What could not be
//! paired is counted in a [`Balance`], whose identity always holds.
#![forbid(unsafe_code)]

mod analysis;
pub mod balance;
mod batch;
mod calls;
mod clocks;
mod continuity;
mod correct;
mod counter_stats;
mod counting;
mod counts;
pub mod diff;
mod distribution;
pub mod in_place;
mod index;
pub mod join;
mod limbo;
mod mark;
mod measured;
mod off_cpu;
mod packet;
mod packets;
pub mod pair;
mod root;
mod run;
mod run_stats;
pub mod runs;
mod sink;
pub mod slice;
mod slot;
mod stack_owners;
mod stacks;
mod stats;
pub mod tail;
mod taken;
pub mod trail;
pub mod tree;
mod values;
mod window;

pub use analysis::{Analysis, AnalysisOptions, AnalysisResult, Group, Key, ROWS_MAX, Row};
pub use balance::{Balance, Oddities};
pub use batch::Batch;
pub use calls::{Calls, PlacedCall};
pub use clocks::{ClockMismatch, same_clock};
pub use correct::{Corrected, Correction};
pub use counter_stats::{CountSum, CounterStats, LeftOutCalls};
pub use counts::{CallCount, CallCounts, CounterKind, LeftOut};
pub use distribution::{Distribution, Quantile};
pub use index::{FUNCTION_IDS_MAX, Index};
pub use join::{JoinCounts, JoinError, Joined, Joiner, PacketId};
pub use measured::Measured;
pub use off_cpu::{OffCpuIndex, OffCpuShare, OffCpuTimes};
pub use packet::{Match, NoMatch, Packet};
pub use packets::Packets;
pub use root::{RootError, RootSearch, SEARCHED_RECORDS};
pub use run::{Captured, OUTSIDE_FUNCTIONS, OutsideCall, Root, RootChoice, Run, RunCall, RunIx};
pub use run_stats::{PartInRuns, RunStats};
pub use runs::{RunCounts, RunOptions, Runs};
pub use stack_owners::{InOrder, OwnedBatch, Read, StackOwners};
pub use stats::{OffCpuSum, Stats};
pub use taken::Taken;
pub use trail::Trail;
pub use tree::{Node, NodeIx, Tree};
pub use window::{Window, WindowError, parse_span_ns};
