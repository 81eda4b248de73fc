//! Functions of files and of running processes: names, ranges, sources.
mod branches;
mod eh_frame;
mod error;
mod fragments;
mod functions;
mod headers;
mod image;
mod mapped;
mod names;
pub mod pattern;
mod plt;
pub mod signature;
mod source;

pub use branches::BranchTargets;
pub use error::LocateError;
pub use functions::{Function, NameSource};
pub use image::{Image, fuzz_image};
pub use mapped::{MappedModule, TextMapping, has_shadow_stack, mapped_modules};
pub use source::Lines;
