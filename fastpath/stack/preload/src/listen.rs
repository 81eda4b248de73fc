//! listen: on an address of the stack, or on every address, of the stack and of the kernel.
use crate::description::{Description, Kind, Undecided};
use crate::kernel;
use crate::policy;
use crate::say::trace;
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{SocketError, SocketKind, TcpState};
use nix::libc;

impl State {
    pub fn listen(&mut self, index: u32, fd: i32, backlog: i32) -> Step {
        let Some(description) = self.description(index) else {
            return Step::Pass;
        };
        match &description.kind {
            Kind::Epoll(_) => Step::Pass,
            Kind::Socket(socket) if socket.kind == SocketKind::Udp => Step::Pass,
            Kind::Socket(socket) => {
                let (id, kernel_too) = (socket.id, socket.kernel_too);
                if kernel_too {
                    let _ = kernel::listen(fd, backlog);
                }
                let listening = self.own().and_then(|stack| {
                    let backlog = backlog.max(0) as u32;
                    stack.engine.listen(id, backlog).map_err(SocketError::errno)
                });
                if listening.is_ok()
                    && let Some(socket) = self
                        .description_mut(index)
                        .and_then(Description::socket_mut)
                {
                    socket.listening = true;
                }
                Step::of(listening)
            }
            Kind::Undecided(undecided) if undecided.kind == SocketKind::Udp => Step::Pass,
            Kind::Undecided(undecided) => {
                let undecided = undecided.clone();
                if self.is_kernels_listener(fd) {
                    trace(|| format!("fd {fd}: listen on every address: kernel"));
                    self.leave_to_kernel(index);
                    return Step::Pass;
                }
                Step::of(self.listen_everywhere(index, fd, backlog, &undecided))
            }
        }
    }

    /// Without bind(2) it has no port that a rule could name.
    fn is_kernels_listener(&self, fd: i32) -> bool {
        let local = kernel::address(libc::SYS_getsockname, fd);
        let local = local.and_then(|bytes| address::from_bytes(&bytes));
        matches!(local, Ok(Some(local)) if policy::is_kernels(&self.handed, SocketKind::Tcp, local))
    }

    /// It may have been shut down since.
    pub fn listens(&self, index: u32) -> bool {
        let socket = self.description(index).and_then(Description::socket);
        let Some(socket) = socket.filter(|socket| socket.listening) else {
            return false;
        };
        let stack = self.stack.as_ref();
        let info = stack.map(|stack| stack.engine.tcp_info(now(), socket.id));
        !matches!(info, Some(Ok(info)) if info.state != TcpState::Listen)
    }

    fn listen_everywhere(
        &mut self,
        index: u32,
        fd: i32,
        backlog: i32,
        undecided: &Undecided,
    ) -> Result<(), i32> {
        let kernel_too = !self.handed.policy.wildcard_is_stack;
        // Before anything is done that cannot be undone.
        if self.instance.is_none() {
            self.own()?;
        }
        if kernel_too {
            self.settled(|| kernel::listen(fd, backlog))?;
            // accept asks it without waiting.
            let flags = kernel::fcntl(fd, libc::F_GETFL, 0)? as i32;
            kernel::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)?;
        } else if !undecided.bound {
            let any = match undecided.ipv6 {
                false => std::net::Ipv4Addr::UNSPECIFIED.into(),
                true => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            let any = std::net::SocketAddr::new(any, 0);
            let any = address::to_bytes(any);
            self.settled(|| kernel::bind(fd, &any))?;
        }
        if self.instance.is_some() {
            return self.listen_there(index, undecided, (fd, backlog), kernel_too);
        }
        let id = self.take_over(index, undecided)?;
        self.bind_as_kernel(fd, id, undecided.ipv6)?;
        let stack = self.own()?;
        let backlog = backlog.max(0) as u32;
        stack
            .engine
            .listen(id, backlog)
            .map_err(SocketError::errno)?;
        if let Some(socket) = self
            .description_mut(index)
            .and_then(Description::socket_mut)
        {
            socket.listening = true;
            socket.kernel_too = kernel_too;
        }
        if kernel_too {
            self.kernel_too.push(index);
        }
        trace(|| {
            let whose = if kernel_too {
                "stack and kernel"
            } else {
                "stack"
            };
            format!("fd {fd}: listen on every address: {whose}")
        });
        Ok(())
    }
}
