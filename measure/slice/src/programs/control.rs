//! What may be changed while programs run: `struct slice_control` of `bpf/contract.h`.
use super::SliceError;
use hopscope_bpf::BpfError;
use libbpf_rs::{MapCore, MapFlags};

pub(super) const BYTES: usize = 224;
pub(super) const ENABLED: usize = 0;
pub(super) const CHOOSE: usize = 4;
pub(super) const MIN_LATENCY: usize = 8;
pub(super) const CHOOSE_NETNS: usize = 16;
pub(super) const COSTS: usize = 24;

const KEY: [u8; 4] = [0; 4];

pub(super) fn read(map: &impl MapCore) -> Result<Vec<u8>, SliceError> {
    let value = map.lookup(&KEY, MapFlags::ANY);
    let value = value.map_err(BpfError::call("reading settings"))?;
    let value = value.filter(|value| value.len() >= BYTES);
    Ok(value.ok_or(BpfError::missing("reading settings", "value of that size"))?)
}

/// Programs see packets while both are set. Above them is the number of the epoch: what programs keep
/// between hooks counts no more in the next, since they did not see what happened in between.
const IS_ENABLED: u32 = 1;
const IS_ATTACHED: u32 = 2;
const EPOCH: u32 = 4;

fn enabled_word(value: &[u8]) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&value[ENABLED..ENABLED + 4]);
    u32::from_ne_bytes(word)
}

pub(super) fn is_enabled(value: &[u8]) -> bool {
    enabled_word(value) & IS_ENABLED != 0
}

pub(super) fn enable(map: &impl MapCore, is_enabled: bool) -> Result<(), SliceError> {
    turn(map, IS_ENABLED, is_enabled)
}

/// To be said after the last hook is attached, and before the first is not: between the two every hook is.
pub(super) fn all_attached(map: &impl MapCore, are_attached: bool) -> Result<(), SliceError> {
    turn(map, IS_ATTACHED, are_attached)
}

fn turn(map: &impl MapCore, bit: u32, is_on: bool) -> Result<(), SliceError> {
    let word = enabled_word(&read(map)?);
    let word = if is_on {
        word.wrapping_add(EPOCH) | bit
    } else {
        word & !bit
    };
    set(map, ENABLED, &word.to_ne_bytes())
}

/// Writes one setting and leaves the others, which somebody else may have changed.
pub(super) fn set(map: &impl MapCore, at: usize, bytes: &[u8]) -> Result<(), SliceError> {
    let mut value = read(map)?;
    value[at..at + bytes.len()].copy_from_slice(bytes);
    let updated = map.update(&KEY, &value, MapFlags::ANY);
    Ok(updated.map_err(BpfError::call("changing a setting"))?)
}
