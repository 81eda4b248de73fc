//! An end that is a socket of the kernel.
use crate::program::Call;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{self, MsgFlags, Shutdown, sockopt};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

pub fn call(end: &mut Option<TcpStream>, call: Call, sent: &mut u64) -> String {
    let Some(stream) = end else {
        return "closed".into();
    };
    let fd = stream.as_raw_fd();
    match call {
        Call::Send(count) => {
            let bytes = super::wires::bytes(*sent, count);
            match socket::send(fd, &bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
                Ok(count) => {
                    *sent += count as u64;
                    format!("{count}")
                }
                Err(error) => errno(error),
            }
        }
        Call::Recv(count) => recv(fd, count, MsgFlags::MSG_DONTWAIT),
        Call::Peek(count) => recv(fd, count, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK),
        Call::ShutRead => done(socket::shutdown(fd, Shutdown::Read)),
        Call::ShutWrite => done(socket::shutdown(fd, Shutdown::Write)),
        Call::ShutBoth => done(socket::shutdown(fd, Shutdown::Both)),
        Call::Close => {
            *end = None;
            "0".into()
        }
        Call::Reset => {
            let linger = nix::libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            let set = socket::setsockopt(stream, sockopt::Linger, &linger);
            *end = None;
            done(set)
        }
        Call::Error => match socket::getsockopt(stream, sockopt::SocketError) {
            Ok(error) => format!("SO_ERROR {error}"),
            Err(error) => errno(error),
        },
        Call::Poll => readiness(stream),
        Call::Unread => unread(stream),
    }
}

fn recv(fd: i32, count: usize, flags: MsgFlags) -> String {
    let mut into = vec![0; count];
    match socket::recv(fd, &mut into, flags) {
        Ok(count) => super::wires::show(&into[..count]),
        Err(error) => errno(error),
    }
}

fn done(result: nix::Result<()>) -> String {
    match result {
        Ok(()) => "0".into(),
        Err(error) => errno(error),
    }
}

fn errno(error: Errno) -> String {
    format!("errno {}", error as i32)
}

/// By epoll: poll's flags of nix lack POLLRDHUP.
fn readiness(stream: &TcpStream) -> String {
    let asked = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
    let found = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).and_then(|epoll| {
        epoll.add(stream, EpollEvent::new(asked, 0))?;
        let mut events = [EpollEvent::empty()];
        epoll.wait(&mut events, EpollTimeout::ZERO)?;
        Ok(events[0].events())
    });
    let found = match found {
        Ok(found) => found,
        Err(error) => return errno(error),
    };
    super::wires::flags(
        found.contains(EpollFlags::EPOLLIN),
        found.contains(EpollFlags::EPOLLOUT),
        found.contains(EpollFlags::EPOLLRDHUP),
        found.contains(EpollFlags::EPOLLHUP),
        found.contains(EpollFlags::EPOLLERR),
    )
}

fn unread(stream: &TcpStream) -> String {
    match rustix::io::ioctl_fionread(stream) {
        Ok(count) => format!("unread {count}"),
        Err(error) => format!("errno {}", error.raw_os_error()),
    }
}
