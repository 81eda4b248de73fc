//! The socket calls on descriptors. Failures are errno.
use crate::blocking::shared;
use crate::descriptors::{Descriptor, Socket};
use crate::epoll::Epoll;
use crate::stack::Stack;
use hopscope_stack_abi::readiness::bits;
use hopscope_stack_engine::{
    HowToShut, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketKind,
};
use nix::libc;
use std::net::SocketAddr;

pub use hopscope_stack_abi::Result;

fn errno(error: SocketError) -> i32 {
    error.errno()
}

pub fn socket(domain: i32, kind: i32) -> Result<i64> {
    let ipv6 = match domain {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return Err(libc::EAFNOSUPPORT),
    };
    let engine_kind = match kind & 0xff {
        libc::SOCK_STREAM => SocketKind::Tcp,
        libc::SOCK_DGRAM => SocketKind::Udp,
        _ => return Err(libc::EPROTONOSUPPORT),
    };
    shared().call(|stack| {
        let id = stack.engine.socket(engine_kind, ipv6).map_err(errno)?;
        add(stack, id, kind & libc::SOCK_NONBLOCK != 0)
    })
}

fn add(stack: &mut Stack, id: SocketId, nonblocking: bool) -> Result<i64> {
    let socket = Socket {
        id,
        nonblocking,
        inq: false,
    };
    stack
        .descriptors
        .add(Descriptor::Socket(socket))
        .map(i64::from)
}

fn id(stack: &mut Stack, fd: i32) -> Result<SocketId> {
    stack.descriptors.socket(fd).map(|socket| socket.id)
}

pub fn bind(fd: i32, local: SocketAddr) -> Result<i64> {
    shared().call(|stack| {
        let id = id(stack, fd)?;
        stack.engine.bind(id, local).map_err(errno).map(|()| 0)
    })
}

pub fn listen(fd: i32, backlog: i32) -> Result<i64> {
    shared().call(|stack| {
        let id = id(stack, fd)?;
        stack
            .engine
            .listen(id, backlog.max(0) as u32)
            .map_err(errno)
            .map(|()| 0)
    })
}

pub fn accept(fd: i32) -> Result<(i64, SocketAddr)> {
    let nonblocking = |stack: &Stack| stack.descriptors.is_nonblocking(fd);
    shared().call_until(nonblocking, None, |stack| {
        let listener = id(stack, fd)?;
        let (id, from) = stack.engine.accept(listener).map_err(errno)?;
        Ok((add(stack, id, false)?, from))
    })
}

/// Blocking: EINPROGRESS becomes the outcome.
pub fn connect(fd: i32, peer: Option<SocketAddr>) -> Result<i64> {
    let started = shared().call(|stack| {
        let id = id(stack, fd).map_err(Some)?;
        let nonblocking = stack.descriptors.is_nonblocking(fd);
        match stack.engine.connect(stack.now, id, peer).map_err(errno) {
            Err(libc::EINPROGRESS) if !nonblocking => Err(None),
            other => other.map_err(Some),
        }
    });
    match started {
        Ok(()) => return Ok(0),
        Err(Some(error)) => return Err(error),
        Err(None) => {}
    }
    shared().call_until(
        |_| false,
        None,
        |stack| {
            let id = id(stack, fd)?;
            let readiness = stack.engine.readiness(id).map_err(errno)?;
            if let Some(error) = stack.engine.take_error(id).map_err(errno)? {
                return Err(error.errno());
            }
            if readiness.writable {
                Ok(0)
            } else {
                Err(libc::EAGAIN)
            }
        },
    )
}

pub fn receive(fd: i32, into: &mut [u8], flags: i32) -> Result<i64> {
    let nonblocking =
        |stack: &Stack| flags & libc::MSG_DONTWAIT != 0 || stack.descriptors.is_nonblocking(fd);
    let how = RecvFlags {
        peek: flags & libc::MSG_PEEK != 0,
        truncate: flags & libc::MSG_TRUNC != 0,
    };
    let mut filled = 0;
    shared().call_until(nonblocking, None, |stack| {
        let id = id(stack, fd)?;
        let read = stack.engine.recv(stack.now, id, &mut into[filled..], how);
        match read.map_err(errno) {
            Ok(count)
                if flags & libc::MSG_WAITALL != 0 && count > 0 && filled + count < into.len() =>
            {
                filled += count;
                Err(libc::EAGAIN)
            }
            Ok(count) => Ok((filled + count) as i64),
            Err(libc::EAGAIN) if filled > 0 && nonblocking(stack) => Ok(filled as i64),
            Err(error) => Err(error),
        }
    })
}

/// Bytes that are left after a recvmsg of a socket with TCP_INQ; one at the end of the stream (Linux tcp_inq_hint).
pub fn inq(fd: i32) -> Option<u32> {
    shared().call(|stack| {
        let socket = stack.descriptors.socket(fd).ok()?;
        if !socket.inq {
            return None;
        }
        let id = socket.id;
        let unread = stack.engine.unread_bytes(id).ok()?;
        let ended = stack.engine.readiness(id).ok()?.read_hangup;
        Some(unread.max(u32::from(ended)))
    })
}

