//! C's memory as Rust's values.
use nix::libc;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

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
    let be16 = |at: usize| {
        bytes
            .get(at..at + 2)
            .map(|two| u16::from_be_bytes([two[0], two[1]]))
    };
    let family = bytes
        .get(..2)
        .map(|two| i32::from(u16::from_ne_bytes([two[0], two[1]])));
    let port = be16(2).ok_or(libc::EINVAL)?;
    match family {
        Some(libc::AF_UNSPEC) => Ok(None),
        Some(libc::AF_INET) => {
            let four: [u8; 4] = bytes
                .get(4..8)
                .ok_or(libc::EINVAL)?
                .try_into()
                .map_err(|_| libc::EINVAL)?;
            Ok(Some(SocketAddr::new(IpAddr::from(four), port)))
        }
        Some(libc::AF_INET6) => {
            let bytes: [u8; 16] = bytes
                .get(8..24)
                .ok_or(libc::EINVAL)?
                .try_into()
                .map_err(|_| libc::EINVAL)?;
            Ok(Some(SocketAddr::new(IpAddr::from(bytes), port)))
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// # Safety
/// `into` is null, or `len` points to how many bytes there are writable at `into`.
pub unsafe fn put_address(from: SocketAddr, into: *mut libc::sockaddr, len: *mut libc::socklen_t) {
    let mut bytes = Vec::with_capacity(28);
    let family = if from.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    bytes.extend((family as u16).to_ne_bytes());
    bytes.extend(from.port().to_be_bytes());
    match from {
        SocketAddr::V4(from) => {
            bytes.extend(from.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(from) => put_v6(from, &mut bytes),
    }
    // SAFETY: the caller's promise.
    unsafe { put(&bytes, into.cast(), len) };
}

fn put_v6(from: SocketAddrV6, bytes: &mut Vec<u8>) {
    bytes.extend(from.flowinfo().to_ne_bytes());
    bytes.extend(from.ip().octets());
    bytes.extend(from.scope_id().to_ne_bytes());
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
