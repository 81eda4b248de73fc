//! Another process, seen and changed from outside: its memory map and memory, its threads stopped
//! and resumed, system calls made in it, its seccomp filters evaluated.
//!
//! Nothing here knows of probes. None of the target's own code runs for us: no libc, no allocator, no loader.
#![deny(unsafe_code)]

// What `/proc` and control groups show; no thread is stopped.
pub mod cgroup;
mod ended;
mod error;
pub mod maps;
pub mod memory;
pub mod memory_limit;
pub mod pagemap;
#[allow(unsafe_code)]
pub mod preflight;
pub mod procfs;
pub mod programs;
pub mod signals;
mod stall_warning;
#[allow(unsafe_code)]
pub mod vma_query;

// ptrace requests, and threads stopped and resumed by them.
mod classic_bpf;
pub mod code;
pub mod fault;
#[allow(unsafe_code)]
mod ptrace;
mod restart_syscall;
mod rseq;
#[allow(unsafe_code)]
mod rt_priority;
mod seize;
mod stop;
mod stop_timeout;
pub mod stop_times;
mod stopped;
mod thread_pointer;

// System calls made in a stopped thread.
pub mod copies_allowed;
pub mod fd_reserve;
mod gadget;
pub mod mark;
#[allow(unsafe_code)]
pub mod memfd;
mod remote;
#[allow(unsafe_code)]
mod remote_priority;
mod scratch;
pub mod seccomp;
mod sigframe;
#[allow(unsafe_code)]
pub mod write_track;

// A command held before its first instruction.
#[allow(unsafe_code)]
pub mod environment;
#[allow(unsafe_code)]
mod launch;

pub use error::AttachError;
pub use launch::{Held, LaunchError, Launched, launch};
pub use preflight::{Preflight, preflight};
pub use ptrace::Regs;
pub use rt_priority::was_refused as real_time_was_refused;
pub use seize::detach_late_stoppers;
pub use stop::{stop_all, stop_each, stop_one};
pub use stopped::{StoppedProcess, Timing};
pub use thread_pointer::TID_OFFSETS;
