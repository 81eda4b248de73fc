//! longjmp(3) out of a signal's handler: the call that it interrupted does not go on, and what it has left is put away, as the kernel
//! does by itself.
use super::processes::is_own_process;
use super::{lock, real};
use crate::sleep::somebody_sleeps;
use nix::libc::{self, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::AtomicPtr;

/// Of `__jmp_buf` (glibc, sysdeps/x86_64/jmpbuf-offsets.h).
const JB_RSP: usize = 6;

type Jump = unsafe extern "C-unwind" fn(*mut u64, c_int) -> !;

/// The stack pointer that a buffer goes back to.
///
/// # Safety
/// setjmp(3) of glibc has filled it.
unsafe fn target(buffer: *const u64) -> usize {
    let target;
    // SAFETY: it is there by the caller's promise. PTR_DEMANGLE (glibc, sysdeps/unix/sysv/linux/x86_64/pointer_guard.h).
    unsafe {
        std::arch::asm!(
            "ror {at}, 17",
            "xor {at}, fs:0x30",
            at = inout(reg) buffer.add(JB_RSP).read() => target,
            options(nostack, readonly)
        );
    }
    target
}

/// Whatever has its frame below `target`. A handler on a stack of its own that stays there has left nothing beyond.
fn leaves(target: usize) {
    // A child that libc did not fork may have the lock of another thread for ever.
    if !somebody_sleeps() || !is_own_process() {
        return;
    }
    let thread = lock::thread();
    if lock::with(|state| state.sleeps(thread)) != Ok(true) {
        return;
    }
    let own = own_stack().filter(|own| own.contains(&target));
    let from = own.map_or(0, |own| own.start);
    let _ = lock::with(|state| state.jumped_out(thread, from..target));
}

/// Of the handler that runs, where it has one (sigaltstack(2)).
fn own_stack() -> Option<Range<usize>> {
    // SAFETY: zero is a value of this structure, which lives over the call.
    let own = unsafe {
        let mut own: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &raw mut own);
        own
    };
    let from = own.ss_sp as usize;
    (own.ss_flags & libc::SS_ONSTACK != 0).then_some(from..from + own.ss_size)
}

/// # Safety
/// As libc's.
unsafe fn jump(at: &AtomicPtr<c_void>, name: &'static str, buffer: *mut u64, value: c_int) -> ! {
    // SAFETY: as libc's.
    leaves(unsafe { target(buffer) });
    // SAFETY: as libc's; nothing is in this frame that it would have to drop.
    unsafe { std::mem::transmute::<*mut c_void, Jump>(real::symbol(at, name))(buffer, value) }
}

macro_rules! jumps {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(buffer: *mut u64, value: c_int) -> ! {
            static AT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            // SAFETY: as libc's.
            unsafe { jump(&AT, concat!(stringify!($name), "\0"), buffer, value) }
        }
    )* }
}

jumps! { longjmp _longjmp siglongjmp __longjmp_chk }
