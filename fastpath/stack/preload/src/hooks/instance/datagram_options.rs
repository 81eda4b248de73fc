//! Addresses, options and ends of sockets of UDP that the instance has. SAFETY comments "as libc's" say: the program passes what libc's call of
//! that name takes.
use super::datagrams::take_error;
use crate::hooks::memory::{done, fail, is_nowhere, put_address, put_option};
use crate::hooks::{lock, real};
use crate::kernel;
use crate::rows;
use hopscope_stack_abi::{address, options};
use hopscope_stack_instance::programs::table::Phase;
use hopscope_stack_instance::programs::wire::Name;
use nix::libc::{self, c_int, c_void, sockaddr, socklen_t};
use std::os::fd::AsRawFd;

pub fn bind(name: Name, bytes: &[u8]) -> c_int {
    let bound = lock::with(|state| state.bind_datagrams_again(name, bytes));
    done(bound.and_then(|bound| bound).map(|()| 0)) as c_int
}

pub fn connect(name: Name, bytes: &[u8]) -> c_int {
    let connected = lock::with(|state| {
        let peer = address::from_bytes(bytes)?;
        state.connect_datagrams_there(name, peer)
    });
    done(connected.and_then(|connected| connected).map(|()| 0)) as c_int
}

/// # Safety
/// As libc's getsockname and getpeername.
pub unsafe fn address_of(name: Name, own: bool, into: *mut sockaddr, len: *mut socklen_t) -> c_int {
    if is_nowhere(into) || is_nowhere(len) {
        return fail(libc::EFAULT) as c_int;
    }
    match rows::row(name) {
        Some(row) if own || rows::state(name).phase == Phase::Connected => {
            // SAFETY: as libc's.
            done(unsafe { put_address(row.address(own), into, len) }.map(|()| 0)) as c_int
        }
        _ => fail(libc::ENOTCONN) as c_int,
    }
}

/// Linux says ENOTCONN, and shuts it down all the same.
pub fn shutdown(fd: c_int, name: Name, how: c_int) -> c_int {
    let connected = rows::state(name).phase == Phase::Connected;
    if how == libc::SHUT_RD || how == libc::SHUT_RDWR {
        let _ = lock::with(|state| state.shut_down_there(name));
    }
    // SAFETY: as libc's.
    let shut = unsafe { real::shutdown(fd, how) };
    match shut == 0 && !connected {
        true => fail(libc::ENOTCONN) as c_int,
        false => shut,
    }
}

/// `None`: the kernel's socket answers.
fn option_value(name: Name, level: c_int, option: c_int) -> Option<Result<Vec<u8>, c_int>> {
    let number = |value: c_int| Some(Ok(value.to_ne_bytes().to_vec()));
    match (level, option) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => return number(take_error(name).unwrap_or(0)),
        (libc::SOL_SOCKET, libc::SO_TYPE) => return number(libc::SOCK_DGRAM),
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => return number(libc::IPPROTO_UDP),
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => return number(0),
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => {
            let ipv6 = rows::row(name).is_some_and(|row| row.ipv6 != 0);
            return number(if ipv6 { libc::AF_INET6 } else { libc::AF_INET });
        }
        (libc::IPPROTO_IPV6, _) if rows::row(name).is_some_and(|row| row.ipv6 == 0) => return None,
        (libc::IPPROTO_IP, libc::IP_MTU) | (libc::IPPROTO_IPV6, libc::IPV6_MTU) => {}
        _ if options::named(level, option).is_ok() => {}
        _ => return None,
    }
    let value = lock::with(|state| state.option_there(name, level, option));
    match value.and_then(|value| value) {
        Err(libc::ENOPROTOOPT) => None,
        value => Some(value),
    }
}

/// # Safety
/// As libc's getsockopt.
pub unsafe fn getsockopt(
    fd: c_int,
    name: Name,
    (level, option): (c_int, c_int),
    into: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    match option_value(name, level, option) {
        // SAFETY: as libc's.
        Some(Ok(value)) => return done(unsafe { put_option(&value, level, into, len) }) as c_int,
        Some(Err(error)) => return fail(error) as c_int,
        None => {}
    }
    if is_of_descriptor(level, option) {
        // SAFETY: as libc's.
        return unsafe { real::getsockopt(fd, level, option, into, len) };
    }
    let kernel = lock::with(|state| state.kernels_datagrams(name));
    match kernel.and_then(|kernel| kernel) {
        // SAFETY: as libc's.
        Ok(kernel) => unsafe { real::getsockopt(kernel.as_raw_fd(), level, option, into, len) },
        Err(error) => fail(error) as c_int,
    }
}

/// How long calls wait.
fn is_of_descriptor(level: c_int, option: c_int) -> bool {
    level == libc::SOL_SOCKET && [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO].contains(&option)
}

pub fn setsockopt(fd: c_int, name: Name, level: c_int, option: c_int, value: &[u8]) -> c_int {
    let set = match is_of_descriptor(level, option) {
        true => kernel::set_option(fd, level, option, value).map(drop),
        false => lock::with(|state| state.set_datagram_option_there(name, (level, option), value))
            .and_then(|set| set),
    };
    done(set.map(|()| 0)) as c_int
}
