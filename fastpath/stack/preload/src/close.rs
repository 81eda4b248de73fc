//! close, shutdown, and the end of the process.
use crate::description::{Description, Kind};
use crate::kernel;
use crate::say::{say, trace};
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use crate::table::{self, Entry};
use hopscope_stack_engine::{
    HowToShut, Linger, Ns, SocketError, SocketId, SocketKind, SocketOption, TcpState,
};
use nix::libc;

/// How long a process that ends waits until its peers have acknowledged what it sent.
const FAREWELL: Ns = Ns::from_ms(5_000);

impl State {
    /// The descriptor is gone; with the last one, what it named. The caller closes the kernel's.
    pub fn unname(&mut self, fd: i32) {
        let Some(index) = self.index_of(fd) else {
            return;
        };
        table::set(fd, Entry::Kernel);
        let Some(description) = self.description_mut(index) else {
            return;
        };
        description.fds.retain(|other| *other != fd);
        if description.fds.is_empty() && description.pins == 0 {
            self.end(index);
        }
    }

    pub fn end(&mut self, index: u32) {
        let Some(description) = self.forget(index) else {
            return;
        };
        for (set, place) in description.watchers {
            if let Some(Description {
                kind: Kind::Epoll(found),
                ..
            }) = self.description_mut(set)
            {
                found.remove(place);
            }
            self.rename(set);
        }
        self.forget_kernel_part(index);
        match description.kind {
            Kind::Undecided(_) => {}
            Kind::Socket(socket) => {
                if let Some(pieces) = socket.pieces.closed() {
                    self.together.set_usual(pieces);
                }
                if let Some(stack) = self.owned_stack() {
                    let _ = stack.engine.close(now(), socket.id);
                    if !self.closed_some(index) {
                        self.flush();
                    }
                    self.mind_the_leader();
                }
            }
            Kind::Epoll(set) => {
                for (place, interest) in set.interests() {
                    if let Some(watched) = self.description_mut(interest.description) {
                        watched
                            .watchers
                            .retain(|watcher| *watcher != (index, place));
                    }
                }
            }
        }
    }

    /// An epoll set that has no socket of the stack is the kernel's alone, and the other way round.
    pub fn rename(&mut self, set: u32) {
        let Some(description) = self.description(set) else {
            return;
        };
        let Kind::Epoll(found) = &description.kind else {
            return;
        };
        let entry = match found.is_empty() {
            true => Entry::KernelEpoll(set),
            false => Entry::Ours(set),
        };
        for fd in &description.fds {
            table::set(*fd, entry);
        }
    }

    pub fn shutdown(&mut self, index: u32, fd: i32, how: i32) -> Step {
        let how_to = match how {
            libc::SHUT_RD => HowToShut::Read,
            libc::SHUT_WR => HowToShut::Write,
            libc::SHUT_RDWR => HowToShut::Both,
            _ => return Step::Fail(libc::EINVAL),
        };
        let (id, kernel_too) = match self.description_mut(index).map(|d| &mut d.kind) {
            Some(Kind::Socket(socket)) => (socket.id, socket.kernel_too),
            Some(Kind::Undecided(undecided)) if undecided.kind == SocketKind::Udp => {
                undecided.shut = Some(match undecided.shut {
                    Some(before) if before != how_to => HowToShut::Both,
                    _ => how_to,
                });
                let shut = kernel::shutdown(fd, how).map(drop);
                // Though it fails: it counts, and who waits hears of it (inet_shutdown in net/ipv4/af_inet.c).
                self.happened_by_state(index);
                return Step::of(shut);
            }
            // Under the lock: a connect of another thread may put another socket here.
            Some(Kind::Undecided(_)) => return Step::of(kernel::shutdown(fd, how).map(drop)),
            _ => return Step::Pass,
        };
        let shut = self.own().and_then(|stack| {
            stack
                .engine
                .shutdown(now(), id, how_to)
                .map_err(SocketError::errno)
        });
        if kernel_too {
            let _ = kernel::shutdown(fd, how);
        }
        // Whoever waits on it finds that out.
        self.happened_by_state(index);
        Step::of(shut)
    }

    /// SO_LINGER: closing waits until all is acknowledged, so long at most.
    pub fn lingers(&mut self, fd: i32) -> Option<Ns> {
        let index = self.index_of(fd)?;
        let description = self.description(index)?;
        let last = description.fds.len() == 1 && description.pins == 0;
        let id = description
            .socket()
            .filter(|_| last && !description.nonblocking)?
            .id;
        let stack = self.owned_stack()?;
        match stack
            .engine
            .option(id, SocketOption::Linger(Linger::Background))
        {
            Ok(SocketOption::Linger(Linger::Wait(span))) => Some(span),
            _ => None,
        }
    }

    /// Connections that have something to send, or do not know that all has arrived; bytes in buffers.
    fn left(&mut self) -> (usize, u64) {
        let Some(stack) = self.owned_stack() else {
            return (0, 0);
        };
        let unsettled = [TcpState::FinWait1, TcpState::Closing, TcpState::LastAck];
        let rows = stack.engine.connections(now());
        let count = rows.filter(|row| unsettled.contains(&row.state)).count();
        (count, stack.engine.memory_bytes().0)
    }

    /// As the kernel at the end of a process: every connection is closed. What was sent is carried on until it has arrived.
    pub fn farewell(&mut self) {
        if self.owned_stack().is_none() {
            return;
        }
        let open: Vec<SocketId> = self
            .each()
            .filter_map(|(_, description)| description.socket())
            .map(|socket| socket.id)
            .collect();
        for id in open {
            if let Some(stack) = self.owned_stack() {
                let _ = stack.engine.close(now(), id);
            }
        }
        self.carry_on(now() + FAREWELL);
        let (unsettled, buffers) = self.left();
        if unsettled > 0 {
            say(&format!(
                "the program has ended, and {unsettled} connections have not all acknowledged within 5 s: what is left is lost"
            ));
        }
        trace(|| {
            format!("the program has ended: {unsettled} connections, {buffers} bytes in buffers")
        });
    }

    fn carry_on(&mut self, end: Ns) {
        loop {
            self.flush();
            while self.turn() {
                self.flush();
            }
            let (unsettled, _) = self.left();
            let Some(stack) = self.owned_stack().filter(|_| now() < end) else {
                return;
            };
            // Datagrams, too: they wait for a neighbour's address.
            if unsettled == 0 && !stack.engine.has_output() {
                return;
            }
            let due = stack.due().map_or(end, |due| due.min(end));
            let room = if stack.is_full { libc::POLLOUT } else { 0 };
            let Some(port) = stack.wait_fd() else {
                return;
            };
            let mut fds = [crate::sleeper::watch(port, libc::POLLIN | room)];
            let _ = kernel::poll_until(&mut fds, Some(crate::sleeper::span_until(due)));
        }
    }
}
