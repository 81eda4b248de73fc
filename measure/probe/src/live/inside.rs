//! Whether a thread is in the middle of a probe: by its registers, or by those that a signal
//! interrupted. A return address alone proves nothing: stacks are full of stale ones.
use super::error::LiveError;
use super::pages::Hit;
use super::retire::Probes;
use hopscope_process::StoppedProcess;
use hopscope_process::maps;
use hopscope_process::memory::TargetMemory;

/// In a signal frame the saved rsp lies before the saved rip, then the flags, then cs
/// (`struct sigcontext`).
const FRAME_WORDS: usize = 4;
const USER_CS: u64 = 0x33;
/// Bit 1 of the flags is always set; above bit 21 none is.
const FLAGS_SET: u64 = 2;
const FLAGS_MASK: u64 = !0x3f_ffff | FLAGS_SET;

/// The routines that probes call push less than this.
const ROUTINE_BYTES: usize = 96;
/// Of each stack so much is looked through for interrupted registers, of all together
/// [`STACKS_AT_MOST`].
const STACK_AT_LEAST: u64 = 256 << 10;
const STACKS_AT_MOST: u64 = 16 << 20;

/// Also true when that cannot be found out. `hits` are words that the search of all memory found.
pub(super) fn is_inside(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    probes: &Probes,
    hits: &[Hit],
) -> Result<bool, LiveError> {
    let pid = stopped.pid();
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let (mut budget, mut stack) = (STACKS_AT_MOST, Vec::new());
    let mut stack_pointers = Vec::new();
    for tid in stopped.tids() {
        let r = stopped.regs(tid);
        stack_pointers.push(r.rsp);
        if in_probe(memory, probes, r.rip, r.rsp) {
            return Ok(true);
        }
        let at_most = budget.max(STACK_AT_LEAST);
        let whole = stopped.read_stack(tid, &mappings, memory, at_most, &mut stack)?;
        budget = budget.saturating_sub(stack.len() as u64);
        let interrupted = words(&stack)
            .windows(FRAME_WORDS)
            .any(|w| is_interrupted(memory, probes, w));
        if !whole || interrupted {
            return Ok(true);
        }
    }
    Ok(hits.iter().any(|hit| {
        let mut bytes = [0u8; 8 * FRAME_WORDS];
        probes.concerns(hit.word)
            && !is_over(memory, hit.at, &stack_pointers)
            && match memory.read(hit.at.wrapping_sub(8), &mut bytes) {
                Ok(()) => is_interrupted(memory, probes, &words(&bytes)),
                Err(_) => true,
            }
    }))
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words
        .map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")))
        .collect()
}

/// `frame`: what may be saved rsp, rip, flags and cs.
fn is_interrupted(memory: &TargetMemory, probes: &Probes, frame: &[u64]) -> bool {
    let &[rsp, rip, flags, cs] = frame else {
        return false;
    };
    probes.concerns(rip)
        && cs & 0xffff == USER_CS
        && flags & FLAGS_MASK == FLAGS_SET
        && in_probe(memory, probes, rip, rsp)
}

/// Whether nobody goes on in what may be a signal frame with the saved rip at `rip_at`, on no stack in use.
///
/// Its handler has returned where the frame lies on the alternate stack that it names itself (`struct ucontext`: uc_stack
/// 152 bytes before), and no thread runs on that; with SS_AUTODISARM another handler has another stack. A part of it was
/// overwritten where the rsp that it names lies above it, and closer than a red zone and what floating point takes.
fn is_over(memory: &TargetMemory, rip_at: u64, stack_pointers: &[u64]) -> bool {
    const BEFORE: u64 = 152;
    let mut frame = [0u8; BEFORE as usize];
    if memory
        .read(rip_at.wrapping_sub(BEFORE), &mut frame)
        .is_err()
    {
        return false;
    }
    let frame = words(&frame);
    let (begin, flags, len, rsp) = (frame[0], frame[1], frame[2], frame[frame.len() - 1]);
    let is_on_it = |at: u64| at.wrapping_sub(begin) < len;
    let is_idle = flags & SS_AUTODISARM == 0
        && is_on_it(rip_at)
        && !stack_pointers.iter().any(|at| is_on_it(*at));
    is_idle || rsp.wrapping_sub(rip_at) < BELOW_STACK_POINTER
}

/// The red zone, and the legacy region of XSAVE.
const BELOW_STACK_POINTER: u64 = 128 + 512;
const SS_AUTODISARM: u64 = 1 << 31;

/// In a probe itself, or in a routine that one called.
fn in_probe(memory: &TargetMemory, probes: &Probes, rip: u64, rsp: u64) -> bool {
    if probes.is_busy(rip) {
        return true;
    }
    // A frame of what is measured has old ways back to probes in it, too.
    let mut above = [0u8; ROUTINE_BYTES];
    probes.is_called(rip)
        && (memory.read(rsp & !7, &mut above).is_err()
            || words(&above).iter().any(|w| probes.is_busy(*w)))
}
