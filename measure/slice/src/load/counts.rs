//! Reading the kernel's counters: `struct cpu_state` of `bpf/state.h`.
use super::LoadError;
use hopscope_event::slice::{Counter, Counters};
use libbpf_rs::{MapCore, MapFlags, Object};

/// Of `counters` and `cost` within `struct cpu_state`.
const COUNTERS_AT: usize = 16;
const COST_AT: usize = 0;

const KEY: [u8; 4] = [0; 4];

fn map(object: &Object) -> Result<impl MapCore, LoadError> {
    let missing = LoadError::Bpf {
        what: "reading counters",
        why: "the map is missing".into(),
    };
    object
        .maps()
        .find(|map| map.name() == "cpus")
        .ok_or(missing)
}

/// Sums over all processors.
pub(super) fn read(object: &Object) -> Result<Counters, LoadError> {
    of_map(&map(object)?)
}

/// All of every processor's state: nothing may be attached.
pub(super) fn clear(object: &Object) -> Result<(), LoadError> {
    let map = map(object)?;
    let cpus = map
        .lookup_percpu(&KEY, MapFlags::ANY)
        .map_err(LoadError::bpf("reading counters"))?;
    let zeros: Vec<Vec<u8>> = cpus
        .unwrap_or_default()
        .iter()
        .map(|cpu| vec![0; cpu.len()])
        .collect();
    map.update_percpu(&KEY, &zeros, MapFlags::ANY)
        .map_err(LoadError::bpf("clearing counters"))
}

pub(super) fn of_map(map: &impl MapCore) -> Result<Counters, LoadError> {
    let cpus = map
        .lookup_percpu(&KEY, MapFlags::ANY)
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
