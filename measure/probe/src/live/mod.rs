//! A live attachment: from accepted functions to patched entries and back.
pub mod build;
pub mod error;
pub mod found;
pub mod install;
pub mod leftover;
mod mapping;
pub(crate) mod maps;
mod patch;
mod place;
mod reap;
pub mod remove;
mod retire;
mod search;
mod standing;
mod switch;
pub mod table;

pub use error::LiveError;
