//! Measurements while they run: from what is attached to what is shown or written, and to the end of it.
#![forbid(unsafe_code)]

pub mod attach;
pub mod detach;
mod error;
pub mod functions;
pub mod guard;
pub mod output;
pub mod record;
mod signals;
pub mod slice;
mod slowdown;
pub mod status;
pub mod top;

pub use error::{Error, Result};
pub use signals::stop_at_signals;
