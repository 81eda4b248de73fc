//! The event loop that servers, load generators and both ends of virtio-net are written on: a [`Poll`] says which
//! descriptors are ready, a [`Token`] which source that is, a [`Slab`] holds the connections.
//!
//! Names are mio's. It is not used: docs/adr/011-event-loop.md says what it cannot express here.
#![forbid(unsafe_code)]

mod poll;
mod slab;
mod token;

pub use poll::{Poll, Ready};
pub use slab::Slab;
pub use token::Token;
