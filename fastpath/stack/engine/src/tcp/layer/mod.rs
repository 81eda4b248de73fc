//! All connections of an engine.
mod calls;
mod errors;
mod input;
mod list;
mod listen;
mod mtu;
mod open;
mod output;
mod settle;
mod socket_options;
mod state;
mod time;

pub(crate) use state::{Host, Tcp};
