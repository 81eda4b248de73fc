//! Calls on sockets that the instance has: the kernel's on one end of a pair of unix(7), with what TCP does otherwise. SAFETY comments
//! "as libc's" say: the program passes what libc's call of that name takes.
use super::memory::{done, fail, is_nowhere, put, put_address, put_option};
use super::{lock, real};
use crate::instance::lost;
use crate::kernel;
use crate::rows;
use crate::stack::now;
use crate::table::{self, Entry};
use hopscope_stack_abi::{address, options};
use hopscope_stack_engine::Ns;
use hopscope_stack_instance::programs::passing;
use hopscope_stack_instance::programs::table::{Phase, State as Socket};
use hopscope_stack_instance::programs::wire::{Accepted, Name};
use nix::libc::{self, c_int, c_void, sockaddr, socklen_t};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::os::fd::IntoRawFd;

/// MSG_FASTOPEN; libc has it as i32 on Linux alone.
const FASTOPEN: c_int = 0x2000_0000;
const SIOCOUTQNSD: libc::c_ulong = 0x894b;
const TCP_CC_INFO: c_int = 26;

fn errno() -> c_int {
    // SAFETY: libc's address of this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// The error that the connection ended with, once in a process.
fn take_error(name: Name, socket: Socket) -> Option<c_int> {
    if socket.errno == 0 {
        return None;
    }
    let is_new = lock::with(|state| {
        let instance = state.instance.as_mut();
        instance.is_some_and(|instance| instance.taken.insert(name))
    });
    (is_new == Ok(true)).then_some(socket.errno.into())
}

/// This process has shut it down.
fn is_shut(name: Name) -> bool {
    let shut = lock::with(|state| {
        let instance = state.instance.as_ref();
        instance.is_some_and(|instance| instance.shut.contains(&name))
    });
    shut == Ok(true)
}

/// Before bytes are received: errno, where TCP has none to receive.
pub fn before_receive(name: Name, flags: c_int) -> Result<(), c_int> {
    if flags & libc::MSG_OOB != 0 {
        return Err(libc::EINVAL);
    }
    if flags & libc::MSG_ERRQUEUE != 0 {
        return Err(libc::EAGAIN);
    }
    let socket = rows::state(name);
    match socket.phase {
        Phase::Bound | Phase::Listening => Err(libc::ENOTCONN),
        Phase::Connecting if socket.errno != 0 => {
            Err(take_error(name, socket).unwrap_or(libc::ENOTCONN))
        }
        _ => Ok(()),
    }
}

/// MSG_TRUNC: TCP discards, and writes nothing.
///
/// # Safety
/// As libc's recv.
pub unsafe fn discard(fd: c_int, name: Name, len: usize, flags: c_int) -> isize {
    let mut bytes = vec![0_u8; len.min(1 << 20)];
    let (into, len) = (bytes.as_mut_ptr().cast(), bytes.len());
    // SAFETY: the buffer has room for as many.
    received(name, len, unsafe {
        real::recv(fd, into, len, flags & !libc::MSG_TRUNC)
    })
}

/// What the kernel's call has returned, of room for `len` bytes.
pub fn received(name: Name, len: usize, got: isize) -> isize {
    if got > 0 || got == 0 && len == 0 || got < 0 && errno() != libc::ECONNRESET {
        return got;
    }
    let socket = rows::state(name);
    // As Linux: a reset that follows the end is told to who sends.
    if socket.ended {
        return 0;
    }
    if let Some(error) = take_error(name, socket) {
        return fail(error);
    }
    if socket.errno != 0 || socket.phase == Phase::Free || is_shut(name) {
        return 0;
    }
    fail(lost())
}

/// Before bytes are sent: waits for a connection that is being made.
fn before_send(fd: c_int, name: Name, flags: c_int) -> Result<(), c_int> {
    if flags & (libc::MSG_OOB | FASTOPEN) != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let socket = rows::state(name);
    match socket.phase {
        Phase::Connecting if socket.errno == 0 => {
            if flags & libc::MSG_DONTWAIT != 0 || is_nonblocking(fd) {
                return Err(libc::EAGAIN);
            }
            connected(fd, name).map_err(|error| match error {
                libc::EINPROGRESS => libc::EAGAIN,
                error => error,
            })
        }
        Phase::Bound | Phase::Listening => Err(libc::EPIPE),
        // Before the kernel's call, which would send a signal.
        _ => take_error(name, socket).map_or(Ok(()), Err),
    }
}

/// What the kernel's call has returned, which sent SIGPIPE where it was to.
fn sent(name: Name, sent: isize) -> isize {
    if sent >= 0 || ![libc::EPIPE, libc::ECONNRESET].contains(&errno()) {
        return sent;
    }
    fail(take_error(name, rows::state(name)).unwrap_or(libc::EPIPE))
}

/// Sends by `call`, which is the kernel's, and the program's own: it may be allowed no other (seccomp).
pub fn sends(fd: c_int, name: Name, flags: c_int, call: impl FnOnce() -> isize) -> isize {
    match before_send(fd, name, flags) {
        Ok(()) => sent(name, call()),
        Err(libc::EPIPE) => broken(flags),
        Err(error) => fail(error),
    }
}

/// EPIPE, and the signal.
fn broken(flags: c_int) -> isize {
    if flags & libc::MSG_NOSIGNAL == 0 {
        kernel::raise_sigpipe();
    }
    fail(libc::EPIPE)
}

/// As a stream has it: without an address, and without what goes beside the bytes.
///
/// # Safety
/// As libc's sendmsg.
pub unsafe fn sendmsg(fd: c_int, name: Name, header: &libc::msghdr, flags: c_int) -> isize {
    let bytes = libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: 0,
        msg_control: std::ptr::null_mut(),
        msg_controllen: 0,
        ..*header
    };
    // SAFETY: as libc's.
    sends(fd, name, flags, || unsafe {
        real::sendmsg(fd, &raw const bytes, flags)
    })
}

