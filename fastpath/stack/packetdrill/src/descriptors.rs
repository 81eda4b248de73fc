//! Descriptors: real ones of the kernel, because packetdrill closes what is left with libc's close().
use crate::epoll::Epoll;
use hopscope_stack_engine::SocketId;
use nix::libc;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::IntoRawFd;

pub struct Socket {
    pub id: SocketId,
    pub nonblocking: bool,
    /// TCP_INQ: recvmsg tells how much is left.
    pub inq: bool,
}

pub enum Descriptor {
    Socket(Socket),
    Epoll(Epoll),
}

#[derive(Default)]
pub struct Descriptors(HashMap<i32, Descriptor>);

impl Descriptors {
    pub fn add(&mut self, descriptor: Descriptor) -> Result<i32, i32> {
        let file = File::open("/dev/null")
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?;
        let fd = file.into_raw_fd();
        self.0.insert(fd, descriptor);
        Ok(fd)
    }

    /// The kernel's descriptor is free, too.
    pub fn remove(&mut self, fd: i32) -> Result<Descriptor, i32> {
        let descriptor = self.0.remove(&fd).ok_or(libc::EBADF)?;
        let _ = nix::unistd::close(fd);
        Ok(descriptor)
    }

    pub fn socket(&mut self, fd: i32) -> Result<&mut Socket, i32> {
        match self.0.get_mut(&fd) {
            Some(Descriptor::Socket(socket)) => Ok(socket),
            Some(Descriptor::Epoll(_)) => Err(libc::ENOTSOCK),
            None => Err(libc::EBADF),
        }
    }

    pub fn epoll(&mut self, fd: i32) -> Result<&mut Epoll, i32> {
        match self.0.get_mut(&fd) {
            Some(Descriptor::Epoll(epoll)) => Ok(epoll),
            Some(Descriptor::Socket(_)) => Err(libc::EINVAL),
            None => Err(libc::EBADF),
        }
    }

    pub fn is_nonblocking(&self, fd: i32) -> bool {
        matches!(self.0.get(&fd), Some(Descriptor::Socket(socket)) if socket.nonblocking)
    }

    pub fn holds(&self, fd: i32) -> bool {
        self.0.contains_key(&fd)
    }

    pub fn epolls(&mut self) -> impl Iterator<Item = &mut Epoll> {
        self.0
            .values_mut()
            .filter_map(|descriptor| match descriptor {
                Descriptor::Epoll(epoll) => Some(epoll),
                Descriptor::Socket(_) => None,
            })
    }
}
