//! What this machine allows, found out by trying wherever trying is harmless.
#![forbid(unsafe_code)]

mod bpf;
mod capability;
mod child;
mod cpu;
mod kernel;
mod limits;
mod memory;
mod network;
mod perf;
mod privilege;
mod system;

pub use capability::{Capability, Verdict};
pub use child::Trial;

use std::io::{self, Read};

/// All of them, from what every measurement needs to what single parts do.
pub fn capabilities() -> Vec<Capability> {
    let groups: [fn() -> Vec<Capability>; 9] = [
        privilege::capabilities,
        memory::capabilities,
        cpu::capabilities,
        perf::capabilities,
        limits::capabilities,
        kernel::capabilities,
        bpf::capabilities,
        system::capabilities,
        network::capabilities,
    ];
    groups.iter().flat_map(|group| group()).collect()
}

/// What a process does on which something is tried: `check --as-child TRIAL` of the program that calls this.
///
/// # Errors
/// Its input or output fails, or what it tries.
pub fn be_child(trial: Trial) -> io::Result<()> {
    match trial {
        Trial::Wait => io::stdin().read_to_end(&mut Vec::new()).map(drop),
        Trial::Network => network::be_network_child(),
        Trial::Lockdown => kernel::be_lockdown_child(),
    }
}
