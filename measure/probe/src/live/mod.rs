//! A live attachment: from accepted functions to patched entries and back.
pub mod build;
pub mod error;
pub mod found;
pub mod install;
mod mapping;
pub mod maps;
mod patch;
mod place;
pub mod remove;
mod retire;
mod standing;
mod switch;
pub mod table;

pub use error::LiveError;
