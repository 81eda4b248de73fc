//! getsockopt in libc's place: scripts' embedded code reads TCP_INFO by it. Of other descriptors the kernel answers.
use super::memory::put;
use crate::blocking::present;
use crate::options;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, c_void, socklen_t};

/// # Safety
/// As getsockopt(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let ours = present().is_some_and(|shared| shared.call(|stack| stack.descriptors.holds(fd)));
    if !ours {
        let number = |value: c_int| c_long::from(value);
        // SAFETY: the caller's arguments, unchanged.
        return unsafe {
            libc::syscall(
                libc::SYS_getsockopt,
                number(fd),
                number(level),
                number(name),
                value,
                len,
            ) as c_int
        };
    }
    match options::get(fd, level, name) {
        Ok(bytes) => {
            // SAFETY: the caller's promise.
            unsafe { put(&bytes, value.cast(), len) };
            0
        }
        Err(error) => {
            Errno::set_raw(error);
            -1
        }
    }
}
