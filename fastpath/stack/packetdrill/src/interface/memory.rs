//! C's memory as Rust's values.
use nix::libc;
use std::net::SocketAddr;

/// Nothing of a process is there: null, or the kernel's half. Scripts pass such pointers to see EFAULT.
pub fn is_nowhere<T>(pointer: *const T) -> bool {
    pointer.is_null() || pointer as usize >> 47 != 0
}

/// # Safety
/// `address` is null or points to `len` readable bytes.
pub unsafe fn address(
    address: *const libc::sockaddr,
    len: libc::socklen_t,
) -> Result<Option<SocketAddr>, i32> {
    if address.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), len as usize) };
    hopscope_stack_abi::address::from_bytes(bytes)
}

/// # Safety
/// `into` is null, or `len` points to how many bytes there are writable at `into`.
pub unsafe fn put_address(from: SocketAddr, into: *mut libc::sockaddr, len: *mut libc::socklen_t) {
    let bytes = hopscope_stack_abi::address::to_bytes(from);
    // SAFETY: the caller's promise.
    unsafe { put(&bytes, into.cast(), len) };
}

/// As getsockopt does: what fits is copied, the length becomes that of the copy.
///
/// # Safety
/// `into` is null, or `len` points to how many bytes there are writable at `into`.
pub unsafe fn put(bytes: &[u8], into: *mut u8, len: *mut libc::socklen_t) {
    if into.is_null() || len.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let count = bytes.len().min(*len as usize);
        into.copy_from_nonoverlapping(bytes.as_ptr(), count);
        *len = count as libc::socklen_t;
    }
}

/// # Safety
/// `vectors` points to `count` vectors of readable memory.
pub unsafe fn gather(vectors: *const libc::iovec, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for index in 0..count {
        // SAFETY: the caller's promise; an empty vector may have any address.
        unsafe {
            let vector = &*vectors.add(index);
            if vector.iov_len > 0 {
                bytes.extend(std::slice::from_raw_parts(
                    vector.iov_base.cast::<u8>(),
                    vector.iov_len,
                ));
            }
        }
    }
    bytes
}

/// # Safety
/// `vectors` points to `count` vectors.
pub unsafe fn room(vectors: *const libc::iovec, count: usize) -> usize {
    // SAFETY: the caller's promise.
    (0..count)
        .map(|index| unsafe { (*vectors.add(index)).iov_len })
        .sum()
}

/// # Safety
/// `vectors` points to `count` vectors of writable memory.
pub unsafe fn scatter(mut bytes: &[u8], vectors: *const libc::iovec, count: usize) {
    for index in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            let vector = &*vectors.add(index);
            let some = bytes.len().min(vector.iov_len);
            vector
                .iov_base
                .cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), some);
            bytes = &bytes[some..];
        }
    }
}
