//! socket, bind, listen, accept, connect, shutdown.
use super::memory::{address, fail, is_nowhere, put_address};
use super::naming::fresh;
use super::wait::{call, has_become_the_instances};
use super::{instance, lock, real, reserve};
use crate::kernel;
use crate::table::{self, Entry};
use hopscope_stack_engine::SocketKind;
use nix::libc::{self, c_int, sockaddr, socklen_t};

/// F-Stack's, beside SOCK_CLOEXEC and SOCK_NONBLOCK: which stack a socket is of (adapter/syscall/ff_adapter.h). The kernel knows neither.
const SOCK_FSTACK: c_int = 0x0100_0000;
const SOCK_KERNEL: c_int = 0x0200_0000;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn socket(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    let (asked, kind) = (kind, kind & !(SOCK_FSTACK | SOCK_KERNEL));
    let ipv6 = domain == libc::AF_INET6;
    let engine = match (kind & 0xf, protocol) {
        (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP | libc::IPPROTO_MPTCP) => Some(SocketKind::Tcp),
        (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => Some(SocketKind::Udp),
        _ => None,
    };
    let is_kernels = asked & SOCK_KERNEL != 0 && asked & SOCK_FSTACK == 0;
    let engine = engine.filter(|_| (ipv6 || domain == libc::AF_INET) && !is_kernels);
    // SAFETY: as libc's.
    let fd = fresh(unsafe { real::socket(domain, kind, protocol) });
    let Some(engine) = engine.filter(|_| fd >= 0 && lock::is_filled()) else {
        return fd;
    };
    if reserve::is_scarce() {
        kernel::close(fd);
        return fail(libc::ENOBUFS) as c_int;
    }
    let nonblocking = kind & libc::SOCK_NONBLOCK != 0;
    match lock::with(|state| state.opened(fd, engine, ipv6, nonblocking)) {
        Ok(true) => fd,
        Ok(false) | Err(libc::EIO) => {
            kernel::close(fd);
            fail(libc::EMFILE) as c_int
        }
        Err(error) => {
            kernel::close(fd);
            fail(error) as c_int
        }
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn bind(
    fd: c_int,
    local: *const sockaddr,
    len: socklen_t,
) -> c_int {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        return unsafe { real::bind(fd, local, len) };
    }
    // SAFETY: as libc's.
    let ours = match unsafe { address(local, len) } {
        // It has an address.
        Ok(_) if matches!(table::get(fd), Entry::Instance(_)) => Some(fail(libc::EINVAL)),
        Ok(bytes) if let Some(name) = instance::datagrams::name(fd) => {
            return instance::datagram_options::bind(name, bytes);
        }
        Ok(bytes) => call(fd, |state, index| state.bind(index, fd, bytes)),
        Err(error) => Some(fail(error)),
    };
    match ours {
        Some(done) => done as c_int,
        // SAFETY: as libc's.
        None if has_become_the_instances(fd) => unsafe { bind(fd, local, len) },
        // SAFETY: as libc's.
        None => unsafe { real::bind(fd, local, len) },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if let Entry::Instance(name) = table::get(fd) {
        return instance::listen(fd, name, backlog);
    }
    if instance::datagrams::name(fd).is_some() {
        return fail(libc::EOPNOTSUPP) as c_int;
    }
    match call(fd, |state, index| state.listen(index, fd, backlog)) {
        Some(done) => done as c_int,
        // SAFETY: as libc's.
        None if has_become_the_instances(fd) => unsafe { listen(fd, backlog) },
        // SAFETY: as libc's.
        None => unsafe { real::listen(fd, backlog) },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn connect(
    fd: c_int,
    peer: *const sockaddr,
    len: socklen_t,
) -> c_int {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        return unsafe { real::connect(fd, peer, len) };
    }
    let mut started = false;
    // SAFETY: as libc's.
    let ours = match unsafe { address(peer, len) } {
        Ok(bytes) if let Entry::Instance(name) = table::get(fd) => {
            return instance::connect(fd, name, bytes);
        }
        Ok(bytes) if let Some(name) = instance::datagrams::name(fd) => {
            return instance::datagram_options::connect(name, bytes);
        }
        Ok(bytes) => call(fd, |state, index| {
            state.connect(index, fd, bytes, &mut started)
        }),
        Err(error) => Some(fail(error)),
    };
    match (ours, table::get(fd)) {
        // It was just begun there.
        (Some(0), Entry::Instance(name)) => instance::after_connect(fd, name),
        (Some(done), _) => done as c_int,
        // SAFETY: as libc's.
        (None, Entry::Instance(_) | Entry::Datagrams(_)) => unsafe { connect(fd, peer, len) },
        // SAFETY: as libc's.
        (None, _) => unsafe { real::connect(fd, peer, len) },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn accept(
    fd: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        return fresh(unsafe { real::accept(fd, from, len) });
    }
    // SAFETY: as libc's.
    unsafe { accept4(fd, from, len, 0) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        return fresh(unsafe { real::accept4(fd, from, len, flags) });
    }
    if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
        return fail(libc::EINVAL) as c_int;
    }
    if !from.is_null() && is_nowhere(len) {
        return fail(libc::EFAULT) as c_int;
    }
    if let Entry::Instance(name) = table::get(fd) {
        // SAFETY: as libc's.
        return unsafe { instance::accept4(fd, name, from, len, flags) };
    }
    if instance::datagrams::name(fd).is_some() {
        return fail(libc::EOPNOTSUPP) as c_int;
    }
    if reserve::is_scarce() {
        return fail(libc::ENOBUFS) as c_int;
    }
    let mut peer = Vec::new();
    match call(fd, |state, index| state.accept(index, fd, flags, &mut peer)) {
        Some(new) => {
            if new >= 0 {
                // SAFETY: as libc's.
                let _ = unsafe { put_address(&peer, from, len) };
            }
            new as c_int
        }
        // SAFETY: as libc's.
        None if has_become_the_instances(fd) => unsafe { accept4(fd, from, len, flags) },
        // SAFETY: as libc's.
        None => unsafe { real::accept4(fd, from, len, flags) },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if let Entry::Instance(name) = table::get(fd) {
        return instance::shutdown(fd, name, how);
    }
    if let Some(name) = instance::datagrams::name(fd) {
        return instance::datagram_options::shutdown(fd, name, how);
    }
    match call(fd, |state, index| state.shutdown(index, fd, how)) {
        Some(done) => done as c_int,
        // SAFETY: as libc's.
        None if has_become_the_instances(fd) => unsafe { shutdown(fd, how) },
        // SAFETY: as libc's.
        None => unsafe { real::shutdown(fd, how) },
    }
}
