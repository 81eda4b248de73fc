//! What packetdrill calls. All pointers come from packetdrill, which passes what the call of the same name in libc
//! would take: each SAFETY comment "as libc's" says that.
use super::memory::{address, gather, is_nowhere, put, put_address, room, scatter};
use crate::calls::{self as safe, Result};
use crate::options;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, sockaddr, socklen_t};

fn done(result: Result<i64>) -> isize {
    result.map_or_else(
        |errno| {
            Errno::set_raw(errno);
            -1
        },
        |value| value as isize,
    )
}

pub unsafe extern "C" fn free(_: *mut c_void) {}

pub unsafe extern "C" fn socket(
    _: *mut c_void,
    domain: c_int,
    kind: c_int,
    _protocol: c_int,
) -> c_int {
    done(safe::socket(domain, kind)) as c_int
}

pub unsafe extern "C" fn bind(
    _: *mut c_void,
    fd: c_int,
    local: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: as libc's.
    let local = unsafe { address(local, len) };
    let local = local.and_then(|local| local.ok_or(libc::EAFNOSUPPORT));
    done(local.and_then(|local| safe::bind(fd, local))) as c_int
}

pub unsafe extern "C" fn listen(_: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    done(safe::listen(fd, backlog)) as c_int
}

pub unsafe extern "C" fn accept(
    _: *mut c_void,
    fd: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    let accepted = safe::accept(fd).map(|(fd, peer)| {
        // SAFETY: as libc's.
        unsafe { put_address(peer, from, len) };
        fd
    });
    done(accepted) as c_int
}

pub unsafe extern "C" fn connect(
    _: *mut c_void,
    fd: c_int,
    peer: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: as libc's.
    let peer = unsafe { address(peer, len) };
    done(peer.and_then(|peer| safe::connect(fd, peer))) as c_int
}

pub unsafe extern "C" fn read(_: *mut c_void, fd: c_int, into: *mut c_void, count: usize) -> isize {
    // SAFETY: as libc's.
    unsafe { recv(std::ptr::null_mut(), fd, into, count, 0) }
}

pub unsafe extern "C" fn readv(
    _: *mut c_void,
    fd: c_int,
    vectors: *const libc::iovec,
    count: c_int,
) -> isize {
    // SAFETY: as libc's.
    unsafe { receive_vectors(fd, vectors, count as usize, 0) }
}

unsafe fn receive_vectors(
    fd: c_int,
    vectors: *const libc::iovec,
    count: usize,
    flags: c_int,
) -> isize {
    // SAFETY: as libc's.
    let mut bytes = vec![0; unsafe { room(vectors, count) }];
    let read = safe::receive(fd, &mut bytes, flags);
    if let Ok(length) = read {
        // SAFETY: as libc's.
        unsafe { scatter(&bytes[..bytes.len().min(length as usize)], vectors, count) };
    }
    done(read)
}

pub unsafe extern "C" fn recv(
    _: *mut c_void,
    fd: c_int,
    into: *mut c_void,
    count: usize,
    flags: c_int,
) -> isize {
    // With MSG_TRUNC the buffer may be null.
    if flags & libc::MSG_TRUNC == 0 && is_nowhere(into) {
        return done(Err(libc::EFAULT));
    }
    let mut bytes = vec![0; count];
    let read = safe::receive(fd, &mut bytes, flags);
    if let Ok(length) = read
        && flags & libc::MSG_TRUNC == 0
    {
        // SAFETY: as libc's: `count` bytes, of which `length` are written.
        unsafe {
            into.cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), length as usize)
        };
    }
    done(read)
}

pub unsafe extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    into: *mut c_void,
    count: usize,
    flags: c_int,
    _from: *mut sockaddr,
    _len: *mut socklen_t,
) -> isize {
    // SAFETY: as libc's. TCP leaves the address alone.
    unsafe { recv(userdata, fd, into, count, flags) }
}

pub unsafe extern "C" fn recvmsg(
    _: *mut c_void,
    fd: c_int,
    message: *mut libc::msghdr,
    flags: c_int,
) -> isize {
    // SAFETY: as libc's.
    unsafe {
        let read = receive_vectors(fd, (*message).msg_iov, (*message).msg_iovlen, flags);
        match safe::inq(fd) {
            Some(inq) if read >= 0 => put_inq(message, inq),
            _ => (*message).msg_controllen = 0,
        }
        (*message).msg_flags = 0;
        read
    }
}

/// TCP_CM_INQ: how much is left to read.
unsafe fn put_inq(message: *mut libc::msghdr, inq: u32) {
    const TCP_CM_INQ: c_int = 36;
    // SAFETY: libc's macros on a message header that packetdrill prepared with room for the control message.
    unsafe {
        let space = libc::CMSG_SPACE(4) as usize;
        if (*message).msg_controllen < space {
            return;
        }
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = libc::IPPROTO_TCP;
        (*header).cmsg_type = TCP_CM_INQ;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<u32>().write_unaligned(inq);
        (*message).msg_controllen = space;
    }
}

