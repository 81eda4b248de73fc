//! Sockets at their beginning: socket, bind, connect. Where a socket belongs is decided by the first address that says so.
use crate::control::Wants;
use crate::description::{Description, Kind, Socket, Times, Undecided};
use crate::kernel;
use crate::policy;
use crate::privileged::may_bind;
use crate::say::trace;
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{Engine, SocketError, SocketId, SocketKind};
use nix::libc;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

impl State {
    /// A socket of the kernel that may become the stack's.
    pub fn opened(&mut self, fd: i32, kind: SocketKind, ipv6: bool, nonblocking: bool) -> bool {
        let undecided = Undecided {
            kind,
            ipv6,
            options: Vec::new(),
            bound: false,
            kernel_used: false,
            shut: None,
            times: Times::default(),
        };
        self.keep_spares();
        let description = Description::new(Kind::Undecided(undecided), nonblocking);
        self.describe(fd, description).is_some()
    }

    /// The kernel's from now on, with all that was done to it.
    pub fn leave_to_kernel(&mut self, index: u32) {
        // They ask the kernel from now on.
        self.ring_all(index);
        let Some(description) = self.forget(index) else {
            return;
        };
        self.forget_kernel_part(index);
        for (set, place) in description.watchers {
            let Some(Description {
                kind: Kind::Epoll(found),
                fds,
                ..
            }) = self.description_mut(set)
            else {
                continue;
            };
            let Some(interest) = found.remove(place) else {
                continue;
            };
            if let Some(epoll) = fds.first() {
                let _ = kernel::epoll_ctl(
                    *epoll,
                    libc::EPOLL_CTL_ADD,
                    interest.fd,
                    interest.events,
                    interest.data,
                );
            }
            self.rename(set);
        }
    }

    /// A socket of the engine, with the options that were set before.
    pub fn take_over(&mut self, index: u32, undecided: &Undecided) -> Result<SocketId, i32> {
        let stack = self.own()?;
        let id = stack
            .engine
            .socket(undecided.kind, undecided.ipv6)
            .map_err(SocketError::errno)?;
        let mut wants = Wants::default();
        for (level, name, value) in &undecided.options {
            wants.set(*level, *name, value);
            if let Ok(option) = hopscope_stack_abi::options::parse(*level, *name, value) {
                // What the engine does not take had an effect on the kernel's socket alone; getsockopt asks that.
                let _ = stack.engine.set_option(now(), id, option);
            }
        }
        let _ = stack.engine.set_token(id, u64::from(index) + 1);
        if let Some(description) = self.description_mut(index) {
            let socket = Socket::new(id, undecided.kind, undecided.ipv6, undecided.times);
            description.kind = Kind::Socket(Socket { wants, ..socket });
        }
        // Whoever waits looks again; of datagrams that is all (there is no wake-up for it in Linux).
        let key = match undecided.kind {
            SocketKind::Tcp => u32::MAX,
            SocketKind::Udp => 0,
        };
        self.happened(index, key);
        Ok(id)
    }

    /// It did not become one after all.
    pub fn give_back(&mut self, index: u32, id: SocketId, undecided: Undecided) {
        if let Some(stack) = self.owned_stack() {
            let _ = stack.engine.close(now(), id);
        }
        if let Some(description) = self.description_mut(index) {
            description.kind = Kind::Undecided(undecided);
        }
    }

    pub fn bind(&mut self, index: u32, fd: i32, bytes: &[u8]) -> Step {
        let Some(description) = self.description(index) else {
            return Step::Pass;
        };
        let undecided = match &description.kind {
            Kind::Undecided(undecided) => undecided.clone(),
            Kind::Socket(socket) => {
                let id = socket.id;
                let local = match address::from_bytes(bytes) {
                    Ok(Some(local)) => local,
                    Ok(None) => return Step::Fail(libc::EAFNOSUPPORT),
                    Err(error) => return Step::Fail(error),
                };
                return Step::of(
                    self.own()
                        .and_then(|stack| stack.engine.bind(id, local).map_err(SocketError::errno)),
                );
            }
            Kind::Epoll(_) => return Step::Pass,
        };
        let local = match address::from_bytes(bytes) {
            Ok(Some(local)) => local,
            // The kernel says what is wrong.
            _ => return Step::Pass,
        };
        if local.is_ipv6() != undecided.ipv6 {
            return Step::Pass;
        }
        let is_kernels = policy::is_kernels(&self.handed, undecided.kind, local);
        // Of TCP's listeners on every address listen(2) decides: they may have no port yet.
        let decides = undecided.kind == SocketKind::Tcp || !is_kernels;
        if local.ip().to_canonical().is_unspecified() && decides {
            if undecided.kind == SocketKind::Udp && !undecided.kernel_used {
                return Step::of(match self.instance.is_some() {
                    true => self.bind_datagrams_everywhere(index, fd, local, &undecided),
                    false => self.bind_everywhere(index, fd, local, &undecided),
                });
            }
            let bound = self.bind_kernels_any(fd, (local, bytes), &undecided);
            if bound.is_ok()
                && let Some(Description {
                    kind: Kind::Undecided(undecided),
                    ..
                }) = self.description_mut(index)
            {
                undecided.bound = true;
            }
            return Step::of(bound);
        }
        if !policy::takes(&self.handed, undecided.kind, local) {
            trace(|| format!("fd {fd}: bind {local}: kernel"));
            self.leave_to_kernel(index);
            return Step::Pass;
        }
        if undecided.kernel_used {
            // It has a port.
            return Step::Fail(libc::EINVAL);
        }
        if !may_bind(local.port()) {
            return Step::Fail(libc::EACCES);
        }
        trace(|| format!("fd {fd}: bind {local}: stack"));
        if self.instance.is_some() {
            return match undecided.kind {
                SocketKind::Tcp => self.bind_there(index, &undecided, local),
                SocketKind::Udp => {
                    let place = (Some(local), false);
                    Step::of(
                        self.begin_datagrams_there(index, fd, &undecided, place)
                            .map(drop),
                    )
                }
            };
        }
        let id = match self.take_over(index, &undecided) {
            Ok(id) => id,
            Err(error) => return Step::Fail(error),
        };
        let bound = self
            .own()
            .and_then(|stack| stack.engine.bind(id, local).map_err(SocketError::errno));
        if bound.is_err() {
            self.give_back(index, id, undecided);
        }
        Step::of(bound)
    }

