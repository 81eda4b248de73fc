//! bind, listen, connect, accept.
use super::state::{Host, PORT_SEARCHES, Tcp, context};
use crate::ip::Interface;
use crate::tcp::connecting::{Connecting, Verdict};
use crate::tcp::connection::{initial_window, window_scale};
use crate::tcp::demux::Target;
use crate::tcp::handshake;
use crate::tcp::listener::Listener;
use crate::tcp::options::SocketOptions;
use crate::tcp::ports::Claim;
use crate::tcp::sockets::{Idle, Socket};
use crate::tcp::tuple::{Address, Tuple};
use crate::{SocketError, SocketId};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// net.core.somaxconn.
const MAX_BACKLOG: u32 = 4096;

impl Tcp {
    /// # Errors
    /// NoBuffers.
    pub(crate) fn socket(&mut self, ipv6: bool) -> Result<SocketId, SocketError> {
        let idle = self.idle(ipv6);
        let slot = self.sockets.insert(Socket::Idle(Box::new(idle)), ipv6);
        Ok(self.sockets.open(slot.ok_or(SocketError::NoBuffers)?))
    }

    fn idle(&self, ipv6: bool) -> Idle {
        Idle {
            ipv6,
            options: SocketOptions::new(&self.config.tcp),
            bound: None,
            error: None,
            failed: false,
        }
    }

    /// # Errors
    /// As bind(2).
    pub(crate) fn bind(
        &mut self,
        host: &mut Host,
        id: SocketId,
        local: SocketAddr,
    ) -> Result<(), SocketError> {
        let slot = self.sockets.index(id)?;
        let Some(Socket::Idle(idle)) = self.sockets.get(slot) else {
            return Err(SocketError::Invalid);
        };
        if idle.bound.is_some() {
            return Err(SocketError::Invalid);
        }
        let address = local_address(host, idle, local)?;
        let claim = claim(slot, idle, address, false);
        let port = match local.port() {
            0 => self.free_port(&claim).ok_or(SocketError::AddressInUse)?,
            port if self.ports.is_free(port, &claim) => port,
            _ => return Err(SocketError::AddressInUse),
        };
        self.ports.claim(port, claim);
        if let Some(Socket::Idle(idle)) = self.sockets.get_mut(slot) {
            idle.bound = Some((address, port));
            // inet6_bind: one address of IPv6 is no way to IPv4's.
            idle.options.v6_only |= idle.ipv6 && !address.is_v4() && address != Address::ANY;
        }
        Ok(())
    }

    /// Another one each time, as Linux has it: who looks for a port that is free, and uses it later, is not given another's.
    fn free_port(&mut self, claim: &Claim) -> Option<u16> {
        self.free_ports = self.free_ports.wrapping_add(1);
        let words = Tuple {
            local: claim.address,
            peer: Address::ANY,
            local_port: 0,
            peer_port: self.free_ports,
        };
        let mut candidates = self.candidates(self.secrets.port_offset(&words));
        candidates.find(|port| self.ports.is_unbound(*port) && self.ports.is_free(*port, claim))
    }

    /// All ephemeral ports, from some place on.
    fn candidates(&self, offset: u32) -> impl Iterator<Item = u16> + use<> {
        let (first, last) = self.config.ephemeral_ports;
        let count = u32::from(last.saturating_sub(first)) + 1;
        (0..count).map(move |i| first + ((offset % count + i) % count) as u16)
    }

