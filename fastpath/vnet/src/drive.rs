//! A front end: a driver of a network device in user space, over vhost-user.
//!
//! One thread does everything, in [`Driver::run`]. It looks at its rings while something is to be done soon, and
//! sleeps otherwise, with notifications enabled. It never waits for a full ring without them.
//!
//! ```text
//! source or port ── buffer ── queue 1 ── kick by policy ── back end
//! sink or port ── buffers ── queue 0 ── given again ── back end
//! ```
mod arena;
mod bridge;
mod counts;
mod error;
mod frame;
mod handshake;
mod pace;
mod queue;
mod receive;
mod resource_usage;
mod run;
mod source;
mod text;
mod watch;
mod wire;

pub use counts::{DriveCounts, DriveQueueCounts, Latency, ReceiveCounts, ResourceUsage};
pub use error::DriveError;
pub use frame::{LONGEST, SHORTEST};
pub use pace::Rate;
pub use queue::Arm;
pub use run::{DrivePlan, Driver, Work};
pub use source::Source;
pub use text::per_packet;
