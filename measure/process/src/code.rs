//! Writing to code. Its pages are read-only in the target, so that a write needs the kernel to force
//! it. Since Linux 6.12 the kernel may be told (`proc_mem.force_override`) to do that through
//! `/proc/PID/mem` only for a tracer, or never; `PTRACE_POKEDATA` forces in any case.
use super::memory::TargetMemory;
use super::{fault, ptrace};
use nix::libc;
use std::io;

const WORD: u64 = 8;

/// Writes through `/proc/PID/mem`: some kernels refuse it to whoever is no tracer, or to all.
pub fn force(memory: &TargetMemory, at: u64, bytes: &[u8]) -> io::Result<()> {
    let failing = |point, error| {
        let failed = fault::failure(point);
        failed.map_err(|_| io::Error::from_raw_os_error(error))
    };
    failing(fault::FORCED_WRITE, libc::EIO)?;
    failing(fault::NO_MEMORY, libc::ENOMEM)?;
    memory.write(at, bytes)
}

/// Whether the kernel does not force writes for us, as against one write that failed. It answers EIO
/// (mem_rw, fs/proc/base.c); security modules have the others.
pub fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::EPERM | libc::EACCES)
    )
}

/// Writes with the help of `tid`, a thread of the target that we trace and that is stopped.
pub(super) fn write(tid: i32, memory: &TargetMemory, at: u64, bytes: &[u8]) -> io::Result<()> {
    match force(memory, at, bytes) {
        Ok(()) => Ok(()),
        Err(refused) => poke(tid, memory, at, bytes).map_err(|e| match e.raw_os_error() {
            Some(libc::EIO) => refused,
            _ => e,
        }),
    }
}

/// Word by word, those that change.
fn poke(tid: i32, memory: &TargetMemory, at: u64, bytes: &[u8]) -> io::Result<()> {
    let first = at & !(WORD - 1);
    let end = (at + bytes.len() as u64).next_multiple_of(WORD);
    let mut before = vec![0u8; (end - first) as usize];
    memory.read(first, &mut before)?;
    let mut after = before.clone();
    let from = (at - first) as usize;
    after[from..from + bytes.len()].copy_from_slice(bytes);
    let words = before.chunks_exact(8).zip(after.chunks_exact(8));
    for (n, (_, word)) in (0..).zip(words).filter(|(_, (old, new))| old != new) {
        let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
        ptrace::poke(tid, first + n * WORD, word)?;
    }
    Ok(())
}