    pub fn connect(&mut self, index: u32, fd: i32, bytes: &[u8], started: &mut bool) -> Step {
        let Some(description) = self.description(index) else {
            return Step::Pass;
        };
        let nonblocking = description.nonblocking;
        let (id, times) = match &description.kind {
            Kind::Epoll(_) => return Step::Pass,
            _ if description.is_datagram() => return self.connect_datagram(index, fd, bytes),
            Kind::Socket(socket) => (socket.id, socket.times),
            Kind::Undecided(undecided) => {
                let undecided = undecided.clone();
                let Ok(Some(peer)) = address::from_bytes(bytes) else {
                    return Step::Pass;
                };
                if peer.is_ipv6() != undecided.ipv6 {
                    return Step::Pass;
                }
                if !policy::leads_to(&self.handed, SocketKind::Tcp, peer) {
                    trace(|| format!("fd {fd}: connect {peer}: kernel"));
                    self.leave_to_kernel(index);
                    return Step::Pass;
                }
                if self.instance.is_some() {
                    trace(|| format!("fd {fd}: connect {peer}: stack"));
                    return self.connect_there(index, fd, &undecided, peer);
                }
                trace(|| format!("fd {fd}: connect {peer}: stack"));
                let id = match self.take_over(index, &undecided) {
                    Ok(id) => id,
                    Err(error) => return Step::Fail(error),
                };
                if undecided.bound
                    && let Err(error) = self.bind_as_kernel(fd, id, undecided.ipv6)
                {
                    self.give_back(index, id, undecided);
                    return Step::Fail(error);
                }
                (id, undecided.times)
            }
        };
        let block = Step::Block {
            now: nonblocking,
            span: times.send,
            partial: 0,
            otherwise: libc::EINPROGRESS,
            kernel: None,
        };
        let peer = address::from_bytes(bytes);
        let goes_out = matches!(peer, Ok(Some(peer)) if policy::is_no_way(&self.handed, SocketKind::Tcp, peer));
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Step::Fail(error),
        };
        let peer = match peer {
            Ok(peer) => peer,
            Err(error) => return Step::Fail(error),
        };
        if goes_out && stack.engine.peer_address(id).is_err() {
            return Step::Fail(libc::ENETUNREACH);
        }
        if *started && is_shut(&stack.engine, id) {
            let error = stack.engine.take_error(id).ok().flatten();
            return Step::Fail(error.map_or(libc::ECONNABORTED, SocketError::errno));
        }
        match stack
            .engine
            .connect(now(), id, peer)
            .map_err(SocketError::errno)
        {
            // It may have been reset since.
            Ok(()) => match started.then(|| stack.engine.take_error(id)) {
                Some(Ok(Some(error))) => Step::Fail(error.errno()),
                _ => Step::Done(0),
            },
            Err(libc::EINPROGRESS) if nonblocking => Step::Fail(libc::EINPROGRESS),
            // Until it is connected, which this call tells then.
            Err(libc::EINPROGRESS | libc::EALREADY) if !nonblocking => {
                *started = true;
                block
            }
            Err(libc::EISCONN) if *started => Step::Done(0),
            Err(error) => Step::Fail(error),
        }
    }

    /// To every address, at the port that the kernel's socket has.
    pub fn bind_as_kernel(&mut self, fd: i32, id: SocketId, ipv6: bool) -> Result<(), i32> {
        let bytes = kernel::address(libc::SYS_getsockname, fd)?;
        let port = address::from_bytes(&bytes)?.map_or(0, |local| local.port());
        let any = match ipv6 {
            false => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
            true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
        };
        let stack = self.own()?;
        stack.engine.bind(id, any).map_err(SocketError::errno)
    }
}

/// Another thread has ended the attempt by shutdown(2): it did not fail, and another connect would begin.
fn is_shut(engine: &Engine, id: SocketId) -> bool {
    let ready = engine.readiness(id);
    ready.is_ok_and(|ready| ready.hangup && !ready.readable)
}