pub unsafe extern "C" fn write(
    _: *mut c_void,
    fd: c_int,
    bytes: *const c_void,
    count: usize,
) -> isize {
    // SAFETY: as libc's.
    unsafe { send(std::ptr::null_mut(), fd, bytes, count, 0) }
}

pub unsafe extern "C" fn writev(
    _: *mut c_void,
    fd: c_int,
    vectors: *const libc::iovec,
    count: c_int,
) -> isize {
    // SAFETY: as libc's.
    let bytes = unsafe { gather(vectors, count as usize) };
    done(safe::send(fd, &bytes, 0))
}

pub unsafe extern "C" fn send(
    _: *mut c_void,
    fd: c_int,
    bytes: *const c_void,
    count: usize,
    flags: c_int,
) -> isize {
    if is_nowhere(bytes) {
        return done(Err(libc::EFAULT));
    }
    // SAFETY: as libc's.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) };
    done(safe::send(fd, bytes, flags))
}

pub unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    bytes: *const c_void,
    count: usize,
    flags: c_int,
    _peer: *const sockaddr,
    _len: socklen_t,
) -> isize {
    const MSG_FASTOPEN: c_int = 0x2000_0000;
    if flags & MSG_FASTOPEN != 0 {
        return done(Err(libc::EOPNOTSUPP));
    }
    // SAFETY: as libc's. TCP ignores the address of a connected socket.
    unsafe { send(userdata, fd, bytes, count, flags) }
}

pub unsafe extern "C" fn sendmsg(
    _: *mut c_void,
    fd: c_int,
    message: *const libc::msghdr,
    flags: c_int,
) -> isize {
    // SAFETY: as libc's.
    let bytes = unsafe { gather((*message).msg_iov, (*message).msg_iovlen) };
    done(safe::send(fd, &bytes, flags))
}

pub unsafe extern "C" fn fcntl(_: *mut c_void, fd: c_int, command: c_int, value: usize) -> c_int {
    done(safe::fcntl(fd, command, value as c_int)) as c_int
}

pub unsafe extern "C" fn ioctl(
    _: *mut c_void,
    fd: c_int,
    request: libc::c_ulong,
    value: *mut c_int,
) -> c_int {
    let result = safe::ioctl(fd, request).map(|number| {
        // SAFETY: as libc's; all requests that succeed write one int.
        unsafe { value.write(number as c_int) };
        0
    });
    done(result) as c_int
}

pub unsafe extern "C" fn close(_: *mut c_void, fd: c_int) -> c_int {
    done(safe::close(fd)) as c_int
}

pub unsafe extern "C" fn shutdown(_: *mut c_void, fd: c_int, how: c_int) -> c_int {
    done(safe::shutdown(fd, how)) as c_int
}

pub unsafe extern "C" fn getsockopt(
    _: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let result = options::get(fd, level, name).map(|bytes| {
        // SAFETY: as libc's.
        unsafe { put(&bytes, value.cast(), len) };
        0
    });
    done(result) as c_int
}

pub unsafe extern "C" fn setsockopt(
    _: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    if value.is_null() {
        return done(Err(libc::EFAULT)) as c_int;
    }
    // SAFETY: as libc's.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len as usize) };
    done(options::set(fd, level, name, value)) as c_int
}

pub unsafe extern "C" fn poll(
    _: *mut c_void,
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: as libc's.
    let fds = unsafe { std::slice::from_raw_parts_mut(fds, count as usize) };
    done(safe::poll(fds, timeout)) as c_int
}

pub unsafe extern "C" fn epoll_create(_: *mut c_void, _size: c_int) -> c_int {
    done(safe::epoll_create()) as c_int
}

pub unsafe extern "C" fn epoll_ctl(
    _: *mut c_void,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *const libc::epoll_event,
) -> c_int {
    let (events, data) = if event.is_null() {
        // EPOLL_CTL_DEL.
        (0, 0)
    } else {
        // SAFETY: as libc's: not null, so it points to an event; the structure is packed and read by value.
        unsafe { ((*event).events, (*event).u64) }
    };
    done(safe::epoll_ctl(epoll, operation, fd, events, data)) as c_int
}

pub unsafe extern "C" fn epoll_wait(
    _: *mut c_void,
    epoll: c_int,
    into: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let found = safe::epoll_wait(epoll, most.max(0) as usize, timeout).map(|found| {
        for (index, (events, data)) in found.iter().enumerate() {
            let event = libc::epoll_event {
                events: *events,
                u64: *data,
            };
            // SAFETY: as libc's: there are no more than `most`.
            unsafe { into.add(index).write(event) };
        }
        found.len() as i64
    });
    done(found) as c_int
}

pub unsafe extern "C" fn pipe(_: *mut c_void, _fds: *mut c_int) -> c_int {
    done(Err(libc::ENOSYS)) as c_int
}

pub unsafe extern "C" fn splice(
    _: *mut c_void,
    _from: c_int,
    _from_offset: *mut i64,
    _to: c_int,
    _to_offset: *mut i64,
    _count: usize,
    _flags: u32,
) -> isize {
    done(Err(libc::ENOSYS))
}
