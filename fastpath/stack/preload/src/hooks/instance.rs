//! Calls on sockets that the instance has: the kernel's on one end of a pair of unix(7), with what TCP does otherwise. SAFETY comments
//! "as libc's" say: the program passes what libc's call of that name takes.
mod bytes;
pub mod datagram_options;
pub mod datagrams;
mod ends;
mod opening;
mod options;
mod told;

pub use bytes::{before_receive, discard, received, sendmsg, sends};
pub use ends::{address, came_with, shutdown};
pub use opening::{accept4, after_connect, connect, listen};
pub use options::{getsockopt, ioctl, setsockopt};
