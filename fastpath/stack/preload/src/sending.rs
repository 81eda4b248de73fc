//! Datagrams out: whose each is, and on its way by the engine.
use crate::control;
use crate::description::{Kind, Socket};
use crate::policy;
use crate::say::{once, trace};
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use crate::told::To;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{Outbound, SocketError, SocketKind};
use nix::libc;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

static MORE_SAID: AtomicBool = AtomicBool::new(false);

impl State {
    pub fn send_datagram(&mut self, index: u32, parts: &[&[u8]], flags: i32, to: To<'_>) -> Step {
        let Some(description) = self.description(index) else {
            return Step::Pass;
        };
        let ipv6 = match &description.kind {
            Kind::Epoll(_) => return Step::Pass,
            Kind::Undecided(undecided) => undecided.ipv6,
            Kind::Socket(socket) => socket.ipv6,
        };
        let fd = description.fds.first().copied();
        let peer = match destination(to.address, ipv6) {
            Ok(peer) => peer,
            Err(error) => return Step::Fail(error),
        };
        let to_v4 = || match (peer, description.socket()) {
            (Some(peer), _) => peer.ip().to_canonical().is_ipv4(),
            (None, Some(socket)) => self.stack.as_ref().is_some_and(|stack| {
                let peer = stack.engine.peer_address(socket.id);
                peer.is_ok_and(|peer| peer.ip().to_canonical().is_ipv4())
            }),
            (None, None) => false,
        };
        let mut outbound = match control::parse(to.control, ipv6, !ipv6 || to_v4()) {
            Ok(outbound) => outbound,
            // The kernel says what it is.
            Err(_) if description.socket().is_none() => return Step::Pass,
            Err(error) => return Step::Fail(error),
        };
        outbound.peer = peer;
        match self.whose(index, fd, &outbound) {
            Ok(true) => {}
            Ok(false) => {
                // Without a peer it fails.
                if outbound.peer.is_some() {
                    self.sent(index);
                }
                return Step::Pass;
            }
            Err(error) => return Step::Fail(error),
        }
        if flags & libc::MSG_OOB != 0 {
            return Step::Fail(libc::EOPNOTSUPP);
        }
        if flags & libc::MSG_MORE != 0 {
            once(&MORE_SAID, || {
                "MSG_MORE on a UDP socket of the stack: not supported: the call fails (EOPNOTSUPP)"
                    .into()
            });
            return Step::Fail(libc::EOPNOTSUPP);
        }
        self.by_engine(index, parts, flags, &outbound)
    }

    fn by_engine(&mut self, index: u32, parts: &[&[u8]], flags: i32, to: &Outbound) -> Step {
        let Some(description) = self.description(index) else {
            return Step::Pass;
        };
        let waits = !description.nonblocking && flags & libc::MSG_DONTWAIT == 0;
        let Some(Socket { id, times, .. }) = description.socket() else {
            return Step::Pass;
        };
        let (id, span) = (*id, times.send);
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Step::Fail(error),
        };
        let gathered;
        let bytes = match parts {
            [one] => *one,
            parts => {
                gathered = parts.concat();
                &gathered
            }
        };
        match stack.engine.send_datagram(now(), id, bytes, to) {
            Ok(count) => {
                self.sent(index);
                Step::Done(count as i64)
            }
            Err(SocketError::WouldBlock) => Step::Block {
                now: !waits,
                span,
                partial: 0,
                otherwise: libc::EAGAIN,
                kernel: None,
            },
            Err(error) => Step::Fail(error.errno()),
        }
    }

    /// Whether a datagram is the stack's to send. Where it is the kernel's, that has the socket's port from now on.
    fn whose(&mut self, index: u32, fd: Option<i32>, to: &Outbound) -> Result<bool, i32> {
        let Some(description) = self.description(index) else {
            return Ok(false);
        };
        let stacks = to.peer.map(|peer| self.sends(peer, to));
        match &description.kind {
            Kind::Epoll(_) => Ok(false),
            Kind::Undecided(undecided) => {
                let undecided = undecided.clone();
                let (Some(peer), Some(fd)) = (to.peer, fd) else {
                    // It fails, and yet it gives the socket a port.
                    if !undecided.kernel_used {
                        self.kernel_uses(index);
                    }
                    return Ok(false);
                };
                if stacks != Some(true) {
                    if !undecided.kernel_used {
                        trace(|| format!("fd {fd}: datagram to {peer}: kernel"));
                        self.kernel_uses(index);
                    }
                    return Ok(false);
                }
                trace(|| format!("fd {fd}: datagram to {peer}: stack"));
                if self.instance.is_some() {
                    // The call is tried again, of another kind of socket.
                    self.begin_datagrams_there(index, fd, &undecided, (None, true))?;
                    return Ok(false);
                }
                self.begin_everywhere(index, fd, &undecided)?;
                Ok(true)
            }
            Kind::Socket(socket) => {
                let (everywhere, connected) = (socket.everywhere, socket.connected);
                match (stacks, to.peer) {
                    (Some(false), Some(_)) if everywhere && !connected => {
                        self.kernel_joins(index, fd);
                        Ok(false)
                    }
                    // Never out of this machine.
                    (_, Some(peer)) if policy::is_no_way(&self.handed, SocketKind::Udp, peer) => {
                        Err(libc::ENETUNREACH)
                    }
                    (_, _) => Ok(true),
                }
            }
        }
    }

    fn sends(&self, peer: SocketAddr, to: &Outbound) -> bool {
        match to.source {
            Some(source) => policy::is_own(&self.handed, source),
            None => policy::leads_to(&self.handed, SocketKind::Udp, peer),
        }
    }

    /// A datagram has gone: an edge of EPOLLOUT, as for Linux' sock_wfree.
    fn sent(&mut self, index: u32) {
        let out = (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
        let watched = self
            .description(index)
            .is_some_and(|d| !d.watchers.is_empty());
        if watched && self.level(index) & out != 0 {
            self.happened(index, out);
        }
    }
}

/// The sockaddr of a send, as udp_sendmsg and udpv6_sendmsg take it.
pub fn destination(bytes: Option<&[u8]>, ipv6: bool) -> Result<Option<SocketAddr>, i32> {
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
        return Ok(None);
    };
    // Of IPv4's sockets it is asked before the family's length (udp_sendmsg).
    if !ipv6 && bytes.len() >= 16 && address::family(bytes) == Some(libc::AF_INET6) {
        return Err(libc::EAFNOSUPPORT);
    }
    match (address::from_bytes(bytes)?, ipv6) {
        (Some(peer), _) => Ok(Some(peer)),
        (None, true) => Ok(None),
        (None, false) => {
            // AF_UNSPEC stands for AF_INET.
            let mut bytes = bytes.to_vec();
            bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            address::from_bytes(&bytes)
        }
    }
}
