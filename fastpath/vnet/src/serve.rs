//! A vhost-user-net back end: a socket, the guest's memory, doorbells, and a packet port.
//!
//! One thread does everything, in [`Server::run`]: messages of the front end, kicks, the port, timers. So
//! between two messages the queues stand still, and nothing is locked. What a driver or a front end writes
//! is refused and counted; the worst of it ends its own queue or connection.
//!
//! ```text
//! socket ── wire ── session ── vhost::Control       messages, descriptors, memory
//!                      │
//! kick ── queue ── transmit ── port                 each chain: header checked, copied, given back
//! port ── receive ── queue ── call                  each packet: as many chains as it needs
//! ```
mod arriving;
mod command;
mod control;
mod counts;
#[allow(unsafe_code)]
mod descriptors;
mod error;
mod kicks;
mod linger;
mod listen;
mod memory;
mod notice;
mod observed;
mod offload;
mod pair;
#[allow(unsafe_code)]
mod privileges;
mod queue;
mod receive;
mod request;
mod run;
mod seen;
mod session;
mod source;
mod transmit;
#[allow(unsafe_code)]
mod vanished;
mod wire;

pub use control::ControlCounts;
pub use counts::{Drops, PairCounts, QueueCounts, ServeCounts};
pub use error::{Broken, ServeError};
pub use kicks::{BadKicks, Kicks};
pub use notice::Notice;
pub use privileges::RunAs;
pub use queue::{DeferKicks, QueueError};
pub use run::{Plan, Server};
pub use seen::{ByPolicy, RingNow, Seen, Shadowed};

#[cfg(test)]
mod tests;
