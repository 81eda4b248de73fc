//! Network functions at work, for benches that measure them: the demo firewall, and NAT and IPsec from
//! DPDK's example programs.
mod cabled;
mod counter;
pub(crate) mod dpdk;
pub(crate) mod firewall;
mod processors;
mod ready_process;
mod running;

pub(crate) use cabled::{Cabled, MODULES};
pub(crate) use processors::Processors;
pub(crate) use running::Running;

/// Packets that they take at once: probes of functions that are called once a batch are shared by so
/// many.
pub(crate) const BATCH: u32 = 32;
