//! The program's memory as slices, and results as C has them.
use nix::libc::{self, c_int, c_void, sockaddr, socklen_t};

pub fn fail(errno: i32) -> isize {
    // SAFETY: libc's address of this thread's errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

pub fn done(result: Result<i64, i32>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(errno) => fail(errno),
    }
}

/// _FORTIFY_SOURCE: as __chk_fail() does.
pub fn check(len: usize, room: usize) {
    if len > room {
        crate::say::say("buffer overflow detected in the program");
        std::process::abort();
    }
}

/// Nothing of a process is there: null, or the kernel's half.
pub fn is_nowhere<T>(pointer: *const T) -> bool {
    pointer.is_null() || pointer as usize >> 47 != 0
}

/// Programs' pointers may be aligned to nothing: the kernel takes such ones.
///
/// # Safety
/// `at` may be read.
pub unsafe fn get<T: Copy>(at: *const T) -> T {
    // SAFETY: the caller's promise.
    unsafe { at.read_unaligned() }
}

/// # Safety
/// `at` may be written.
pub unsafe fn put<T: Copy>(at: *mut T, value: T) {
    // SAFETY: the caller's promise.
    unsafe { at.write_unaligned(value) }
}

/// # Safety
/// `from` may be read, `len` bytes.
pub unsafe fn bytes<'a>(from: *const c_void, len: usize) -> Result<&'a [u8], i32> {
    if len == 0 {
        return Ok(&[]);
    }
    if is_nowhere(from) {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller's promise. No call writes more than this.
    Ok(unsafe { std::slice::from_raw_parts(from.cast(), len.min(isize::MAX as usize)) })
}

/// # Safety
/// `into` may be written, `len` bytes.
pub unsafe fn bytes_mut<'a>(into: *mut c_void, len: usize) -> Result<&'a mut [u8], i32> {
    if len == 0 {
        return Ok(&mut []);
    }
    if is_nowhere(into) {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(into.cast(), len.min(isize::MAX as usize)) })
}

/// UIO_MAXIOV.
pub const IOV_MAX: usize = 1024;

/// # Safety
/// `parts` are `count` vectors of memory.
unsafe fn vectors(parts: *const libc::iovec, count: usize) -> Result<Vec<libc::iovec>, i32> {
    if count > IOV_MAX {
        return Err(libc::EINVAL);
    }
    if count > 0 && is_nowhere(parts) {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller's promise.
    let all: Vec<libc::iovec> = (0..count).map(|at| unsafe { get(parts.add(at)) }).collect();
    // As import_iovec() (lib/iov_iter.c).
    match all
        .iter()
        .any(|part| isize::try_from(part.iov_len).is_err())
    {
        true => Err(libc::EINVAL),
        false => Ok(all),
    }
}

/// # Safety
/// `parts` are `count` vectors of readable memory.
pub unsafe fn parts<'a>(parts: *const libc::iovec, count: usize) -> Result<Vec<&'a [u8]>, i32> {
    // SAFETY: the caller's promise.
    let parts = unsafe { vectors(parts, count) }?.into_iter();
    // SAFETY: the caller's promise.
    parts
        .map(|part| unsafe { bytes(part.iov_base, part.iov_len) })
        .collect()
}

/// # Safety
/// `parts` are `count` vectors of writable memory.
pub unsafe fn parts_mut<'a>(
    parts: *const libc::iovec,
    count: usize,
) -> Result<Vec<&'a mut [u8]>, i32> {
    // SAFETY: the caller's promise.
    let parts = unsafe { vectors(parts, count) }?.into_iter();
    // SAFETY: the caller's promise.
    parts
        .map(|part| unsafe { bytes_mut(part.iov_base, part.iov_len) })
        .collect()
}

/// Bytes that there is room for, of a call that has taken the vectors.
///
/// # Safety
/// `parts` are `count` vectors.
pub unsafe fn room(parts: *const libc::iovec, count: usize) -> usize {
    // SAFETY: the caller's promise.
    let len = |at| unsafe { get(parts.add(at)) }.iov_len;
    (0..count).map(len).sum()
}

/// # Safety
/// `at` points to `len` readable bytes.
pub unsafe fn address<'a>(at: *const sockaddr, len: socklen_t) -> Result<&'a [u8], i32> {
    if len > 128 {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's promise.
    unsafe { bytes(at.cast(), len as usize) }
}

/// As accept and getsockname do: what fits is copied, the length becomes that of the whole.
///
/// As move_addr_to_user() (net/socket.c).
///
/// # Errors
/// EINVAL: less than nothing.
///
/// # Safety
/// `into` is null, or `len` points to how many bytes there are at `into`.
pub unsafe fn put_address(
    from: &[u8],
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<(), i32> {
    if is_nowhere(into) || is_nowhere(len) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        if (get(len) as i32) < 0 {
            return Err(libc::EINVAL);
        }
        let count = from.len().min(get(len) as usize);
        into.cast::<u8>()
            .copy_from_nonoverlapping(from.as_ptr(), count);
        put(len, from.len() as socklen_t);
    }
    Ok(())
}

/// As getsockopt does: what fits is copied, the length becomes that of the copy.
///
/// # Safety
/// `into` is null, or `len` points to how many bytes there are at `into`.
pub unsafe fn put_option(
    from: &[u8],
    level: c_int,
    into: *mut c_void,
    len: *mut socklen_t,
) -> Result<i64, i32> {
    if is_nowhere(len) || is_nowhere(into) {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let room = get(len);
        // Of IPv6 it is not looked at (do_ipv6_getsockopt).
        if (room as i32) < 0 && level != libc::IPPROTO_IPV6 {
            return Err(libc::EINVAL);
        }
        // Of IP, what one byte holds is one byte where there is no room for more (do_ip_getsockopt).
        let is_byte = level == libc::IPPROTO_IP && from.get(1..) == Some(&[0, 0, 0]);
        let count = match room {
            1..4 if is_byte => 1,
            _ => from.len().min(room as usize),
        };
        into.cast::<u8>()
            .copy_from_nonoverlapping(from.as_ptr(), count);
        put(len, count as socklen_t);
    }
    Ok(0)
}
