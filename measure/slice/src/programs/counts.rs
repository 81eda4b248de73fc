//! Reading the kernel's counters: `struct cpu_state` of `bpf/state.h`.
use super::SliceError;
use hopscope_bpf::per_cpu;
use hopscope_event::slice::{Counter, Counters};
use libbpf_rs::MapCore;

/// Words of `counters` and `cost` within `struct cpu_state`.
const COUNTERS_AT: usize = 2;
const COST_AT: usize = 0;

/// Sums over all processors.
pub(super) fn read(map: &impl MapCore) -> Result<Counters, SliceError> {
    let words = per_cpu::sums::<{ COUNTERS_AT + Counter::MAX }>(map)?;
    let mut sums = [0u64; Counter::MAX];
    sums.copy_from_slice(&words[COUNTERS_AT..]);
    sums[Counter::CostNs as usize] += words[COST_AT];
    Ok(Counters::from_values(&sums))
}
