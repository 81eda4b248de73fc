//! Stopping a process without being seen, system calls made in it, its memory.
//!
//! Nothing of the target's own code runs for us: no libc, no allocator, no loader.
mod again;
mod error;
pub mod fault;
mod frame;
mod gadget;
mod launch;
pub mod memory;
mod patience;
mod preflight;
pub(crate) mod proc;
mod remote;
mod rseq;
mod scratch;
pub mod seccomp;
mod stop;
mod stopped;
mod sys;
mod urgent;

pub use error::AttachError;
pub use launch::{Held, LaunchError, launch};
pub use preflight::{Preflight, preflight};
pub use stop::{stop_all, stop_one};
pub use stopped::{StoppedProcess, Timing};
pub use sys::Regs;
