//! A place for the safety frame: stack memory of the target that is provably not in use.
use super::AttachError;
use super::memory::TargetMemory;
use super::pagemap::{PAGE, PageMap};
use crate::maps::Mapping;

const RED_ZONE: u64 = 128;

/// An address for `len` bytes, ≡ 8 mod 64, for a thread whose stack pointer is `rsp`.
///
/// Pages of the main stack that were never touched are dead, whatever stacks the program switches
/// between; and nobody expects stack memory to be zero. Only when there are none, the place below
/// the red zone of `rsp` is taken, if the stack it lies in has room, or is the main stack, which the kernel
/// lets grow for whoever writes there (`__access_remote_vm`, mm/memory.c). `mappings` may be a little old:
/// stacks only grow, and which pages are touched is looked up.
pub fn find(
    pid: i32,
    memory: &TargetMemory,
    mappings: &[Mapping],
    rsp: u64,
    len: u64,
) -> Result<u64, AttachError> {
    let aligned = |low: u64| low.next_multiple_of(64) + 8;
    let main = mappings.iter().find(|m| m.name == "[stack]" && m.writable);
    if let Some(stack) = main
        && let Some(low) = untouched(pid, stack.range.start, stack.range.end, len + 128)
    {
        return Ok(aligned(low));
    }
    let has_grown = |m: &&Mapping| {
        let mut below = mappings.iter().filter(|o| o.range.start < m.range.start);
        rsp < m.range.start && below.all(|o| o.range.end <= rsp)
    };
    let around = mappings
        .iter()
        .find(|m| m.range.contains(&rsp) && m.writable)
        .or(main.filter(has_grown));
    let below = rsp.wrapping_sub(RED_ZONE + len + 128);
    match around {
        // Four times the need: a coroutine's small stack inside a heap must not be overrun.
        Some(m) if m.range.start + 4 * len < below => Ok(aligned(below)),
        Some(m) if m.name == "[stack]" && memory.write(below, &[0]).is_ok() => Ok(aligned(below)),
        _ => Err(AttachError::NoScratch { pid }),
    }
}

/// Entries of the page map read at once.
const AT_ONCE: u64 = 8192;

/// The target says what its stack is, and how large: it is looked at piece by piece.
fn untouched(pid: i32, from: u64, to: u64, len: u64) -> Option<u64> {
    let map = PageMap::open(pid).ok()?;
    let wanted = len.div_ceil(PAGE);
    let (mut run, mut page) = (0, from / PAGE);
    while page < to / PAGE {
        let pages = AT_ONCE.min(to / PAGE - page);
        for entry in map.entries(page, pages).ok()? {
            run = if entry.is_touched() { 0 } else { run + 1 };
            page += 1;
            // One page more: the lowest of a run stays free for the stack's guard.
            if run > wanted {
                return Some((page - wanted) * PAGE);
            }
        }
    }
    None
}
