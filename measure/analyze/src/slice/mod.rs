//! Slices of the kernel's path: from a record's stamps to times without the cost of the probes.
//!
//! A packet's stamps, in the order in which they were taken, cut its time into *pieces*: their sum
//! is the whole. A piece is named after the regions that it is of. A *region* whose both points
//! were stamped has a time of its own too; it is one piece unless other points lie inside it, or it
//! overlaps another: a driver that hands the packet to the receiver before it returns.
mod border;
mod clock;
mod connections;
mod correct;
mod flags;
mod layout;
mod packet;
mod stats;

#[cfg(test)]
mod tests;

pub use border::{Beside, BorderCounts, Borders, Sides, SystemCalls, TimedCall};
pub use clock::RealTime;
pub use connections::Connections;
pub use flags::PieceFlags;
pub use layout::NameIx;
pub use packet::{PacketSlices, Piece, RegionTime, Slicer, Span};
pub use stats::{SliceRow, SliceStats};
