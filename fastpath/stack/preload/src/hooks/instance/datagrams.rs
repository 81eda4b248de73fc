//! Datagrams in and out: the kernel's calls on one end of a pair of unix(7) that keeps messages, whose header goes before and is taken off
//! again by one more vector. SAFETY comments "as libc's" say: the program passes what libc's call of that name takes.
use super::told::{errno, is_nonblocking, is_shut};
use crate::control::{self, Wants};
use crate::data::scatter;
use crate::hooks::memory::{IOV_MAX, fail, is_nowhere, put};
use crate::hooks::{lock, real};
use crate::instance::lost;
use crate::kernel;
use crate::rows;
use crate::say::once;
use crate::sending_there::Way;
use crate::table::{self, Entry};
use crate::told::{To, Told};
use hopscope_stack_abi::address;
use hopscope_stack_engine::Inbound;
use hopscope_stack_instance::programs::datagram::{HEADER, Head, Message};
use hopscope_stack_instance::programs::wire::Name;
use nix::libc::{self, c_int};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;

static MORE_SAID: AtomicBool = AtomicBool::new(false);

/// Of a socket of UDP that the instance has.
pub fn name(fd: c_int) -> Option<Name> {
    match table::get(fd) {
        Entry::Datagrams(name) => Some(name),
        _ => None,
    }
}

/// The socket's error, once in a process.
pub fn take_error(name: Name) -> Option<c_int> {
    let count = rows::datagrams(name)?.errors;
    if count == 0 {
        return None;
    }
    let is_new = lock::with(|state| {
        let instance = state.instance.as_mut();
        instance.is_some_and(|instance| instance.hear_of(name, count))
    });
    (is_new == Ok(true)).then(|| rows::state(name).errno.into())
}

pub fn has_error(name: Name) -> bool {
    let Some(of) = rows::datagrams(name).filter(|of| of.errors != 0) else {
        return false;
    };
    let heard = lock::with(|state| {
        let instance = state.instance.as_ref();
        instance.is_some_and(|instance| instance.has_heard_of(name, of.errors))
    });
    heard == Ok(false)
}

/// Into the parts, with the header before them. The kernel's call is libc's: a thread may be cancelled there.
fn receive_message(
    fd: c_int,
    header: &mut [u8; HEADER],
    parts: &mut [&mut [u8]],
    flags: c_int,
) -> isize {
    let first = libc::iovec {
        iov_base: header.as_mut_ptr().cast(),
        iov_len: HEADER,
    };
    // One vector less than the program may have: its last ones are one here.
    let (parts, last) = parts.split_at_mut(parts.len().min(IOV_MAX - 2));
    let room: usize = last.iter().map(|part| part.len()).sum();
    let mut joined = vec![0; room.min(1 << 16)];
    let rest = parts
        .iter_mut()
        .map(|part| &mut **part)
        .chain([&mut joined[..]])
        .map(|part| libc::iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: part.len(),
        });
    let mut vectors: Vec<libc::iovec> = [first].into_iter().chain(rest).collect();
    // SAFETY: zero is a value of this structure of numbers and pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len();
    // SAFETY: all that it names lives over the call, and is as long as it says.
    let got = unsafe { real::recvmsg(fd, &raw mut message, flags) };
    let before = HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
    let here = usize::try_from(got).unwrap_or(0).saturating_sub(before);
    scatter(&joined[..here.min(joined.len())], last);
    got
}

