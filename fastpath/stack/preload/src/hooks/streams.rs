//! Streams of stdio close their descriptors within libc.
use super::naming::unname;
use super::{real, socket_streams};
use crate::table::{self, Entry};
use nix::libc::{FILE, c_char, c_int};

/// # Safety
/// `stream` is one, or null.
unsafe fn closes(stream: *mut FILE) {
    if stream.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    if unsafe { socket_streams::descriptor(stream) }.is_some() {
        // By its own function.
        return socket_streams::forget(stream);
    }
    // SAFETY: the caller's promise.
    let fd = unsafe { real::fileno(stream) };
    if !matches!(table::get(fd), Entry::Kernel | Entry::Internal) {
        unname(fd);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: as libc's.
    unsafe {
        closes(stream);
        real::fclose(stream)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn freopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: as libc's.
    unsafe {
        // libc refuses it for one on a socket of the stack's, which stays as it is.
        if socket_streams::descriptor(stream).is_none() {
            closes(stream);
        }
        real::freopen(path, mode, stream)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn freopen64(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: as libc's.
    unsafe { freopen(path, mode, stream) }
}
