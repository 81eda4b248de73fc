//! System calls that a stop interrupted and that must be made again.
use super::ptrace::{self, Regs};
use nix::libc;
use std::io;

/// Lets the kernel make an interrupted call again where it would not by itself. Done as soon as a
/// thread has stopped, so that it holds for a recorder that is killed later, too.
pub(super) fn ensure(tid: i32, regs: &mut Regs) -> io::Result<()> {
    if says_eintr(regs) {
        ptrace::set_rax(tid, ERESTARTNOHAND)?;
        regs.rax = ERESTARTNOHAND;
    }
    Ok(())
}

/// Some calls say EINTR as soon as they are interrupted, though no signal is there to be handled.
/// With this value the kernel decides, when the thread goes on from its stop: EINTR if it then runs
/// a handler, the same call again if not (`arch_do_signal_or_restart`, arch/x86/kernel/signal.c).
const ERESTARTNOHAND: u64 = -514i64 as u64;

fn says_eintr(regs: &Regs) -> bool {
    // These end with their work done though they say EINTR: a second close may hit a descriptor that
    // another thread has opened since.
    const NEVER_AGAIN: [i64; 4] = [
        libc::SYS_close,
        libc::SYS_dup2,
        libc::SYS_dup3,
        libc::SYS_close_range,
    ];
    let call = regs.orig_rax as i64;
    regs.rax as i64 == -i64::from(libc::EINTR) && call >= 0 && !NEVER_AGAIN.contains(&call)
}
