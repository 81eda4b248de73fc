//! A listener of a program: what the engine accepts is pushed, each with a descriptor, to the pair of sockets from whose other end
//! the program's processes accept. Each message has one taker.
use super::passing;
use super::wire::{Accepted, Name};
use hopscope_stack_engine::SocketId;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with};
use std::os::fd::{AsFd, OwnedFd};

pub struct Listener {
    pub id: SocketId,
    pub name: Name,
    pub ipv6: bool,
    pub pair: OwnedFd,
    /// The kernel's on the same port.
    pub kernel: Option<OwnedFd>,
    pub kernel_ready: bool,
    /// The pair takes more.
    room: bool,
    /// Something is missing that no event tells of: it is looked at again after a while.
    stuck: bool,
    /// Accepted, and not taken by the pair.
    held: Option<(Accepted, OwnedFd)>,
}

impl Listener {
    pub fn new(id: SocketId, name: Name, ipv6: bool, pair: OwnedFd) -> Listener {
        Listener {
            id,
            name,
            ipv6,
            pair,
            kernel: None,
            kernel_ready: false,
            room: true,
            stuck: false,
            held: None,
        }
    }

    /// Accepted, and not taken by the pair.
    pub fn held(&self) -> Option<&(Accepted, OwnedFd)> {
        self.held.as_ref()
    }

    /// It does not listen any more: its pair, and the kernel's listener.
    pub fn into_ends(self) -> (OwnedFd, Option<OwnedFd>) {
        (self.pair, self.kernel)
    }

    /// There is room again; true: for another one.
    pub fn has_room(&mut self) -> bool {
        self.room = true;
        match self.held.take() {
            Some((what, fd)) => self.push(what, fd),
            None => true,
        }
    }

    pub fn can_push(&self) -> bool {
        self.room
    }

    /// No event says when it can go on.
    pub fn is_stuck(&mut self) -> bool {
        std::mem::take(&mut self.stuck)
    }

    /// True: another one may follow.
    pub fn push(&mut self, what: Accepted, fd: OwnedFd) -> bool {
        let sent = passing::send(
            &self.pair,
            &what.to_bytes(),
            &[fd.as_fd()],
            SendFlags::DONTWAIT,
        );
        match sent {
            Ok(_) => true,
            // ETOOMANYREFS: as many descriptors are on their way as one user may have (unix(7)).
            Err(error @ (Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS)) => {
                self.room = false;
                self.stuck = error != Errno::AGAIN;
                self.held = Some((what, fd));
                false
            }
            // Nobody listens any more: the descriptor is closed, and with it the connection.
            Err(_) => {
                self.room = false;
                false
            }
        }
    }

    /// Connections of the kernel's listener, as they are.
    pub fn accept_from_kernel(&mut self) {
        while let (true, true, Some(kernel)) = (self.room, self.kernel_ready, &self.kernel) {
            // The program has it, too, and may have made it wait.
            let flags = fcntl(kernel, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
            let set =
                flags.map(|flags| fcntl(kernel, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)));
            match (set, accept_with(kernel, SocketFlags::CLOEXEC)) {
                (Ok(Ok(_)), Ok(fd)) => drop(self.push(Accepted::Kernel, fd)),
                (_, Err(Errno::INTR | Errno::CONNABORTED)) => {}
                (Ok(Ok(_)), Err(Errno::AGAIN)) => self.kernel_ready = false,
                // No descriptor, or no memory: they stay in the kernel's queue.
                _ => {
                    self.stuck = true;
                    return;
                }
            }
        }
    }
}
