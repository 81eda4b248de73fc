//! What requests of all kinds have in common.
use super::wire::{OptionSet, Response};
use crate::sockets::Sockets;
use hopscope_stack_abi::options;
use hopscope_stack_engine::{SocketError, SocketId};
use nix::sys::epoll::EpollFlags;
use std::os::fd::OwnedFd;

pub(super) type Answer = Result<(Response, Option<OwnedFd>), i32>;

pub(super) fn errno(error: SocketError) -> i32 {
    error.errno()
}

/// Told of once each, until it changes again.
pub(super) const EDGES: EpollFlags = EpollFlags::EPOLLIN
    .union(EpollFlags::EPOLLOUT)
    .union(EpollFlags::EPOLLRDHUP)
    .union(EpollFlags::EPOLLET);

pub(super) fn set_all(sockets: &mut Sockets<'_>, id: SocketId, all: &[OptionSet]) {
    for (level, name, value) in all {
        if let Ok(option) = options::parse(*level, *name, value) {
            // What the engine does not take was taken by the kernel's socket, which the program had until here.
            let _ = sockets.engine.set_option(sockets.now, id, option);
        }
    }
}