    /// # Errors
    /// As listen(2).
    pub(crate) fn listen(
        &mut self,
        host: &mut Host,
        id: SocketId,
        backlog: u32,
    ) -> Result<(), SocketError> {
        let slot = self.sockets.index(id)?;
        if let Some(listener) = self.sockets.listener_mut(slot) {
            listener.backlog = backlog.min(MAX_BACKLOG);
            return Ok(());
        }
        if let Some(Socket::Idle(idle)) = self.sockets.get(slot)
            && idle.bound.is_none()
        {
            let any: IpAddr = if idle.ipv6 {
                [0; 16].into()
            } else {
                [0; 4].into()
            };
            self.bind(host, id, SocketAddr::new(any, 0))?;
        }
        let Some(Socket::Idle(idle)) = self.sockets.get(slot) else {
            return Err(SocketError::Invalid);
        };
        let (address, port) = idle.bound.ok_or(SocketError::Invalid)?;
        let claim = claim(slot, idle, address, true);
        if !self.ports.is_free(port, &claim) {
            return Err(SocketError::AddressInUse);
        }
        self.ports.claim(port, claim);
        let listener = Listener {
            id,
            options: idle.options,
            ipv6: idle.ipv6,
            address,
            port,
            backlog: backlog.min(MAX_BACKLOG),
            accepts: VecDeque::new(),
            requests: 0,
            cookie_sent: None,
        };
        let v6_only = idle.options.v6_only;
        self.listeners
            .insert(slot, address, port, idle.ipv6, v6_only);
        self.sockets.put(slot, Socket::Listener(Box::new(listener)));
        Ok(())
    }

    /// # Errors
    /// WouldBlock, Invalid, BadSocket.
    pub(crate) fn accept(&mut self, id: SocketId) -> Result<(SocketId, SocketAddr), SocketError> {
        let slot = self.sockets.index(id)?;
        let listener = self
            .sockets
            .listener_mut(slot)
            .ok_or(SocketError::Invalid)?;
        let accepted = listener
            .accepts
            .pop_front()
            .ok_or(SocketError::WouldBlock)?;
        let connection = self
            .sockets
            .connection(accepted)
            .ok_or(SocketError::Aborted)?;
        let peer = connection.tuple.peer();
        let peer = self.shown(accepted, peer);
        Ok((self.sockets.open(accepted), peer))
    }