pub fn receive(
    fd: c_int,
    name: Name,
    parts: &mut [&mut [u8]],
    flags: c_int,
    told: &mut Told,
) -> isize {
    if flags & libc::MSG_ERRQUEUE != 0 {
        return fail(libc::EAGAIN);
    }
    let how = flags & (libc::MSG_DONTWAIT | libc::MSG_PEEK) | libc::MSG_TRUNC;
    loop {
        let mut header = [0; HEADER];
        if has_error(name) {
            // The message of it goes, too, if it is the next one: nobody is woken up for it again.
            let next = libc::MSG_PEEK | libc::MSG_DONTWAIT;
            receive_message(fd, &mut header, &mut [], next);
            let is_next = matches!(Message::from_bytes(&header), Some(Message::Error { .. }));
            let stays = !is_next || flags & libc::MSG_PEEK != 0;
            if let Some(error) = stays.then(|| take_error(name)).flatten() {
                return fail(error);
            }
        }
        let got = receive_message(fd, &mut header, parts, how);
        if got == 0 || got < 0 && errno() == libc::ECONNRESET {
            return ended(fd, name, flags);
        }
        if got < 0 {
            return got;
        }
        match Message::from_bytes(&header) {
            Some(Message::Datagram(head)) => {
                let room = parts.iter().map(|part| part.len()).sum();
                let len = (got as usize).saturating_sub(HEADER);
                tell(name, &head, (len, room), told);
                return match flags & libc::MSG_TRUNC {
                    0 => len.min(room) as isize,
                    _ => len as isize,
                };
            }
            // One that a call has returned.
            Some(Message::Error { .. }) if flags & libc::MSG_PEEK != 0 => {
                receive_message(fd, &mut header, &mut [], libc::MSG_DONTWAIT);
            }
            Some(Message::Error { .. }) => {
                if let Some(error) = take_error(name) {
                    return fail(error);
                }
            }
            None => return fail(libc::EIO),
        }
    }
}

/// Nothing more comes: because the program has said so, or because the instance is gone.
fn ended(fd: c_int, name: Name, flags: c_int) -> isize {
    if is_shut(name) {
        let waits = flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(fd);
        return if waits { 0 } else { fail(libc::EAGAIN) };
    }
    lost();
    let _ = lock::with(|state| state.silence(fd));
    fail(libc::ENETDOWN)
}

fn tell(name: Name, head: &Head, (len, room): (usize, usize), told: &mut Told) {
    told.from = head.peer.map(address::to_bytes).unwrap_or_default();
    told.flags = if len > room { libc::MSG_TRUNC } else { 0 };
    told.control.clear();
    let wants = rows::datagrams(name).map(|of| Wants::of_bits(of.wants));
    let Some(wants) = wants.filter(|wants| *wants != Wants::default()) else {
        return;
    };
    let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let inbound = Inbound {
        len,
        peer: head.peer.unwrap_or(nowhere),
        to: head.local.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        hop_limit: head.hop_limit.unwrap_or(0),
        traffic_class: head.traffic_class.unwrap_or(0),
    };
    let _ = lock::with(|state| {
        let device = state.handed.instance().map_or(0, |there| there.index);
        let answers = head.answers.map(|ip| (IpAddr::V4(ip), 32));
        let (interface, own) = match head.interface {
            0 => (device, &state.handed.reach.addresses[..]),
            by_kernel => (by_kernel, answers.as_slice()),
        };
        let interface = (interface, own);
        control::tell(&inbound, wants, interface, told);
    });
}

/// # Safety
/// `to` and `parts` are of a message that libc's sendmsg takes.
pub fn send(fd: c_int, name: Name, parts: &[&[u8]], flags: c_int, to: To<'_>) -> isize {
    let len = parts.iter().map(|part| part.len()).sum();
    let way = match lock::with(|state| state.way_of_datagram(name, len, to)) {
        Ok(Ok(way)) => way,
        Ok(Err(error)) | Err(error) => return fail(error),
    };
    let head = match way {
        Way::There(head) => head,
        Way::Kernel(kernel) => {
            let waits = match is_nonblocking(fd) {
                true => libc::MSG_DONTWAIT,
                false => 0,
            };
            return send_message(kernel.as_raw_fd(), &[], parts, flags | waits, to);
        }
    };
    if flags & libc::MSG_OOB != 0 {
        return fail(libc::EOPNOTSUPP);
    }
    if flags & libc::MSG_MORE != 0 {
        once(&MORE_SAID, || {
            "MSG_MORE on a UDP socket of the stack: not supported: the call fails (EOPNOTSUPP)"
                .into()
        });
        return fail(libc::EOPNOTSUPP);
    }
    if let Some(error) = take_error(name) {
        return fail(error);
    }
    let header = Message::Datagram(head).to_bytes();
    let how = flags & libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let sent = send_message(fd, &header, parts, how, To::default());
    if sent >= 0 {
        return sent - HEADER as isize;
    }
    match errno() {
        libc::EPIPE if is_hung_up(fd) && !is_shut(name) => {
            lost();
            fail(libc::ENETDOWN)
        }
        libc::EPIPE if crate::instance::is_lost(name) => fail(libc::ENETDOWN),
        libc::ECONNRESET | libc::ENOTCONN => {
            lost();
            fail(libc::ENETDOWN)
        }
        _ => sent,
    }
}

