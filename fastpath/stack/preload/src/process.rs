//! What a process does with its descriptors beside sending and receiving: flags, names, children.
use crate::description::Kind;
use crate::kernel;
use crate::say::once;
use crate::sleep::nobody_sleeps;
use crate::state::State;
use hopscope_stack_engine::{SocketError, SocketKind, TcpState};
use nix::libc;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

static HANDED_ON_SAID: AtomicBool = AtomicBool::new(false);

impl State {
    /// Of a socket.
    pub fn nonblocking(&self, fd: i32) -> Option<bool> {
        let description = self.description(self.index_of(fd)?)?;
        let is_socket = !matches!(description.kind, Kind::Epoll(_));
        is_socket.then_some(description.nonblocking)
    }

    /// True: the kernel's socket listens, too. One of UDP is as the program says: sends go to it as they are.
    pub fn set_nonblocking(&mut self, fd: i32, on: bool) -> bool {
        let Some(index) = self.index_of(fd) else {
            return false;
        };
        let Some(description) = self.description_mut(index) else {
            return false;
        };
        description.nonblocking = on;
        let socket = description.socket();
        socket.is_some_and(|socket| socket.kernel_too && socket.kind == SocketKind::Tcp)
    }

    /// The socket's own address, or its peer's. `None`: the kernel's to answer.
    pub fn address(&mut self, index: u32, own: bool) -> Option<Result<SocketAddr, i32>> {
        let socket = self.description(index)?.socket()?;
        let id = socket.id;
        // What is known of a bound socket holds where another process has the stack, too.
        if let (true, Some(stack)) = (own, &self.stack)
            && let Ok(found) = stack.engine.local_address(id)
        {
            return Some(Ok(found));
        }
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Some(Err(error)),
        };
        let found = match own {
            true => stack.engine.local_address(id),
            false => stack.engine.peer_address(id),
        };
        Some(found.map_err(SocketError::errno))
    }

    /// Its description, while not all that was sent is acknowledged.
    pub fn lingering(&mut self, fd: i32) -> Option<u32> {
        let index = self.index_of(fd)?;
        let id = self.description(index)?.socket()?.id;
        let stack = self.owned_stack()?;
        let (left, _) = stack.engine.unacknowledged_bytes(id).ok()?;
        (left > 0).then_some(index)
    }

    /// Whoever of the two uses a stack next that has no connection goes on with it: a child that serves in its parent's place
    /// does.
    pub fn before_fork(&mut self) {
        if self.together.waits() {
            self.flush();
        }
        let Some(stack) = self.owned_stack() else {
            return;
        };
        let of_nobody = [TcpState::Listen, TcpState::TimeWait, TcpState::Closed];
        let mut rows = stack.engine.connections(crate::stack::now());
        let is_free = rows.all(|row| of_nobody.contains(&row.state));
        drop(rows);
        if is_free {
            self.owner.offer();
        }
    }

    pub fn before_exec(&mut self) {
        if self.together.waits() {
            self.flush();
        }
        let handed_on = self.each().any(|(_, description)| {
            let is_kept = |fd: &i32| matches!(kernel::fcntl(*fd, libc::F_GETFD, 0), Ok(flags) if flags & i64::from(libc::FD_CLOEXEC) == 0);
            description.socket().is_some() && description.fds.iter().any(is_kept)
        });
        if handed_on {
            once(&HANDED_ON_SAID, || {
                "sockets of the stack are handed on to another program, which cannot use them: that needs --mode pipeline".into()
            });
        }
    }

    pub fn forked(&mut self) {
        if let Some(instance) = &mut self.instance {
            instance.forked();
        }
        self.owner.forked();
        self.ticker.forked();
        self.edges.forked();
        self.leader = None;
        self.leader_until = None;
        self.ticker_leads = false;
        // Threads that slept are the parent's.
        self.sleepers.clear();
        nobody_sleeps();
        let asleep: Vec<u32> = self
            .each()
            .filter(|(_, d)| d.pins > 0)
            .map(|(index, _)| index)
            .collect();
        for index in asleep {
            if let Some(description) = self.description_mut(index) {
                description.pins = 0;
                description.sleepers.clear();
                if description.fds.is_empty() {
                    self.end(index);
                }
            }
        }
        // Doorbells are shared with the parent: a ring there would be heard here.
        self.bells.clear();
    }
}
