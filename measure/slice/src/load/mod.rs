//! Loading, attaching and reading the kernel programs. The only module of this crate with unsafe
//! code: libbpf's instructions are reached through raw pointers.
mod attach;
mod config;
mod control;
mod counts;
mod error;
#[allow(unsafe_code)]
mod event;
mod hooks;
mod object;
#[allow(unsafe_code)]
mod ring;
mod running;
#[allow(unsafe_code)]
mod stats;

pub use attach::{Attached, Slicer};
pub(crate) use attach::{CLOCK_ONLY, EMPTY, EMPTY_FIRST};
pub(crate) use config::Choose;
pub use config::{Costs, Options};
pub use error::LoadError;
pub use event::event;
pub use hooks::{Backend, Hook, Offer, offers};
pub use object::{FILTER_INSNS, FILTER_SCRATCH};
pub use ring::{Drained, ENTRIES_MAX, Entry};
pub use running::{Running, Settings, running};

#[cfg(test)]
mod tests;
