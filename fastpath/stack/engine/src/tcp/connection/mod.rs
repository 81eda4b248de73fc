//! One connection, from ESTABLISHED on. Each file has one part of what it does, as methods of [`Connection`].
mod calls;
mod close;
mod create;
mod data;
mod delayed_ack;
mod input;
mod limited;
mod output;
mod path;
mod sacks;
mod space;
mod state;
mod timers;
mod told;
mod validate;
mod window;

pub(crate) use create::Beginning;
pub(crate) use output::Emit;
pub(crate) use space::{initial_window, window_scale};
pub(crate) use state::{Connection, NEVER};
pub(crate) use timers::backed_off_from;
pub(crate) use told::empty as empty_info;
