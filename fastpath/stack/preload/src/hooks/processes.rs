//! fork, and the end of a process.
use super::wait::{bed, doze, here};
use super::{first_thread, lock, real};
use crate::kernel;
use crate::stack::now;
use hopscope_stack_engine::Ns;
use nix::libc::{self, c_int};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// This process, as long as it is none that libc did not fork.
static OWN: AtomicI32 = AtomicI32::new(0);

/// The stack's connections were closed: once.
static GONE: AtomicBool = AtomicBool::new(false);

pub fn remember() {
    OWN.store(kernel::process(), Ordering::Relaxed);
}

pub fn is_own_process() -> bool {
    OWN.load(Ordering::Relaxed) == kernel::process()
}

/// The lock is held over fork: the copy is whole.
pub extern "C" fn before_fork() {
    lock::acquire();
    lock::held(|state| state.before_fork());
}

pub extern "C" fn after_fork() {
    lock::release();
}

pub extern "C" fn after_fork_in_child() {
    remember();
    first_thread::forked();
    lock::in_child(|state| state.forked());
}

/// In the parent's memory a child could change what is the parent's: the child has a copy.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn vfork() -> c_int {
    // SAFETY: as libc's.
    unsafe { real::fork() }
}

/// As the kernel at a process's end.
pub fn farewell() {
    if lock::is_filled() && !GONE.swap(true, Ordering::Relaxed) && !lock::is_mine() {
        let _ = lock::with(|state| state.farewell());
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn _exit(code: c_int) -> ! {
    farewell();
    loop {
        // SAFETY: the process ends.
        let _ = unsafe { kernel::call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn _Exit(code: c_int) -> ! {
    // SAFETY: as libc's.
    unsafe { _exit(code) }
}

/// SO_LINGER: until all is acknowledged.
pub fn linger(fd: c_int, until: Ns) {
    let whose = here();
    loop {
        let nap = lock::with(|state| {
            state.turn();
            state.flush();
            if now() >= until {
                return None;
            }
            let index = state.lingering(fd)?;
            state.fall_asleep(vec![index], Some(until), whose).ok()
        });
        let Ok(Some(mut nap)) = nap else {
            return;
        };
        let bed = bed(&nap);
        // SAFETY: the descriptors are ours; no mask.
        let dozed = unsafe { doze(&mut nap, std::ptr::null()) };
        drop(bed);
        if dozed.is_err() {
            return;
        }
    }
}
