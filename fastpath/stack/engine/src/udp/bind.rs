//! Addresses and ports of UDP sockets.
use super::socket::{Socket, unspecified};
use super::state::{Lower, Udp};
use crate::SocketError;
use std::net::SocketAddr;

impl Udp {
    /// bind(2). Port 0: an ephemeral one.
    ///
    /// # Errors
    /// Invalid (bound already), AddressInUse, AddressNotAvailable, Family, BadSocket.
    pub(crate) fn bind(
        &mut self,
        lower: &mut Lower,
        index: u32,
        local: SocketAddr,
    ) -> Result<(), SocketError> {
        let socket = self.get(index)?;
        if socket.local.port() != 0 {
            return Err(SocketError::Invalid);
        }
        let wildcard = local.ip().is_unspecified() && local.is_ipv6();
        let mut local = match wildcard && socket.ipv6 {
            true => local,
            false => socket.canonical(local)?,
        };
        let ip = local.ip();
        if !ip.is_unspecified() && !lower.ip.is_local(ip) && !lower.ip.is_group(ip) {
            return Err(SocketError::AddressNotAvailable);
        }
        let is_port_bound = local.port() != 0;
        if local.port() == 0 {
            local.set_port(self.ephemeral(index, local, None, lower)?);
        } else if !self.is_free(index, local) {
            return Err(SocketError::AddressInUse);
        }
        let socket = self.get_mut(index)?;
        socket.is_address_bound = !ip.is_unspecified();
        socket.is_port_bound = is_port_bound;
        // inet6_bind: one address of IPv6 is no way to IPv4's.
        socket.options.v6_only |= ip.is_ipv6() && !ip.is_unspecified();
        self.settle_at(index, local, None)
    }

    /// A port that others have chosen for it, at every address.
    ///
    /// # Errors
    /// Invalid, AddressInUse, BadSocket.
    pub(crate) fn take_port(&mut self, index: u32, port: u16) -> Result<(), SocketError> {
        let mut local = self.get(index)?.local;
        if local.port() != 0 || port == 0 {
            return Err(SocketError::Invalid);
        }
        local.set_port(port);
        if !self.is_free(index, local) {
            return Err(SocketError::AddressInUse);
        }
        self.settle_at(index, local, None)
    }

    /// Puts a socket that is at no port to one.
    fn settle_at(
        &mut self,
        index: u32,
        local: SocketAddr,
        peer: Option<SocketAddr>,
    ) -> Result<(), SocketError> {
        let socket = self.get_mut(index)?;
        (socket.local, socket.peer) = (local, peer);
        socket.hop = Default::default();
        let place = Udp::place(socket);
        self.demux.insert(index, &place);
        self.ports.entry(local.port()).or_default().push(index);
        Ok(())
    }

    /// An ephemeral port for a socket that has none yet.
    ///
    /// # Errors
    /// WouldBlock: all are taken (Linux: EAGAIN).
    pub(super) fn autobind(&mut self, lower: &mut Lower, index: u32) -> Result<(), SocketError> {
        let socket = self.get(index)?;
        if socket.local.port() != 0 {
            return Ok(());
        }
        let mut local = socket.local;
        let port = self.ephemeral(index, local, None, lower);
        local.set_port(port.map_err(|_| SocketError::WouldBlock)?);
        self.settle_at(index, local, None)
    }

    /// connect(2); `None` disconnects.
    ///
    /// # Errors
    /// As connect(2).
    pub(crate) fn connect(
        &mut self,
        lower: &mut Lower,
        index: u32,
        peer: Option<SocketAddr>,
    ) -> Result<(), SocketError> {
        let Some(peer) = peer else {
            return self.disconnect(index);
        };
        let socket = self.get(index)?;
        let peer = socket.canonical(peer)?;
        let mut local = socket.local;
        if peer.ip().is_unspecified() {
            return Err(SocketError::Invalid);
        }
        if lower.ip.is_group(peer.ip()) && !peer.ip().is_multicast() {
            // Without SO_BROADCAST, which there is none of.
            return Err(SocketError::Access);
        }
        let source = lower.ip.source_for(peer.ip())?;
        let keeps = socket.is_address_bound;
        if keeps && local.is_ipv4() != peer.is_ipv4() {
            return Err(SocketError::NetworkUnreachable);
        }
        if keeps && local.ip().is_loopback() && !lower.ip.is_local(peer.ip()) {
            return Err(SocketError::Invalid);
        }
        if !keeps {
            local.set_ip(source);
        }
        self.unbind(index);
        if local.port() == 0 {
            let port = self.ephemeral(index, local, Some(peer), lower);
            local.set_port(port.map_err(|_| SocketError::WouldBlock)?);
        }
        self.settle_at(index, local, Some(peer))
    }

    fn disconnect(&mut self, index: u32) -> Result<(), SocketError> {
        self.get(index)?;
        self.unbind(index);
        let socket = self.get_mut(index)?;
        // Its error stays (__udp_disconnect).
        let mut local = socket.local;
        if !socket.is_address_bound {
            local.set_ip(unspecified(socket.ipv6));
        }
        if socket.is_port_bound {
            return self.settle_at(index, local, None);
        }
        local.set_port(0);
        (socket.local, socket.peer) = (local, None);
        Ok(())
    }

    /// Begins at a port that only the seed's owner can predict (RFC 6056, 3.3.3), and takes the next free one. With
    /// several engines on the device, one whose answers come to this engine, as far as that is known.
    fn ephemeral(
        &mut self,
        index: u32,
        mut local: SocketAddr,
        peer: Option<SocketAddr>,
        lower: &Lower,
    ) -> Result<u16, SocketError> {
        let (first, last) = self.ephemeral_ports;
        let count = u64::from(last.saturating_sub(first)) + 1;
        self.tries += 1;
        let start = self.key.hash_words([self.tries, u64::from(index)]);
        for i in 0..count {
            let port = first + (start.wrapping_add(i) % count) as u16;
            local.set_port(port);
            let ours = peer.is_none_or(|peer| lower.ip.has_datagrams_of(peer, local));
            if port != 0 && ours && !self.ports.contains_key(&port) {
                return Ok(port);
            }
        }
        Err(SocketError::AddressInUse)
    }

    fn is_free(&self, index: u32, local: SocketAddr) -> bool {
        let Ok(socket) = self.get(index) else {
            return false;
        };
        let sockets = self.ports.get(&local.port()).into_iter().flatten();
        let mut others = sockets
            .filter(|i| **i != index)
            .filter_map(|i| self.get(*i).ok());
        !others.any(|other| conflicts(socket, local, other))
    }
}

/// As inet_rcv_saddr_equal and inet_bind have it.
fn conflicts(socket: &Socket, local: SocketAddr, other: &Socket) -> bool {
    let (a, b) = (socket.options, other.options);
    if (a.reuse_address && b.reuse_address) || (a.reuse_port && b.reuse_port) {
        return false;
    }
    let (ours, theirs) = (local.ip(), other.local.ip());
    match (ours.is_unspecified(), theirs.is_unspecified()) {
        (false, false) => ours == theirs,
        (true, false) => socket.takes(theirs.is_ipv6()),
        (false, true) => other.takes(ours.is_ipv6()),
        (true, true) => socket.ipv6 == other.ipv6 || (socket.takes(false) && other.takes(false)),
    }
}
