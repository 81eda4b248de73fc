//! Readiness, errors, addresses; what TCP_INFO and ss tell.
use super::state::{Engine, lower};
use crate::tcp::Socket;
use crate::{
    Connection, Counters, Event, Ns, Readiness, SocketError, SocketId, SocketKind, TcpInfo,
    TcpState,
};
use std::net::{IpAddr, SocketAddr};

impl Engine {
    /// SO_ERROR: tells and clears it.
    ///
    /// # Errors
    /// BadSocket.
    pub fn take_error(&mut self, id: SocketId) -> Result<Option<SocketError>, SocketError> {
        if let Some(index) = self.udp_index(id)? {
            return self.udp.take_error(index);
        }
        self.tcp.take_error(id)
    }

    /// # Errors
    /// BadSocket.
    pub fn readiness(&self, id: SocketId) -> Result<Readiness, SocketError> {
        Ok(self.readiness_of(self.tcp.sockets.index(id)?))
    }

    /// What the socket's [`Event`]s carry from now on.
    ///
    /// # Errors
    /// BadSocket.
    pub fn set_token(&mut self, id: SocketId, token: u64) -> Result<(), SocketError> {
        let slot = self.tcp.sockets.index(id)?;
        self.tcp.sockets.set_token(slot, token);
        Ok(())
    }

    /// The oldest event that was not drained.
    pub fn next_event(&mut self) -> Option<Event> {
        self.tcp.feed_starved(&self.pool);
        let slot = self.tcp.sockets.next_event()?;
        Some(Event {
            socket: self.tcp.sockets.id(slot)?,
            token: self.tcp.sockets.token(slot),
            readiness: self.readiness_of(slot),
        })
    }

    /// # Errors
    /// BadSocket.
    pub fn local_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        if let Some(index) = self.udp_index(id)? {
            return self.udp.local_address(index);
        }
        self.tcp.local_address(id)
    }

    /// # Errors
    /// NotConnected, BadSocket.
    pub fn peer_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        if let Some(index) = self.udp_index(id)? {
            return self.udp.peer_address(index);
        }
        self.tcp.peer_address(id)
    }

    /// FIONREAD: bytes that recv would give (UDP: of the next datagram).
    ///
    /// # Errors
    /// BadSocket.
    pub fn unread_bytes(&self, id: SocketId) -> Result<u32, SocketError> {
        if let Some(index) = self.udp_index(id)? {
            return self.udp.unread_bytes(index);
        }
        self.tcp.unread_bytes(id)
    }

    /// SIOCOUTQ: bytes that the peer has not acknowledged; SIOCOUTQNSD: of them not sent.
    ///
    /// # Errors
    /// BadSocket.
    pub fn unacknowledged_bytes(&self, id: SocketId) -> Result<(u32, u32), SocketError> {
        if let Some(index) = self.udp_index(id)? {
            return self.udp.queues(index).map(|(_, sent)| (sent, sent));
        }
        self.tcp.unacknowledged_bytes(id)
    }

    /// IP_MTU of a connected socket.
    ///
    /// # Errors
    /// NotConnected, BadSocket.
    pub fn path_mtu(&mut self, now: Ns, id: SocketId) -> Result<u16, SocketError> {
        match self.udp_index(id)? {
            Some(index) => self.udp.path_mtu(lower!(self, now), index),
            None => self.tcp.path_mtu(id),
        }
    }

    /// The longest payload that a UDP socket may send there, in bytes: longer ones are refused (EMSGSIZE).
    ///
    /// # Errors
    /// BadSocket; Invalid: it is one of TCP.
    pub fn longest_datagram(
        &mut self,
        now: Ns,
        id: SocketId,
        peer: IpAddr,
    ) -> Result<usize, SocketError> {
        let index = self.udp_index(id)?.ok_or(SocketError::Invalid)?;
        let lower = lower!(self, now);
        self.udp.longest_payload(lower, index, peer)
    }

    /// Frames wait for the port, or for a neighbour's address: what a closed socket sent is among them.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.ip.has_frames() || self.ip.has_waiting() || self.udp.has_output()
    }

    /// TCP_INFO.
    ///
    /// # Errors
    /// BadSocket, NoOption (not TCP).
    pub fn tcp_info(&self, now: Ns, id: SocketId) -> Result<TcpInfo, SocketError> {
        self.tcp.info(now, id)
    }

    /// `tcpi_state` of `tcp_info`.
    ///
    /// # Errors
    /// BadSocket; Invalid: it is one of UDP.
    pub fn tcp_state(&self, id: SocketId) -> Result<TcpState, SocketError> {
        match self.tcp.sockets.get(self.tcp.sockets.index(id)?) {
            Some(Socket::Idle(_)) => Ok(TcpState::Closed),
            Some(Socket::Listener(_)) => Ok(TcpState::Listen),
            Some(Socket::Connecting(_)) => Ok(TcpState::SynSent),
            Some(Socket::Connection(connection)) => Ok(connection.state),
            Some(Socket::Udp(_)) => Err(SocketError::Invalid),
            None => Err(SocketError::BadSocket),
        }
    }

    /// All sockets, requests and TIME-WAITs.
    pub fn connections(&self, now: Ns) -> impl Iterator<Item = Connection> + '_ {
        let udp = self.udp.indices().filter_map(|index| self.udp_row(index));
        self.tcp.connections(now).chain(udp)
    }

    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes of all buffers now, and of all tables.
    #[must_use]
    pub fn memory_bytes(&self) -> (u64, u64) {
        let tables = self.tcp.memory_bytes() + self.udp.memory_bytes() + self.ip.memory_bytes();
        (self.pool.used_bytes(), tables)
    }

    fn readiness_of(&self, slot: u32) -> Readiness {
        match self.tcp.sockets.get(slot) {
            Some(Socket::Udp(index)) => self.udp.readiness(*index).unwrap_or_default(),
            _ => self.tcp.readiness(slot),
        }
    }

    fn udp_row(&self, index: u32) -> Option<Connection> {
        let (receive_queue, send_queue) = self.udp.queues(index).ok()?;
        let socket = self.udp.id(index)?;
        Some(Connection {
            socket: Some(socket),
            token: self.tcp.sockets.token(socket.slot),
            kind: SocketKind::Udp,
            state: TcpState::Closed,
            local: self.udp.local_address(index).ok()?,
            peer: self.udp.peer_address(index).ok(),
            receive_queue,
            send_queue,
            info: None,
        })
    }
}