/// Blocking: all bytes are taken.
pub fn send(fd: i32, bytes: &[u8], flags: i32) -> Result<i64> {
    let nonblocking =
        |stack: &Stack| flags & libc::MSG_DONTWAIT != 0 || stack.descriptors.is_nonblocking(fd);
    let how = SendFlags {
        more: flags & libc::MSG_MORE != 0,
    };
    let mut taken = 0;
    shared().call_until(nonblocking, None, |stack| {
        let id = id(stack, fd)?;
        loop {
            let sent = stack.engine.send(stack.now, id, &bytes[taken..], how);
            match sent.map_err(errno) {
                Ok(count) => taken += count,
                Err(_) if taken > 0 && nonblocking(stack) => return Ok(taken as i64),
                Err(libc::EAGAIN) => return Err(libc::EAGAIN),
                Err(_) if taken > 0 => return Ok(taken as i64),
                Err(error) => return Err(error),
            }
            if taken >= bytes.len() {
                return Ok(taken as i64);
            }
        }
    })
}

pub fn fcntl(fd: i32, command: i32, value: i32) -> Result<i64> {
    shared().call(|stack| {
        let socket = stack.descriptors.socket(fd)?;
        match command {
            libc::F_GETFL => {
                let extra = if socket.nonblocking {
                    libc::O_NONBLOCK
                } else {
                    0
                };
                Ok(i64::from(libc::O_RDWR | extra))
            }
            libc::F_SETFL => {
                socket.nonblocking = value & libc::O_NONBLOCK != 0;
                Ok(0)
            }
            _ => Err(libc::EINVAL),
        }
    })
}

/// FIONREAD, SIOCOUTQ, SIOCOUTQNSD.
pub fn ioctl(fd: i32, request: u64) -> Result<u32> {
    const SIOCOUTQNSD: u64 = 0x894b;
    shared().call(|stack| {
        let id = id(stack, fd)?;
        match request {
            libc::FIONREAD => stack.engine.unread_bytes(id).map_err(errno),
            libc::TIOCOUTQ => stack
                .engine
                .unacknowledged_bytes(id)
                .map(|(all, _)| all)
                .map_err(errno),
            SIOCOUTQNSD => stack
                .engine
                .unacknowledged_bytes(id)
                .map(|(_, unsent)| unsent)
                .map_err(errno),
            _ => Err(libc::ENOTTY),
        }
    })
}

pub fn close(fd: i32) -> Result<i64> {
    shared().call(|stack| {
        if let Descriptor::Socket(socket) = stack.descriptors.remove(fd)? {
            for epoll in stack.descriptors.epolls() {
                epoll.forget(socket.id);
            }
            stack.engine.close(stack.now, socket.id).map_err(errno)?;
        }
        Ok(0)
    })
}

pub fn shutdown(fd: i32, how: i32) -> Result<i64> {
    let how = match how {
        libc::SHUT_RD => HowToShut::Read,
        libc::SHUT_WR => HowToShut::Write,
        libc::SHUT_RDWR => HowToShut::Both,
        _ => return Err(libc::EINVAL),
    };
    shared().call(|stack| {
        let id = id(stack, fd)?;
        stack
            .engine
            .shutdown(stack.now, id, how)
            .map_err(errno)
            .map(|()| 0)
    })
}

fn readiness(stack: &Stack, id: SocketId) -> u32 {
    stack
        .engine
        .readiness(id)
        .map_or(libc::EPOLLHUP as u32, bits)
}

/// A negative timeout, in ms, is none.
fn limit(timeout: i32) -> Option<Ns> {
    u64::try_from(timeout).ok().map(Ns::from_ms)
}

pub fn poll(fds: &mut [libc::pollfd], timeout: i32) -> Result<i64> {
    let result = shared().call_until(
        |_| timeout == 0,
        limit(timeout),
        |stack| {
            let mut ready = 0;
            for poll in fds.iter_mut() {
                let always = libc::POLLERR | libc::POLLHUP;
                poll.revents = match stack.descriptors.socket(poll.fd).map(|socket| socket.id) {
                    Ok(id) => readiness(stack, id) as i16 & (poll.events | always),
                    Err(_) => libc::POLLNVAL,
                };
                ready += i64::from(poll.revents != 0);
            }
            if ready > 0 {
                Ok(ready)
            } else {
                Err(libc::EAGAIN)
            }
        },
    );
    result.or_else(|error| {
        if error == libc::EAGAIN {
            Ok(0)
        } else {
            Err(error)
        }
    })
}

pub fn epoll_create() -> Result<i64> {
    shared().call(|stack| {
        stack
            .descriptors
            .add(Descriptor::Epoll(Epoll::default()))
            .map(i64::from)
    })
}

pub fn epoll_ctl(epoll: i32, operation: i32, fd: i32, events: u32, data: u64) -> Result<i64> {
    shared().call(|stack| {
        let id = id(stack, fd)?;
        stack
            .descriptors
            .epoll(epoll)?
            .control(operation, fd, id, events, data)
    })
}

pub fn epoll_wait(fd: i32, most: usize, timeout: i32) -> Result<Vec<(u32, u64)>> {
    let result = shared().call_until(
        |_| timeout == 0,
        limit(timeout),
        |stack| {
            let mut epoll = std::mem::take(stack.descriptors.epoll(fd)?);
            let found = epoll.harvest(most, |id| readiness(stack, id));
            *stack.descriptors.epoll(fd)? = epoll;
            if found.is_empty() {
                Err(libc::EAGAIN)
            } else {
                Ok(found)
            }
        },
    );
    result.or_else(|error| {
        if error == libc::EAGAIN {
            Ok(Vec::new())
        } else {
            Err(error)
        }
    })
}