    /// An address as a socket of its family shows it: IPv6 maps IPv4.
    pub(crate) fn shown(&self, slot: u32, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(v4) if self.sockets.is_ipv6(slot) => {
                SocketAddr::new(IpAddr::V6(v4.to_ipv6_mapped()), address.port())
            }
            _ => address,
        }
    }

    /// # Errors
    /// As connect(2); InProgress when it begins.
    pub(crate) fn connect(
        &mut self,
        host: &mut Host,
        id: SocketId,
        peer: SocketAddr,
    ) -> Result<(), SocketError> {
        let slot = self.sockets.index(id)?;
        match self.sockets.get_mut(slot) {
            Some(Socket::Idle(idle)) => {
                if std::mem::take(&mut idle.failed) {
                    return Err(idle.error.take().unwrap_or(SocketError::Aborted));
                }
            }
            Some(Socket::Connecting(_)) => return Err(SocketError::Already),
            Some(Socket::Connection(connection)) => {
                let first = std::mem::take(&mut connection.connect_pending);
                return if first {
                    Ok(())
                } else {
                    Err(SocketError::IsConnected)
                };
            }
            _ => return Err(SocketError::IsConnected),
        }
        let (tuple, hash) = self.choose_tuple(host, slot, peer)?;
        self.begin_to_connect(host, slot, tuple, hash);
        Err(SocketError::InProgress)
    }

    fn begin_to_connect(&mut self, host: &mut Host, slot: u32, tuple: Tuple, hash: u32) {
        let Some(Socket::Idle(idle)) = self.sockets.get(slot) else {
            return;
        };
        let options = idle.options;
        let config = &self.config.tcp;
        let iss = match self.reused_time_wait(hash, &tuple) {
            // Beyond what the old connection may have sent.
            Some(entry) => entry + 65_535 + 2,
            None => self.secrets.isn(host.now, &tuple),
        };
        let offset = self.secrets.timestamp_offset(&tuple);
        let mut connecting = Connecting::new(tuple, hash, options, iss, offset);
        connecting.bound = idle.bound;
        let v4 = tuple.peer.is_v4();
        connecting.mtu = host.ip.mtu(host.now, tuple.peer.into());
        connecting.advmss = handshake::announced_mss(connecting.mtu, v4, &options);
        let limit = options
            .receive_buffer
            .unwrap_or(config.receive_buffer.initial);
        connecting.window =
            initial_window(limit, options.window_clamp, u32::from(connecting.advmss));
        connecting.wscale = window_scale(limit.max(config.receive_buffer.max));
        if let Some(Target::TimeWait(index)) = self.find(hash, &tuple) {
            host.counters.time_wait_recycled += 1;
            self.remove_time_wait(index);
        }
        self.ports.release(tuple.local_port, slot);
        self.ports
            .connect(tuple.local, tuple.local_port, options.is_exclusive());
        self.demux.insert(hash, Target::Connection(slot));
        host.counters.tcp_active_opens += 1;
        connecting.start(&mut context!(self, host));
        self.sockets
            .put(slot, Socket::Connecting(Box::new(connecting)));
        self.connecting_goes_on(host, slot, Verdict::Nothing, None);
    }

    fn reused_time_wait(&self, hash: u32, tuple: &Tuple) -> Option<crate::tcp::seq::Seq> {
        match self.find(hash, tuple) {
            Some(Target::TimeWait(index)) => self.time_waits.get(index).map(|t| t.snd_nxt),
            _ => None,
        }
    }

    /// Of several engines, the one that a connection to `peer` belongs to; this one where the socket's port is not chosen yet.
    ///
    /// # Errors
    /// As connect(2).
    pub(crate) fn owner(
        &self,
        ip: &Interface,
        id: SocketId,
        peer: SocketAddr,
    ) -> Result<u16, SocketError> {
        let slot = self.sockets.index(id)?;
        let share = self.config.share;
        match self.sockets.get(slot) {
            Some(Socket::Idle(idle)) if idle.bound.is_some() => {
                let tuple = wanted_tuple(ip, idle, peer)?;
                Ok(share.owner(tuple.peer(), tuple.local()))
            }
            _ => Ok(share.index),
        }
    }

    /// Where from: the bound address and port, or those that fit.
    fn choose_tuple(
        &mut self,
        host: &mut Host,
        slot: u32,
        peer: SocketAddr,
    ) -> Result<(Tuple, u32), SocketError> {
        let Some(Socket::Idle(idle)) = self.sockets.get(slot) else {
            return Err(SocketError::IsConnected);
        };
        let bound = idle.bound;
        let mut tuple = wanted_tuple(host.ip, idle, peer)?;
        if bound.is_some() {
            let hash = self.keys.tuple(&tuple);
            // Of a connection within the device no frame is spread.
            let comes_here = host.ip.is_local(tuple.peer.into()) || self.is_of_this_engine(&tuple);
            let free = comes_here && self.is_tuple_free(host, hash, &tuple);
            return free
                .then_some((tuple, hash))
                .ok_or(SocketError::AddressNotAvailable);
        }
        let secret = self.secrets.port_offset(&tuple);
        let search = secret as usize % PORT_SEARCHES;
        let offset = secret.wrapping_add(self.port_searches[search]);
        for (tried, port) in (1..).zip(self.candidates(offset)) {
            tuple.local_port = port;
            // Not to itself.
            let itself = tuple.local() == tuple.peer();
            if itself || !self.ports.is_unbound(port) || !self.is_of_this_engine(&tuple) {
                continue;
            }
            let hash = self.keys.tuple(&tuple);
            if self.is_tuple_free(host, hash, &tuple) {
                let searched = &mut self.port_searches[search];
                *searched = searched.wrapping_add(tried);
                return Ok((tuple, hash));
            }
        }
        Err(SocketError::AddressNotAvailable)
    }

    fn is_tuple_free(&self, host: &Host, hash: u32, tuple: &Tuple) -> bool {
        match self.find(hash, tuple) {
            None => true,
            Some(Target::TimeWait(index)) => {
                let entry = self.time_waits.get(index);
                self.config.tcp.time_wait_reuse && entry.is_some_and(|t| t.may_be_reused(host.now))
            }
            Some(_) => false,
        }
    }

    /// Whether what the peer sends reaches us, where engines share a device.
    fn is_of_this_engine(&self, tuple: &Tuple) -> bool {
        self.config.share.has(tuple.peer(), tuple.local())
    }

    /// The socket is as before connect, with an error to tell.
    pub(crate) fn connecting_failed(&mut self, host: &mut Host, slot: u32, error: SocketError) {
        let Some(Socket::Connecting(connecting)) = self.sockets.get(slot) else {
            return;
        };
        let (hash, options) = (connecting.hash, connecting.options);
        let (tuple, bound) = (connecting.tuple, connecting.bound);
        self.demux.remove(hash, Target::Connection(slot));
        self.ports
            .disconnect(tuple.local, tuple.local_port, options.is_exclusive());
        self.timers.clear(slot);
        host.counters.tcp_attempt_fails += 1;
        let ipv6 = self.sockets.is_ipv6(slot);
        let idle = Idle {
            ipv6,
            options,
            bound,
            error: Some(error),
            failed: true,
        };
        if let Some((address, port)) = bound {
            self.ports.claim(port, claim(slot, &idle, address, false));
        }
        self.sockets.put(slot, Socket::Idle(Box::new(idle)));
        self.sockets.event(slot);
    }
}

