//! Addresses, shutdown, and descriptors that come from elsewhere.
use crate::hooks::memory::{done, fail, get, is_nowhere, put_address};
use crate::hooks::naming::fresh;
use crate::hooks::{lock, real};
use crate::rows;
use hopscope_stack_instance::programs::table::Phase;
use hopscope_stack_instance::programs::wire::Name;
use nix::libc::{self, c_int, sockaddr, socklen_t};

/// # Safety
/// As libc's getsockname and getpeername.
pub unsafe fn address(name: Name, own: bool, into: *mut sockaddr, len: *mut socklen_t) -> c_int {
    if is_nowhere(into) || is_nowhere(len) {
        return fail(libc::EFAULT) as c_int;
    }
    let row = rows::row(name);
    let known = row.as_ref().map_or(&[][..], |row| row.address(own));
    let socket = rows::state(name);
    let is_connected = socket.phase == Phase::Connected && socket.errno == 0;
    if known.is_empty() || !own && !is_connected {
        return fail(libc::ENOTCONN) as c_int;
    }
    // SAFETY: as libc's.
    done(unsafe { put_address(known, into, len) }.map(|()| 0)) as c_int
}

pub fn shutdown(fd: c_int, name: Name, how: c_int) -> c_int {
    match rows::state(name).phase {
        _ if ![libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR].contains(&how) => {
            return fail(libc::EINVAL) as c_int;
        }
        Phase::Bound => return fail(libc::ENOTCONN) as c_int,
        // It has ended already.
        _ if rows::state(name).errno != 0 => return fail(libc::ENOTCONN) as c_int,
        Phase::Listening if how == libc::SHUT_WR => return 0,
        Phase::Listening => {
            let unlistened = lock::with(|state| state.unlisten(name, fd));
            return done(unlistened.and_then(|done| done).map(|()| 0)) as c_int;
        }
        Phase::Connecting if lock::with(|state| state.disconnect_there(name)) == Ok(true) => {
            return 0;
        }
        Phase::Connecting | Phase::Connected | Phase::Free => {}
    }
    if how == libc::SHUT_RD || how == libc::SHUT_RDWR {
        let _ = lock::with(|state| {
            if let Some(instance) = &mut state.instance {
                instance.shut_down(name);
            }
        });
    }
    // SAFETY: as libc's.
    unsafe { real::shutdown(fd, how) }
}

/// Descriptors that came with a message: the instance's may be among them.
///
/// # Safety
/// `header` is what recvmsg(2) has just returned.
pub unsafe fn came_with(header: &libc::msghdr) {
    if header.msg_controllen == 0 || !lock::is_filled() {
        return;
    }
    let mut fds = Vec::new();
    // SAFETY: libc's macros, on a message that the kernel has filled in.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while !at.is_null() {
            let message = get(at);
            if (message.cmsg_level, message.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = message.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let data: *const c_int = libc::CMSG_DATA(at).cast();
                fds.extend((0..bytes / size_of::<c_int>()).map(|n| get(data.add(n))));
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    for fd in &fds {
        fresh(*fd);
    }
    if !fds.is_empty() {
        let _ = lock::with(|state| state.recognize(&fds));
    }
}
