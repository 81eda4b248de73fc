//! A live attachment: from accepted functions to patched entries and back.
pub mod breakpoints;
pub mod build;
mod clock;
mod contexts;
mod detach;
pub mod error;
pub mod found;
mod inside;
pub mod install;
pub mod leftover;
mod mapping;
mod own_stack;
mod pages;
mod patch;
mod place;
mod reap;
pub mod remove;
mod retire;
pub mod rings;
mod search;
mod searched;
mod standing;
mod survey;
mod switch;
pub mod table;
mod text;

pub use error::LiveError;
