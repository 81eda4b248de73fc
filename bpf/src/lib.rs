//! What `slice` and `splice` have in common as users of BPF: objects are loaded with the verifier's log at hand, maps and
//! programs are found by name, records are read from a ring buffer, counters are summed over processors.
//!
//! A crate with programs has a build script that includes `bpf/build/programs.rs`, and its `bpf/*.bpf.c` include
//! `kernel.h` of `bpf/include`.
#![deny(unsafe_code)]

pub mod cgroup;
mod error;
mod grace_period;
pub mod object;
pub mod open_maps;
pub mod per_cpu;
mod ring;
#[allow(unsafe_code)]
pub mod run_stats;
mod test_run;
mod verifier_log;

pub use error::BpfError;
pub use grace_period::wait_for_programs;
pub use ring::Ring;
pub use test_run::test_run;
