//! What a recording says of itself, without its records being read: one value, for programs and for people.
mod contents;
mod slices;
mod text;

pub use contents::{Damaged, Held, Info, Stamped, Thread};
pub use slices::Slices;
