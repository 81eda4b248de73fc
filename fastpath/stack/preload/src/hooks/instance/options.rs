//! Options and queues of sockets that the instance has. SAFETY comments "as libc's" say: the program passes what libc's call of that name takes.
use super::told::take_error;
use crate::hooks::memory::{done, fail, is_nowhere, put, put_option};
use crate::hooks::{lock, real};
use crate::kernel;
use crate::rows;
use hopscope_stack_abi::options;
use hopscope_stack_instance::programs::table::Phase;
use hopscope_stack_instance::programs::wire::Name;
use nix::libc::{self, c_int, c_void, socklen_t};
use std::os::fd::AsRawFd;

const SIOCOUTQNSD: libc::c_ulong = 0x894b;
const TCP_CC_INFO: c_int = 26;
/// Of others a socket of IPv4 has nothing (do_ip_getsockopt).
const LEVELS: [c_int; 3] = [libc::IPPROTO_IP, libc::IPPROTO_IPV6, libc::IPPROTO_TCP];

fn is_ipv4(name: Name) -> bool {
    rows::row(name).is_some_and(|row| row.ipv6 == 0)
}

/// `None`: the kernel's to answer.
fn option_value(
    fd: c_int,
    name: Name,
    level: c_int,
    option: c_int,
) -> Option<Result<Vec<u8>, c_int>> {
    let number = |value: c_int| Some(Ok(value.to_ne_bytes().to_vec()));
    let socket = rows::state(name);
    match (level, option) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            // The pair's own is not the connection's.
            let _ = kernel::option(fd, level, option);
            return number(take_error(name, socket).unwrap_or(0));
        }
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => {
            let ipv6 = rows::row(name).is_some_and(|row| row.ipv6 != 0);
            return number(if ipv6 { libc::AF_INET6 } else { libc::AF_INET });
        }
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => return number(libc::IPPROTO_TCP),
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
            return number((socket.phase == Phase::Listening).into());
        }
        (libc::IPPROTO_TCP, TCP_CC_INFO) => return Some(Ok(Vec::new())),
        (libc::IPPROTO_IPV6, _) if is_ipv4(name) => return Some(Err(libc::EOPNOTSUPP)),
        (libc::IPPROTO_TCP, libc::TCP_INFO)
        | (libc::IPPROTO_IP, libc::IP_MTU)
        | (libc::IPPROTO_IPV6, libc::IPV6_MTU) => {}
        _ if options::named(level, option).is_ok() => {}
        (libc::SOL_SOCKET, _) => return None,
        _ if is_ipv4(name) && !LEVELS.contains(&level) => return Some(Err(libc::EOPNOTSUPP)),
        _ => return Some(Err(libc::ENOPROTOOPT)),
    }
    let value = lock::with(|state| state.option_there(name, level, option));
    Some(value.and_then(|value| value))
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
    match option_value(fd, name, level, option) {
        // SAFETY: as libc's.
        Some(Ok(value)) => done(unsafe { put_option(&value, level, into, len) }) as c_int,
        Some(Err(error)) => fail(error) as c_int,
        // SAFETY: as libc's.
        None => unsafe { real::getsockopt(fd, level, option, into, len) },
    }
}

/// `None`: the kernel's to do.
pub fn setsockopt(name: Name, level: c_int, option: c_int, value: &[u8]) -> Option<c_int> {
    if level == libc::IPPROTO_IPV6 && is_ipv4(name) {
        return Some(fail(libc::ENOPROTOOPT) as c_int);
    }
    match options::parse(level, option, value) {
        Ok(_) => {}
        // Of the socket the kernel has options that change nothing here (SO_PRIORITY).
        Err(libc::ENOPROTOOPT) if level == libc::SOL_SOCKET => return None,
        Err(error) => return Some(fail(error) as c_int),
    }
    let set = lock::with(|state| state.set_option_there(name, (level, option, value)));
    let set = match set.and_then(|set| set) {
        // The connection is over, and nothing of it left that could be changed.
        Err(libc::ENOTCONN) => Ok(()),
        set => set,
    };
    Some(done(set.map(|()| 0)) as c_int)
}

/// Routes, addresses and ARP entries (inet_ioctl): a socket of unix(7) has none of them, another one of the kernel's answers.
fn is_of_inet(request: libc::c_ulong) -> bool {
    matches!(request, 0x890b..=0x890d | 0x8915..=0x891c | 0x8953..=0x8955)
}

/// # Safety
/// As libc's ioctl.
unsafe fn ioctl_of_inet(name: Name, request: libc::c_ulong, at: *mut c_int) -> c_int {
    let domain = match is_ipv4(name) {
        true => libc::AF_INET,
        false => libc::AF_INET6,
    };
    match kernel::socket(domain, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) {
        Ok(fd) => {
            let socket = kernel::own(fd as c_int);
            // SAFETY: as libc's.
            unsafe { real::ioctl(socket.as_raw_fd(), request, at as usize) }
        }
        Err(error) => fail(error) as c_int,
    }
}

/// SIOCOUTQ, SIOCOUTQNSD, and those of the network. `None`: the kernel's to answer.
///
/// # Safety
/// As libc's ioctl.
pub unsafe fn ioctl(name: Name, request: libc::c_ulong, at: *mut c_int) -> Option<c_int> {
    if is_of_inet(request) {
        // SAFETY: as libc's.
        return Some(unsafe { ioctl_of_inet(name, request, at) });
    }
    if request != libc::TIOCOUTQ && request != SIOCOUTQNSD {
        return None;
    }
    if is_nowhere(at) {
        return Some(fail(libc::EFAULT) as c_int);
    }
    let queued = lock::with(|state| state.queued_there(name));
    Some(match queued.and_then(|queued| queued) {
        Ok((unacknowledged, unsent)) => {
            let value = match request {
                SIOCOUTQNSD => unsent,
                _ => unacknowledged,
            };
            // SAFETY: as libc's.
            unsafe { put(at, value as c_int) };
            0
        }
        Err(error) => fail(error) as c_int,
    })
}
