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
mod busy_poll;
mod command;
mod counts;
#[allow(unsafe_code)]
mod descriptors;
mod error;
mod fill;
mod kicks;
mod live;
mod memory;
mod notice;
mod offload;
mod pair;
mod policies;
mod policy_counts;
mod qemu;
mod queue;
mod queue_state;
mod receive;
mod receive_direct;
mod request;
mod run;
mod session;
#[allow(unsafe_code)]
mod sigbus;
mod source;
mod text;
mod transmit;
mod wire;

pub use counts::{Drops, PairCounts, QueueCounts, ServeCounts};
pub use error::{Broken, ServeError};
pub use kicks::{BadKicks, DeferKicks, Kicks};
pub use live::QueueError;
pub use notice::Notice;
pub use qemu::qemu;
pub use queue_state::{ByPolicy, QueueState, RingNow, Shadowed};
pub use run::{BackEndPlan, Server};

#[cfg(test)]
mod tests;