fn is_hung_up(fd: c_int) -> bool {
    let mut fds = [crate::sleeper::watch(fd, 0)];
    kernel::poll_now(&mut fds) == Ok(1) && fds[0].revents & libc::POLLHUP != 0
}

fn send_message(fd: c_int, header: &[u8], parts: &[&[u8]], flags: c_int, to: To<'_>) -> isize {
    // One vector less than the program may have: its last ones are one here.
    let (parts, last) = parts.split_at(parts.len().min(IOV_MAX - 2));
    let joined = last.concat();
    let all = [header]
        .into_iter()
        .chain(parts.iter().copied())
        .chain([&joined[..]]);
    let mut vectors: Vec<libc::iovec> = all
        .map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        })
        .collect();
    // SAFETY: zero is a value of this structure of numbers and pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len();
    if let Some(address) = to.address {
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = address.len() as libc::socklen_t;
    }
    if !to.control.is_empty() {
        message.msg_control = to.control.as_ptr().cast_mut().cast();
        message.msg_controllen = to.control.len();
    }
    // SAFETY: all that it names lives over the call, and is as long as it says; none of it is written.
    unsafe { real::sendmsg(fd, &raw const message, flags) }
}

/// The next one's length.
fn next_len(fd: c_int) -> c_int {
    let mut header = [0; HEADER];
    let flags = libc::MSG_DONTWAIT | libc::MSG_PEEK | libc::MSG_TRUNC;
    let got = receive_message(fd, &mut header, &mut [], flags);
    match Message::from_bytes(&header) {
        Some(Message::Datagram(_)) => (got - HEADER as isize).max(0) as c_int,
        _ => 0,
    }
}

/// FIONREAD, SIOCOUTQ, and those of devices, which the kernel's socket answers. `None`: the pair's to answer.
///
/// # Safety
/// As libc's ioctl.
pub unsafe fn ioctl(
    fd: c_int,
    name: Name,
    request: libc::c_ulong,
    argument: usize,
) -> Option<c_int> {
    let at = argument as *mut c_int;
    let value = match request {
        libc::FIONREAD => Ok(next_len(fd)),
        libc::TIOCOUTQ => {
            let queued = lock::with(|state| state.queued_there(name));
            queued
                .and_then(|queued| queued)
                .map(|(all, _)| all as c_int)
        }
        _ if request >> 8 == 0x89 => {
            let kernel = lock::with(|state| state.kernels_datagrams(name));
            return Some(match kernel.and_then(|kernel| kernel) {
                // SAFETY: as libc's.
                Ok(kernel) => unsafe { real::ioctl(kernel.as_raw_fd(), request, argument) },
                Err(error) => fail(error) as c_int,
            });
        }
        _ => return None,
    };
    Some(match value {
        Ok(_) if is_nowhere(at) => fail(libc::EFAULT) as c_int,
        Ok(value) => {
            // SAFETY: as libc's.
            unsafe { put(at, value) };
            0
        }
        Err(error) => fail(error) as c_int,
    })
}
