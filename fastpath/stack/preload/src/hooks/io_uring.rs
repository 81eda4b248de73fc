//! io_uring is refused: it would go round the hooks. Programs fall back where it is not there. liburing (2.3 and before) has the call as
//! an instruction of its own, so its functions are refused; whoever else has such an instruction is not seen.
use super::lock;
use crate::say::once;
use nix::libc::{self, c_int, c_uint, c_void};
use std::sync::atomic::AtomicBool;

static SAID: AtomicBool = AtomicBool::new(false);

/// ENOSYS is the answer: false: the library has no stack.
pub fn is_refused() -> bool {
    let refused = lock::is_filled();
    if refused {
        once(&SAID, || {
            "io_uring is refused (ENOSYS): it would go round the stack".into()
        });
    }
    refused
}

/// liburing's, which return errno's negative.
macro_rules! refused {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($arg: $kind),*) -> c_int {
            if is_refused() {
                return -libc::ENOSYS;
            }
            // SAFETY: as liburing's.
            unsafe { super::real::$name($($arg),*) }
        }
    )* }
}

refused! {
    io_uring_queue_init(entries: c_uint, ring: *mut c_void, flags: c_uint);
    io_uring_queue_init_params(entries: c_uint, ring: *mut c_void, parameters: *mut c_void);
    io_uring_queue_init_mem(entries: c_uint, ring: *mut c_void, parameters: *mut c_void, memory: *mut c_void, len: usize);
    io_uring_setup(entries: c_uint, parameters: *mut c_void);
}
