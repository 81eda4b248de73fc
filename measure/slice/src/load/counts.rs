//! Reading the kernel's counters: `struct cpu_state` of `bpf/state.h`.
use super::LoadError;
use hopscope_event::slice::{Counter, Counters};
use libbpf_rs::{MapCore, MapFlags, Object};

/// Of `counters` and `cost` within `struct cpu_state`.
const COUNTERS_AT: usize = 16;
const COST_AT: usize = 0;

/// Sums over all processors.
pub(super) fn read(object: &Object) -> Result<Counters, LoadError> {
    let map = object
        .maps()
        .find(|map| map.name() == "cpus")
        .ok_or(LoadError::Bpf {
            what: "reading counters",
            why: "the map is missing".into(),
        })?;
    let cpus = map
        .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(LoadError::bpf("reading counters"))?
        .unwrap_or_default();
    let mut sums = [0u64; Counter::MAX];
    for cpu in &cpus {
        let word = |at: usize| {
            let bytes = cpu.get(at..at + 8).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        };
        for (id, sum) in sums.iter_mut().enumerate() {
            *sum += word(COUNTERS_AT + 8 * id);
        }
        sums[Counter::CostNs as usize] += word(COST_AT);
    }
    Ok(Counters::from_values(&sums))
}
