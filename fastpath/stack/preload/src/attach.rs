//! Addresses of datagram sockets: bind to every address, connect and its end.
use crate::description::{Description, Kind, Undecided};
use crate::kernel;
use crate::policy;
use crate::say::trace;
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{SocketError, SocketId, SocketKind};
use nix::libc;
use std::net::SocketAddr;

/// Whoever waits looks again, and no more than that.
const NO_EDGE: u32 = 0;
/// Ports that the engine chose and the kernel does not have free.
const TRIES: u32 = 64;

impl State {
    /// In the stack, and in the kernel at the same port, as TCP's listeners.
    pub fn bind_everywhere(
        &mut self,
        index: u32,
        fd: i32,
        local: SocketAddr,
        undecided: &Undecided,
    ) -> Result<(), i32> {
        let both = !self.handed.policy.wildcard_is_stack;
        for _ in 0..TRIES {
            let id = self.take_over(index, undecided)?;
            let bound = self.own().and_then(|stack| {
                let bound = stack.engine.bind(id, local);
                let bound = bound.and_then(|()| stack.engine.local_address(id));
                bound.map_err(SocketError::errno)
            });
            let in_kernel = bound.and_then(|bound| {
                let mut local = local;
                local.set_port(bound.port());
                match both {
                    true => kernel::bind(fd, &address::to_bytes(local)).map(drop),
                    false => Ok(()),
                }
            });
            match in_kernel {
                Ok(()) => {
                    if both {
                        self.everywhere(index, true);
                    }
                    let whose = if both { "stack and kernel" } else { "stack" };
                    trace(|| format!("fd {fd}: bind {local}: {whose}"));
                    return Ok(());
                }
                Err(error) => {
                    self.give_back(index, id, undecided.clone());
                    let again = error == libc::EADDRINUSE && local.port() == 0 && bound.is_ok();
                    if !again {
                        return Err(error);
                    }
                }
            }
        }
        Err(libc::EADDRINUSE)
    }

    pub fn connect_datagram(&mut self, index: u32, fd: i32, bytes: &[u8]) -> Step {
        let Some(description) = self.description(index) else {
            return Step::Pass;
        };
        let peer = address::from_bytes(bytes);
        let (id, everywhere) = match &description.kind {
            Kind::Epoll(_) => return Step::Pass,
            Kind::Socket(socket) => (socket.id, socket.everywhere),
            Kind::Undecided(undecided) => {
                let undecided = undecided.clone();
                let Ok(Some(peer)) = peer else {
                    if peer.is_ok() {
                        self.kernel_disconnects(index, fd);
                    }
                    return Step::Pass;
                };
                if !policy::leads_to(&self.handed, SocketKind::Udp, peer) {
                    trace(|| format!("fd {fd}: connect {peer}: kernel"));
                    self.leave_to_kernel(index);
                    return Step::Pass;
                }
                trace(|| format!("fd {fd}: connect {peer}: stack"));
                if self.instance.is_some() {
                    let begun = self.begin_datagrams_there(index, fd, &undecided, (None, true));
                    let connected =
                        begun.and_then(|name| self.connect_datagrams_there(name, Some(peer)));
                    return Step::of(connected);
                }
                match self.begin_everywhere(index, fd, &undecided) {
                    Ok(id) => (id, true),
                    Err(error) => return Step::Fail(error),
                }
            }
        };
        let peer = match peer {
            Ok(peer) => peer,
            Err(error) => return Step::Fail(error),
        };
        if let Some(peer) = peer {
            if everywhere && !policy::leads_to(&self.handed, SocketKind::Udp, peer) {
                trace(|| format!("fd {fd}: connect {peer}: kernel"));
                self.kernel_joins(index, Some(fd));
                if let Some(stack) = self.owned_stack() {
                    let _ = stack.engine.close(now(), id);
                }
                self.leave_to_kernel(index);
                return Step::Pass;
            }
            if policy::is_no_way(&self.handed, SocketKind::Udp, peer) {
                return Step::Fail(libc::ENETUNREACH);
            }
        }
        let connected = self.own().and_then(|stack| {
            let connected = stack.engine.connect(now(), id, peer);
            connected.map_err(SocketError::errno)
        });
        if connected.is_ok() {
            if peer.is_none() && everywhere {
                // A port that it chose is given up there, too.
                kernel::disconnect(fd);
            }
            self.connected(index, peer.is_some());
        }
        Step::of(connected)
    }

