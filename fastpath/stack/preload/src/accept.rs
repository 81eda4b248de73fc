//! accept: a connection of the engine's listener, in a descriptor of the kernel's; or one of the kernel's own.
use crate::description::{Description, Kind, Socket, Times};
use crate::kernel;
use crate::sleeper::watch;
use crate::state::State;
use crate::step::Step;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{SocketError, SocketKind};
use nix::libc;

impl State {
    /// `from` becomes the peer's sockaddr.
    pub fn accept(&mut self, index: u32, fd: i32, flags: i32, from: &mut Vec<u8>) -> Step {
        let Some(description) = self.description(index) else {
            return Step::Pass;
        };
        let (nonblocking, kind) = (description.nonblocking, &description.kind);
        let Kind::Socket(socket) = kind else {
            return Step::Pass;
        };
        if socket.kind == SocketKind::Udp {
            return Step::Fail(libc::EOPNOTSUPP);
        }
        let (id, ipv6, times) = (socket.id, socket.ipv6, socket.times);
        let (kernel_too, kernel_first) = (socket.kernel_too, socket.kernel_first);
        if let Some(socket) = self
            .description_mut(index)
            .and_then(Description::socket_mut)
        {
            socket.kernel_first = kernel_too && !kernel_first;
        }
        if kernel_too
            && kernel_first
            && let Some(accepted) = accept_of_kernel(fd, flags, from)
        {
            return accepted;
        }
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Step::Fail(error),
        };
        if stack
            .engine
            .readiness(id)
            .is_ok_and(|readiness| readiness.readable)
        {
            let domain = if ipv6 { libc::AF_INET6 } else { libc::AF_INET };
            let kind = libc::SOCK_STREAM | flags & (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
            // First: without a descriptor the connection stays where it is.
            let new = match kernel::socket(domain, kind, 0) {
                Ok(new) => new as i32,
                Err(error) => return Step::Fail(error),
            };
            let accepted = match stack.engine.accept(id) {
                Ok(accepted) => accepted,
                Err(error) => {
                    kernel::close(new);
                    return Step::Fail(error.errno());
                }
            };
            let nonblocking = flags & libc::SOCK_NONBLOCK != 0;
            return self.accepted(new, (ipv6, times, nonblocking), accepted, from);
        }
        // Not listening: the engine says so.
        if let Err(error) = stack
            .engine
            .accept(id)
            .map(drop)
            .map_err(SocketError::errno)
            && error != libc::EAGAIN
        {
            return Step::Fail(error);
        }
        if kernel_too
            && !kernel_first
            && let Some(accepted) = accept_of_kernel(fd, flags, from)
        {
            return accepted;
        }
        Step::Block {
            now: nonblocking,
            span: times.receive,
            partial: 0,
            otherwise: libc::EAGAIN,
            kernel: kernel_too.then_some(fd),
        }
    }

    fn accepted(
        &mut self,
        fd: i32,
        (ipv6, times, nonblocking): (bool, Times, bool),
        (id, peer): (hopscope_stack_engine::SocketId, std::net::SocketAddr),
        from: &mut Vec<u8>,
    ) -> Step {
        let socket = Socket::new(id, SocketKind::Tcp, ipv6, times);
        let description = Description::new(Kind::Socket(socket), nonblocking);
        let Some(index) = self.describe(fd, description) else {
            kernel::close(fd);
            return Step::Fail(libc::EMFILE);
        };
        if let Some(stack) = self.owned_stack() {
            let _ = stack.engine.set_token(id, u64::from(index) + 1);
        }
        self.together.add_event();
        *from = address::to_bytes(peer);
        Step::Done(fd.into())
    }
}

/// `None`: it has no connection now.
fn accept_of_kernel(fd: i32, flags: i32, from: &mut Vec<u8>) -> Option<Step> {
    let mut fds = [watch(fd, libc::POLLIN)];
    if kernel::poll_now(&mut fds) != Ok(1) {
        return None;
    }
    match kernel::accept(fd, flags) {
        Ok(new) => {
            *from = kernel::address(libc::SYS_getpeername, new as i32).unwrap_or_default();
            Some(Step::Done(new))
        }
        Err(libc::EAGAIN) => None,
        Err(error) => Some(Step::Fail(error)),
    }
}
