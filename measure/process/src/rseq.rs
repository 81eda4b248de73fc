//! Restartable sequences (linux/rseq.h): user code that must start again when it is preempted. The
//! kernel looks at where a thread is when it goes back to user mode; a thread that makes a system
//! call for us is then somewhere else, so what the kernel would have done is done here.
use super::memory::TargetMemory;
use super::ptrace;

/// Where a thread that stopped at `rip` goes on: its abort handler if it was inside a sequence.
pub fn resume_at(tid: i32, memory: &TargetMemory, rip: u64) -> u64 {
    // Kernels that do not know the request are older than 5.13; then libc does not register either.
    let Ok(Some(area)) = ptrace::rseq_area(tid) else {
        return rip;
    };
    let word = |at: u64| {
        let mut bytes = [0; 8];
        memory
            .read(at, &mut bytes)
            .ok()
            .map(|()| u64::from_le_bytes(bytes))
    };
    // struct rseq.rseq_cs; struct rseq_cs {version, flags u32, start_ip, post_commit_offset, abort_ip}
    let sequence = word(area.wrapping_add(8)).filter(|at| *at != 0);
    let abort = sequence.and_then(|at| {
        let (start, len) = (word(at.wrapping_add(8))?, word(at.wrapping_add(16))?);
        let inside = rip.wrapping_sub(start) < len;
        inside.then(|| word(at.wrapping_add(24)))?
    });
    abort.unwrap_or(rip)
}
