//! Sockets whose last descriptor is closed, before anybody is told that their port is in use: a program that closes a listener and
//! binds another one is not to be faster than the event.
use super::Programs;
use super::table::Phase;
use crate::sockets::Sockets;
use hopscope_stack_engine::SocketError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::EpollFlags;
use std::os::fd::AsFd;

impl Programs {
    /// `call`, and once more where an address is in use and was not meanwhile.
    pub(super) fn settled<T>(
        &mut self,
        sockets: &mut Sockets<'_>,
        mut call: impl FnMut(&mut Sockets<'_>) -> Result<T, SocketError>,
    ) -> Result<T, SocketError> {
        match call(sockets) {
            Err(SocketError::AddressInUse) => {
                self.settle(sockets);
                call(sockets)
            }
            done => done,
        }
    }

    /// Ends listeners, sockets of UDP, and sockets that are bound and no more, whose programs have closed them.
    pub(super) fn settle(&mut self, sockets: &mut Sockets<'_>) {
        for key in self.listeners.keys() {
            let listener = self.listeners.get(key);
            if listener.is_some_and(|listener| is_hung_up(&listener.pair)) {
                self.end_listener(sockets, key);
            }
        }
        for key in self.connections.keys() {
            if let Some(socket) = self.connections.get(key)
                && socket.phase() == Phase::Bound
                && is_hung_up(socket.pair())
            {
                socket.is_ready(EpollFlags::EPOLLHUP);
                self.serve(sockets, key);
            }
        }
        for key in self.datagrams.keys() {
            if let Some(socket) = self.datagrams.get(key)
                && is_hung_up(socket.pair())
            {
                socket.is_ready(true, false, true);
                self.serve_datagrams(sockets, key);
            }
        }
    }
}

fn is_hung_up(fd: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::empty())];
    let hung_up = |fd: &PollFd| fd.revents().is_some_and(|e| e.contains(PollFlags::POLLHUP));
    poll(&mut fds, PollTimeout::ZERO).is_ok() && hung_up(&fds[0])
}