fn is_nonblocking(fd: c_int) -> bool {
    let flags = kernel::fcntl(fd, libc::F_GETFL, 0);
    flags.is_ok_and(|flags| flags as c_int & libc::O_NONBLOCK != 0)
}

/// SO_RCVTIMEO or SO_SNDTIMEO of the descriptor.
fn span(fd: c_int, name: c_int) -> Option<Ns> {
    // SAFETY: zero is a value of this structure of integers.
    let mut span: libc::timeval = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&span) as socklen_t;
    let into = (&raw mut span).cast();
    // SAFETY: both live over the call.
    let got = unsafe { real::getsockopt(fd, libc::SOL_SOCKET, name, into, &raw mut len) };
    let span = Ns(span.tv_sec as u64 * 1_000_000_000 + span.tv_usec as u64 * 1_000);
    (got == 0 && span.0 > 0).then_some(span)
}

/// Until `fd` is ready, a point at which the thread may be cancelled. `false`: not in time.
fn wait(fd: c_int, events: i16, until: Option<Ns>) -> Result<bool, c_int> {
    loop {
        let mut fds = [crate::sleeper::watch(fd, events)];
        let left = until.map(crate::sleeper::span_until);
        let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: both live over the call; no mask.
        let ready = unsafe { real::ppoll(fds.as_mut_ptr(), 1, left, std::ptr::null()) };
        match ready {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ if errno() == libc::EINTR
                && until.is_none()
                && !kernel::has_interrupting_handler() => {}
            _ => return Err(errno()),
        }
    }
}

/// Waits until connect(2) is over. EINPROGRESS: not in time.
fn connected(fd: c_int, name: Name) -> Result<(), c_int> {
    let until = span(fd, libc::SO_SNDTIMEO).map(|span| now() + span);
    loop {
        let socket = rows::state(name);
        if let Some(error) = take_error(name, socket) {
            return Err(error);
        }
        if socket.phase != Phase::Connecting {
            return Ok(());
        }
        if socket.errno != 0 {
            return Err(libc::ECONNABORTED);
        }
        if !wait(fd, libc::POLLOUT, until)? {
            return Err(libc::EINPROGRESS);
        }
        if rows::state(name) == socket && is_hung_up(fd) {
            return Err(lost());
        }
    }
}

fn is_hung_up(fd: c_int) -> bool {
    let mut fds = [crate::sleeper::watch(fd, 0)];
    kernel::poll_now(&mut fds) == Ok(1) && fds[0].revents & libc::POLLHUP != 0
}

/// connect(2), which was just begun.
pub fn after_connect(fd: c_int, name: Name) -> c_int {
    let over = match is_nonblocking(fd) {
        false => connected(fd, name),
        true => {
            let socket = rows::state(name);
            match (take_error(name, socket), socket.phase) {
                (Some(error), _) => Err(error),
                (None, Phase::Connecting) => Err(libc::EINPROGRESS),
                _ => Ok(()),
            }
        }
    };
    done(over.map(|()| 0)) as c_int
}

pub fn connect(fd: c_int, name: Name, peer: &[u8]) -> c_int {
    let peer = match address::from_bytes(peer) {
        Ok(Some(peer)) => peer,
        Ok(None) => return fail(libc::EAFNOSUPPORT) as c_int,
        Err(error) => return fail(error) as c_int,
    };
    match lock::with(|state| state.connect_again(name, fd, peer)) {
        // It may have got another name.
        Ok(Ok(())) => match table::get(fd) {
            Entry::Instance(name) => after_connect(fd, name),
            _ => fail(libc::EBADF) as c_int,
        },
        // A second call waits for the first.
        Ok(Err(libc::EALREADY)) if !is_nonblocking(fd) => {
            done(connected(fd, name).map(|()| 0)) as c_int
        }
        Ok(Err(error)) | Err(error) => fail(error) as c_int,
    }
}

pub fn listen(fd: c_int, name: Name, backlog: c_int) -> c_int {
    let asked = lock::with(|state| state.listen_again(name, fd, backlog));
    done(asked.and_then(|asked| asked).map(|()| 0)) as c_int
}

