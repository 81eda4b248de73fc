//! Recordings on disk, and all that is derived from one: [`open`] takes either format, a [`Selection`] is the part of
//! it that is looked at, and the other modules drive it through analysis into a report.
//!
//! `analyze` and `report` do not know where records come from; here they meet `trace`. What a command takes and where
//! its output goes is `cli`'s.
#![forbid(unsafe_code)]

pub mod diff;
pub mod error;
pub mod export;
pub mod info;
pub mod joined;
pub mod late;
pub mod longest;
pub mod one_timeline;
pub mod page;
pub mod slice_file;
pub mod slices;
pub mod statistics;

mod between;
mod opened;
mod options;
mod packet_id;
mod records;
mod runs;
mod selection;
mod stamps;

pub use error::{Error, Result};
pub use opened::{Opened, damage_text, open};
pub use options::{Around, ReportOptions};
pub use records::batches;
pub use selection::{Part, Selection};