fn claim(slot: u32, idle: &Idle, address: Address, listening: bool) -> Claim {
    Claim {
        slot,
        address,
        v6_only: idle.options.v6_only,
        ipv6: idle.ipv6,
        reuse_address: idle.options.reuse_address,
        reuse_port: idle.options.reuse_port,
        listening,
    }
}

/// Ours, or all of ours.
fn local_address(host: &Host, idle: &Idle, local: SocketAddr) -> Result<Address, SocketError> {
    let address = peer_address(idle, local)?;
    if address.is_unspecified() && !(idle.ipv6 && address.is_ipv4()) {
        return Ok(Address::ANY);
    }
    if !host.ip.is_local(address) {
        return Err(SocketError::AddressNotAvailable);
    }
    Ok(address.into())
}

/// Between which ends a socket connects; without a port where it has none.
fn wanted_tuple(ip: &Interface, idle: &Idle, peer: SocketAddr) -> Result<Tuple, SocketError> {
    let to = peer_address(idle, peer)?;
    if ip.is_group(to) || to.is_unspecified() {
        return Err(SocketError::NetworkUnreachable);
    }
    let source = ip.source_for(to)?;
    let local = match idle.bound {
        Some((address, _)) if address != Address::ANY => address,
        _ => source.into(),
    };
    let tuple = Tuple {
        local,
        peer: to.into(),
        local_port: idle.bound.map_or(0, |(_, port)| port),
        peer_port: peer.port(),
    };
    if local.is_v4() != tuple.peer.is_v4() {
        return Err(SocketError::NetworkUnreachable);
    }
    if tuple.local().ip().is_loopback() && !ip.is_local(to) {
        return Err(SocketError::Invalid);
    }
    Ok(tuple)
}

/// An address that the socket's family can have; IPv4's as itself.
fn peer_address(idle: &Idle, address: SocketAddr) -> Result<IpAddr, SocketError> {
    match (address.ip(), idle.ipv6) {
        (IpAddr::V4(_), false) => Ok(address.ip()),
        (IpAddr::V6(v6), true) => match v6.to_ipv4_mapped() {
            Some(_) if idle.options.v6_only => Err(SocketError::NetworkUnreachable),
            Some(v4) => Ok(v4.into()),
            None => Ok(v6.into()),
        },
        _ => Err(SocketError::Family),
    }
}
