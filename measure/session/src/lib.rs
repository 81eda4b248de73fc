//! Measurements while they run: from what is attached to what is shown or written, and to the end of it.
#![forbid(unsafe_code)]

mod error;
pub mod output;
pub mod slice;
pub mod top;

pub use error::{Error, Result};