/// # Safety
/// As libc's accept4.
pub unsafe fn accept4(
    fd: c_int,
    listener: Name,
    from: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if rows::state(listener).phase != Phase::Listening {
        return fail(libc::EINVAL) as c_int;
    }
    let until = span(fd, libc::SO_RCVTIMEO).map(|span| now() + span);
    let (new, what) = loop {
        match accepted(fd, listener) {
            Ok(accepted) => break accepted,
            Err(libc::EAGAIN) if !is_nonblocking(fd) => match wait(fd, libc::POLLIN, until) {
                Ok(true) => {}
                Ok(false) => return fail(libc::EAGAIN) as c_int,
                Err(error) => return fail(error) as c_int,
            },
            Err(error) => return fail(error) as c_int,
        }
    };
    if flags & libc::SOCK_CLOEXEC == 0 {
        let _ = kernel::fcntl(new, libc::F_SETFD, 0);
    }
    let of_file = kernel::fcntl(new, libc::F_GETFL, 0).unwrap_or(0) as c_int;
    let nonblocking = match flags & libc::SOCK_NONBLOCK {
        0 => 0,
        _ => libc::O_NONBLOCK,
    };
    let wanted = of_file & !libc::O_NONBLOCK | nonblocking;
    if wanted != of_file {
        let _ = kernel::fcntl(new, libc::F_SETFL, wanted);
    }
    let peer = match what {
        Accepted::Ours(name) => {
            table::set(new, Entry::Instance(name));
            rows::row(name).map(|row| row.address(false).to_vec())
        }
        Accepted::Kernel => kernel::address(libc::SYS_getpeername, new).ok(),
    };
    // SAFETY: as libc's.
    unsafe { put_address(&peer.unwrap_or_default(), from, len) };
    new
}

/// A connection that is there.
fn accepted(fd: c_int, listener: Name) -> Result<(c_int, Accepted), c_int> {
    // Without a number for it the connection would be lost on its way.
    let number = kernel::again(fd)? as c_int;
    kernel::close(number);
    let mut message = [0; Accepted::BYTES];
    let passed = loop {
        match passing::receive(kernel::borrow(fd), &mut message, RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            // It is filled, which its instance left unread.
            Err(Errno::CONNRESET) => break None,
            Err(error) => return Err(error.raw_os_error()),
            Ok(passed) => break Some(passed).filter(|passed| passed.len > 0),
        }
    };
    let Some(mut passed) = passed else {
        return Err(match is_shut(listener) {
            true => libc::EINVAL,
            false => {
                lost();
                let _ = lock::with(|state| state.silence(fd));
                libc::ENETDOWN
            }
        });
    };
    match (Accepted::from_bytes(message), passed.fds.pop()) {
        (Some(what), Some(new)) => Ok((new.into_raw_fd(), what)),
        // Another thread took the last number.
        _ if passed.cut => Err(libc::EMFILE),
        _ => Err(libc::ECONNABORTED),
    }
}

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
    unsafe { put_address(known, into, len) };
    0
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
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {}
        _ if options::parse(level, option, &[]).is_ok() => {}
        (libc::SOL_SOCKET, _) => return None,
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
        Some(Ok(value)) => done(unsafe { put_option(&value, into, len) }) as c_int,
        Some(Err(error)) => fail(error) as c_int,
        // SAFETY: as libc's.
        None => unsafe { real::getsockopt(fd, level, option, into, len) },
    }
}

/// `None`: the kernel's to do.
pub fn setsockopt(name: Name, level: c_int, option: c_int, value: &[u8]) -> Option<c_int> {
    let one_byte = [libc::IPPROTO_IP, libc::IPPROTO_IPV6].contains(&level);
    if value.len() < 4 && !one_byte && option != libc::TCP_CONGESTION {
        return Some(fail(libc::EINVAL) as c_int);
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

pub fn shutdown(fd: c_int, name: Name, how: c_int) -> c_int {
    match rows::state(name).phase {
        Phase::Bound => return fail(libc::ENOTCONN) as c_int,
        // It has ended already.
        _ if rows::state(name).errno != 0 => return fail(libc::ENOTCONN) as c_int,
        Phase::Listening | Phase::Connecting | Phase::Connected | Phase::Free => {}
    }
    if how == libc::SHUT_RD || how == libc::SHUT_RDWR {
        let _ = lock::with(|state| {
            let instance = state.instance.as_mut();
            instance.is_some_and(|instance| instance.shut.insert(name))
        });
    }
    // SAFETY: as libc's.
    unsafe { real::shutdown(fd, how) }
}

/// SIOCOUTQ and SIOCOUTQNSD. `None`: the kernel's to answer.
///
/// # Safety
/// As libc's ioctl.
pub unsafe fn ioctl(name: Name, request: libc::c_ulong, at: *mut c_int) -> Option<c_int> {
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
            let message = super::memory::get(at);
            if (message.cmsg_level, message.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = message.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let data: *const c_int = libc::CMSG_DATA(at).cast();
                fds.extend(
                    (0..bytes / size_of::<c_int>()).map(|n| super::memory::get(data.add(n))),
                );
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    if !fds.is_empty() {
        let _ = lock::with(|state| state.recognize(&fds));
    }
}
