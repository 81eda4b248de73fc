//! Stopping a process without being seen, system calls made in it, its memory.
//!
//! Nothing of the target's own code runs for us: no libc, no allocator, no loader.
mod again;
pub mod cgroup;
pub mod code;
pub mod descriptors;
mod error;
pub mod fault;
mod frame;
mod gadget;
mod launch;
pub mod ledger;
pub mod memfd;
pub mod memory;
pub(crate) mod pagemap;
mod patience;
mod preflight;
pub mod proc;
mod raised;
mod remote;
mod rseq;
mod scratch;
pub mod seccomp;
mod seize;
mod stop;
mod stopped;
mod sys;
mod unstoppable;
mod urgent;
pub(crate) mod vma_query;
pub mod write_track;

pub use error::AttachError;
pub use launch::{Held, LaunchError, launch};
pub use preflight::{Preflight, preflight};
pub use seize::let_late_go;
pub use stop::{stop_all, stop_each, stop_one};
pub use stopped::{StoppedProcess, Timing};
pub use sys::Regs;
pub use urgent::was_refused as real_time_was_refused;
