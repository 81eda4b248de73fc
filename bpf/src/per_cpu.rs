//! Counters that each processor has for itself (BPF_MAP_TYPE_PERCPU_ARRAY), all in the value of key 0.
use crate::BpfError;
use libbpf_rs::{MapCore, MapFlags};

const KEY: [u8; 4] = [0; 4];

/// Sums over all possible processors of the first `N` words of 64 bits.
///
/// # Errors
/// The map cannot be read.
pub fn sums<const N: usize>(map: &impl MapCore) -> Result<[u64; N], BpfError> {
    let mut sums = [0u64; N];
    for cpu in values(map)? {
        for (sum, word) in sums.iter_mut().zip(cpu.chunks_exact(8)) {
            let word: [u8; 8] = word.try_into().unwrap_or_default();
            *sum = sum.wrapping_add(u64::from_ne_bytes(word));
        }
    }
    Ok(sums)
}

/// Sets all of every processor's value to zero: no program may run meanwhile.
///
/// # Errors
/// The map cannot be read or written.
pub fn clear(map: &impl MapCore) -> Result<(), BpfError> {
    let zeros: Vec<Vec<u8>> = values(map)?.iter().map(|cpu| vec![0; cpu.len()]).collect();
    map.update_percpu(&KEY, &zeros, MapFlags::ANY)
        .map_err(BpfError::call("clearing counters"))
}

fn values(map: &impl MapCore) -> Result<Vec<Vec<u8>>, BpfError> {
    let cpus = map.lookup_percpu(&KEY, MapFlags::ANY);
    Ok(cpus
        .map_err(BpfError::call("reading counters"))?
        .unwrap_or_default())
}
