//! What may be changed while programs run: `struct slice_control` of `bpf/contract.h`.
use super::LoadError;
use libbpf_rs::{MapCore, MapFlags};

pub(super) const BYTES: usize = 216;
pub(super) const ENABLED: usize = 0;
pub(super) const CHOOSE: usize = 4;
pub(super) const MIN_LATENCY: usize = 8;
pub(super) const COSTS: usize = 16;

const KEY: [u8; 4] = [0; 4];

pub(super) fn read(map: &impl MapCore) -> Result<Vec<u8>, LoadError> {
    let value = map.lookup(&KEY, MapFlags::ANY);
    let value = value.map_err(LoadError::bpf("reading settings"))?;
    let value = value.filter(|value| value.len() >= BYTES);
    value.ok_or(LoadError::Bpf {
        what: "reading settings",
        why: "they are not there".into(),
    })
}

/// Writes one setting and leaves the others, which somebody else may have changed.
pub(super) fn set(map: &impl MapCore, at: usize, bytes: &[u8]) -> Result<(), LoadError> {
    let mut value = read(map)?;
    value[at..at + bytes.len()].copy_from_slice(bytes);
    map.update(&KEY, &value, MapFlags::ANY)
        .map_err(LoadError::bpf("changing a setting"))
}
