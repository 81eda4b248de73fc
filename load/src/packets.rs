//! Open-loop packets: each is due at an intended time, carries a stamp, and is matched when it
//! comes back. Every packet is in the end received or lost; everything else that arrives is counted
//! by what is wrong with it.
//!
//! Data path: [`arrivals`] says when, [`order`] and [`sizes`] say what, [`frame`] writes it into
//! the port's own memory; the [`matcher`] finds the [`stamp`] of each arrival and joins it with what the sender
//! noted in the [`window`].

pub mod captured;
pub mod checksum;
pub mod clock;
pub mod due;
mod error;
pub mod find_max;
pub mod flow;
pub mod frame;
pub mod lines;
pub mod link;
pub mod matcher;
pub mod order;
pub mod plan;
pub mod ports;
pub mod recognize;
pub mod reflect;
pub mod replay;
pub mod rows;
pub mod rules;
pub mod run;
pub mod sampling;
pub mod sender;
pub mod sizes;
pub mod source;
pub mod stamp;
pub mod tally;
pub mod wait;
pub mod window;

pub use error::PacketsError;