    /// A socket of the stack with the port that the kernel's has, if it has one.
    pub fn begin_everywhere(
        &mut self,
        index: u32,
        fd: i32,
        undecided: &Undecided,
    ) -> Result<SocketId, i32> {
        let id = self.take_over(index, undecided)?;
        let taken = match undecided.kernel_used {
            true => self.take_port(fd, id),
            false => Ok(false),
        };
        match taken {
            Ok(has_port) => self.everywhere(index, has_port),
            Err(error) => {
                self.give_back(index, id, undecided.clone());
                return Err(error);
            }
        }
        if let (Some(how), Some(stack)) = (undecided.shut, self.owned_stack()) {
            // It fails, as it did, and it counts.
            let _ = stack.engine.shutdown(now(), id, how);
        }
        Ok(id)
    }

    /// The port that the kernel chose, as if the engine had. False: it has none any more.
    fn take_port(&mut self, fd: i32, id: SocketId) -> Result<bool, i32> {
        let bytes = kernel::address(libc::SYS_getsockname, fd)?;
        let port = address::from_bytes(&bytes)?.map_or(0, |local| local.port());
        if port == 0 {
            return Ok(false);
        }
        let stack = self.own()?;
        let taken = stack.engine.take_port(id, port);
        taken.map(|()| true).map_err(SocketError::errno)
    }

    /// One that is connected hears its peer alone, which the stack leads to.
    fn connected(&mut self, index: u32, on: bool) {
        let Some(socket) = self
            .description_mut(index)
            .and_then(Description::socket_mut)
        else {
            return;
        };
        socket.connected = on;
        let everywhere = socket.everywhere;
        if on {
            socket.kernel_too = false;
            self.forget_kernel_part(index);
        } else if everywhere {
            // Where the kernel's socket has no port it hears nothing, and that is all.
            self.everywhere(index, true);
        }
        self.happened(index, NO_EDGE);
    }

    /// A port that a send gave the kernel's socket is given up again, and bind(2) may choose another one: where that is all it has.
    fn kernel_disconnects(&mut self, index: u32, fd: i32) {
        kernel::disconnect(fd);
        let has_port = kernel::address(libc::SYS_getsockname, fd)
            .and_then(|bytes| address::from_bytes(&bytes))
            .is_ok_and(|local| local.is_some_and(|local| local.port() != 0));
        if has_port {
            return;
        }
        if let Some(Description {
            kind: Kind::Undecided(undecided),
            ..
        }) = self.description_mut(index)
            && undecided.kernel_used
        {
            undecided.kernel_used = false;
            self.forget_kernel_part(index);
        }
    }

    /// A socket that is still nobody's has a port of the kernel's, and hears what comes there.
    pub fn kernel_uses(&mut self, index: u32) {
        if let Some(Description {
            kind: Kind::Undecided(undecided),
            ..
        }) = self.description_mut(index)
        {
            undecided.kernel_used = true;
            self.kernel_too.push(index);
            self.happened(index, NO_EDGE);
        }
    }

    /// A socket of the stack is at every address; with `kernel_too` that holds for the kernel's already.
    pub fn everywhere(&mut self, index: u32, kernel_too: bool) {
        if let Some(socket) = self
            .description_mut(index)
            .and_then(Description::socket_mut)
        {
            socket.everywhere = true;
            socket.kernel_too = kernel_too;
        }
        if !kernel_too {
            self.forget_kernel_part(index);
        } else if !self.kernel_too.contains(&index) {
            self.kernel_too.push(index);
        }
    }

    /// The kernel's socket gets the stack's port, or where that is taken one of its own, and is heard from now on.
    pub fn kernel_joins(&mut self, index: u32, fd: Option<i32>) {
        let socket = self.description(index).and_then(Description::socket);
        let Some((id, kernel_too)) = socket.map(|socket| (socket.id, socket.kernel_too)) else {
            return;
        };
        let (Some(fd), false) = (fd, kernel_too) else {
            return;
        };
        let stack = self.owned_stack();
        if let Some(Ok(mut local)) = stack.map(|stack| stack.engine.local_address(id)) {
            local.set_ip(match local {
                SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
            });
            let _ = kernel::bind(fd, &address::to_bytes(local));
        }
        self.everywhere(index, true);
        self.happened(index, NO_EDGE);
    }
}
