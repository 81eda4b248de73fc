//! Open-loop packets: each is due at an intended time, carries a stamp, and is matched when it
//! comes back. Every packet is in the end received or lost; everything else that arrives is counted
//! by what is wrong with it.
//!
//! Data path: [`arrivals`] says when, [`order`] and [`sizes`] say what, [`frame`] writes it into
//! the port's own memory; the [`matcher`] finds the [`stamp`] of each arrival and joins it with what the sender
//! noted in the [`window`].

pub mod arrivals;
pub mod checksum;
pub mod clock;
pub mod draw;
mod error;
pub mod flow;
pub mod frame;
pub mod order;
pub mod sizes;
pub mod stamp;

pub use error::PacketsError;
