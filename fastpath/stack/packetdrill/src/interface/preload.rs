//! getsockopt and sendfile in libc's place: scripts' embedded code reads TCP_INFO by the one, packetdrill calls the other itself. Of other
//! descriptors the kernel answers.
use super::memory::put;
use crate::blocking::present;
use crate::calls;
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

/// # Safety
/// As sendfile(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    socket: c_int,
    file: c_int,
    offset: *mut libc::off_t,
    count: usize,
) -> isize {
    let ours = present().is_some_and(|shared| shared.call(|stack| stack.descriptors.holds(socket)));
    if !ours {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe {
            libc::syscall(
                libc::SYS_sendfile,
                c_long::from(socket),
                c_long::from(file),
                offset,
                count,
            ) as isize
        };
    }
    let mut bytes = vec![0; count];
    // SAFETY: the caller's offset is null or may be read; `bytes` has `count` bytes.
    let read = unsafe {
        if offset.is_null() {
            libc::read(file, bytes.as_mut_ptr().cast(), count)
        } else {
            libc::pread(file, bytes.as_mut_ptr().cast(), count, *offset)
        }
    };
    let Ok(length) = usize::try_from(read) else {
        return -1;
    };
    match calls::send(socket, &bytes[..length], 0) {
        Ok(sent) => {
            if !offset.is_null() {
                // SAFETY: the caller's offset may be written.
                unsafe { *offset += sent };
            }
            sent as isize
        }
        Err(error) => {
            Errno::set_raw(error);
            -1
        }
    }
}
