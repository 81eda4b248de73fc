//! A place for the safety frame: stack memory of the target that is provably not in use.
use super::AttachError;
use crate::live::maps;
use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Bits 63 and 62 of a pagemap entry: present, swapped.
const TOUCHED: u64 = 3 << 62;
const RED_ZONE: u64 = 128;

/// An address for `len` bytes, ≡ 8 mod 64, for a thread whose stack pointer is `rsp`.
///
/// Pages of the main stack that were never touched are dead, whatever stacks the program switches
/// between; and nobody expects stack memory to be zero. Only when there are none, the place below
/// the red zone of `rsp` is taken, if the stack it lies in has room.
pub fn find(pid: i32, rsp: u64, len: u64) -> Result<u64, AttachError> {
    let mappings = maps::read(pid).map_err(|source| AttachError::Proc { pid, source })?;
    let aligned = |low: u64| low.next_multiple_of(64) + 8;
    let main = mappings.iter().find(|m| m.name == "[stack]" && m.writable);
    if let Some(stack) = main
        && let Some(low) = untouched(pid, stack.range.start, stack.range.end, len + 128)
    {
        return Ok(aligned(low));
    }
    let around = mappings
        .iter()
        .find(|m| m.range.contains(&rsp) && m.writable);
    let below = rsp.wrapping_sub(RED_ZONE + len + 128);
    match around {
        // Four times the need: a coroutine's small stack inside a heap must not be overrun.
        Some(m) if m.range.start + 4 * len < below => Ok(aligned(below)),
        _ => Err(AttachError::NoScratch { pid }),
    }
}

fn untouched(pid: i32, from: u64, to: u64, len: u64) -> Option<u64> {
    let pages = ((to - from) / PAGE) as usize;
    let mut entries = vec![0u8; pages * 8];
    File::open(format!("/proc/{pid}/pagemap"))
        .ok()?
        .read_exact_at(&mut entries, from / PAGE * 8)
        .ok()?;
    let touched = |e: &[u8]| u64::from_le_bytes(e.try_into().expect("8 bytes")) & TOUCHED != 0;
    let wanted = len.div_ceil(PAGE);
    let mut run = 0;
    for (page, entry) in entries.chunks_exact(8).enumerate() {
        run = if touched(entry) { 0 } else { run + 1 };
        // One page more: the lowest of a run stays free for the stack's guard.
        if run > wanted {
            return Some(from + (page as u64 + 1 - wanted) * PAGE);
        }
    }
    None
}
