//! Streams of stdio on sockets (fdopen). What libc makes of a descriptor reads and writes it within libc; one of fopencookie(3)'s
//! calls the hooks.
use super::descriptors::close;
use super::files::{read, write};
use super::{lock, real};
use crate::table::{self, Entry};
use nix::libc::{self, FILE, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// cookie_io_functions_t
#[repr(C)]
struct Functions {
    read: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, usize) -> isize,
    write: unsafe extern "C-unwind" fn(*mut c_void, *const c_void, usize) -> isize,
    seek: unsafe extern "C-unwind" fn(*mut c_void, *mut libc::off64_t, c_int) -> c_int,
    close: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
}

unsafe extern "C-unwind" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
    fn fflush_unlocked(stream: *mut FILE) -> c_int;
    fn __fpending(stream: *mut FILE) -> usize;
}

/// glibc's struct _IO_cookie_file (libio/libioP.h), in words: a FILE, its functions, the cookie, and ours.
const FUNCTIONS_AT: usize = 27;
const COOKIE_AT: usize = 28;
const READ_AT: usize = 29;

/// What all cookies' streams have at [`FUNCTIONS_AT`], and ours alone, scrambled by libc, at [`READ_AT`]. 0: there was none yet, or
/// this libc has another structure.
static FUNCTIONS: AtomicUsize = AtomicUsize::new(0);
static READ: AtomicUsize = AtomicUsize::new(0);

/// The descriptor of a stream of ours.
///
/// # Safety
/// `stream` is one, or null.
pub(super) unsafe fn descriptor(stream: *mut FILE) -> Option<c_int> {
    let functions = FUNCTIONS.load(Ordering::Acquire);
    if functions == 0 || stream.is_null() {
        return None;
    }
    let words: *const usize = stream.cast();
    // SAFETY: every FILE has that word; only cookies' have this value there, and the words behind.
    unsafe {
        (words.add(FUNCTIONS_AT).read() == functions
            && words.add(READ_AT).read() == READ.load(Ordering::Relaxed))
        .then(|| words.add(COOKIE_AT).read() as c_int)
    }
}

fn fd(cookie: *mut c_void) -> c_int {
    cookie as usize as c_int
}

unsafe extern "C-unwind" fn read_cookie(
    cookie: *mut c_void,
    into: *mut c_void,
    len: usize,
) -> isize {
    // SAFETY: libc's buffer.
    unsafe { read(fd(cookie), into, len) }
}

/// All, as libc does with a descriptor: less is an error.
unsafe extern "C-unwind" fn write_cookie(
    cookie: *mut c_void,
    from: *const c_void,
    len: usize,
) -> isize {
    let mut done = 0;
    while done < len {
        // SAFETY: libc's buffer.
        let written = unsafe { write(fd(cookie), from.byte_add(done), len - done) };
        match usize::try_from(written) {
            Ok(written) => done += written,
            Err(_) => break,
        }
    }
    done as isize
}

/// No socket can.
unsafe extern "C-unwind" fn seek_cookie(_: *mut c_void, _: *mut libc::off64_t, _: c_int) -> c_int {
    super::memory::fail(libc::ESPIPE) as c_int
}

unsafe extern "C-unwind" fn close_cookie(cookie: *mut c_void) -> c_int {
    // SAFETY: as libc's.
    unsafe { close(fd(cookie)) }
}

/// # Safety
/// `mode` is a string.
unsafe fn open(fd: c_int, mode: *const c_char) -> Option<*mut FILE> {
    // SAFETY: the caller's promise.
    let mode = unsafe { std::ffi::CStr::from_ptr(mode) }.to_bytes();
    let mode: &[c_char] = match (mode.first()?, mode.iter().take(5).any(|&byte| byte == b'+')) {
        (b'r', false) => &[b'r' as c_char, 0],
        (b'w' | b'a', false) => &[b'w' as c_char, 0],
        (b'r' | b'w' | b'a', true) => &[b'r' as c_char, b'+' as c_char, 0],
        _ => return None,
    };
    let functions = Functions {
        read: read_cookie,
        write: write_cookie,
        seek: seek_cookie,
        close: close_cookie,
    };
    // SAFETY: the mode is a string, and the functions are of these types.
    let stream = unsafe { fopencookie(fd as usize as *mut c_void, mode.as_ptr(), functions) };
    if stream.is_null() {
        return Some(stream);
    }
    let words: *const usize = stream.cast();
    // SAFETY: it was made as one of a cookie's, which is no shorter in any version of glibc.
    unsafe {
        if words.add(COOKIE_AT).read() == fd as usize {
            READ.store(words.add(READ_AT).read(), Ordering::Relaxed);
            FUNCTIONS.store(words.add(FUNCTIONS_AT).read(), Ordering::Release);
        }
    }
    let _ = lock::with(|state| state.streams.push(stream as usize));
    Some(stream)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    let is_ours = matches!(
        table::get(fd),
        Entry::Ours(_) | Entry::Instance(_) | Entry::Datagrams(_)
    );
    // SAFETY: as libc's.
    let opened = unsafe { if is_ours { open(fd, mode) } else { None } };
    // SAFETY: as libc's. Of a mode that is none it says so.
    opened.unwrap_or_else(|| unsafe { real::fdopen(fd, mode) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn fileno(stream: *mut FILE) -> c_int {
    // SAFETY: as libc's.
    unsafe { descriptor(stream).unwrap_or_else(|| real::fileno(stream)) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn fileno_unlocked(stream: *mut FILE) -> c_int {
    // SAFETY: as libc's.
    unsafe { descriptor(stream).unwrap_or_else(|| real::fileno_unlocked(stream)) }
}

/// Before libc closes it.
pub(super) fn forget(stream: *mut FILE) {
    let _ = lock::with(|state| state.streams.retain(|&other| other != stream as usize));
}

/// libc writes what streams have when a process ends (exit(3)), which is behind this library's end.
pub(super) fn flush_all() {
    let streams = lock::with(|state| state.streams.clone()).unwrap_or_default();
    for stream in streams {
        let stream = stream as *mut FILE;
        // SAFETY: it is not closed: that is where it is forgotten. Without its lock, which a thread that reads may have for ever, as
        // libc does then.
        unsafe {
            if __fpending(stream) > 0 {
                fflush_unlocked(stream);
            }
        }
    }
}
