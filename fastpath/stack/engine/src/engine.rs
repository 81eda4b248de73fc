//! The stack as a whole: what its owner calls.
use crate::buffer::Pool;
use crate::frame::{Received, RxMeta, TxFrame};
use crate::ip::{IcmpError, Input, Interface, Packet};
use crate::tcp::{Host, Socket, Tcp};
use crate::udp::{Lower, Udp};
use crate::wire::{protocol, tcp, udp};
use crate::{
    Config, ConfigError, Connection, Counters, Event, HowToShut, Ns, Readiness, RecvFlags,
    SendFlags, SocketError, SocketId, SocketKind, SocketOption, TcpInfo, TcpState,
};
use std::net::SocketAddr;

/// What goes through all layers with a call.
macro_rules! host {
    ($engine:expr, $now:expr) => {
        &mut Host {
            now: $now,
            ip: &mut $engine.ip,
            counters: &mut $engine.counters,
            pool: &mut $engine.pool,
        }
    };
}

macro_rules! lower {
    ($engine:expr, $now:expr) => {
        &mut Lower {
            now: $now,
            ip: &mut $engine.ip,
            counters: &mut $engine.counters,
            pool: &mut $engine.pool,
        }
    };
}

#[derive(Debug)]
pub struct Engine {
    ip: Interface,
    tcp: Tcp,
    udp: Udp,
    pool: Pool,
    counters: Counters,
    /// Whose turn the next frame is.
    udp_first: bool,
    /// Of the last call that had it: for calls that are not told.
    now: Ns,
}

impl Engine {
    /// # Errors
    /// A value of `config` cannot be: [`ConfigError`] says which and what could.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        let ip = Interface::new(&config)?;
        if (config.offload.segmentation_v4 || config.offload.segmentation_v6)
            && !config.offload.checksum
        {
            return Err(ConfigError::SegmentationWithoutChecksum);
        }
        Ok(Engine {
            ip,
            tcp: Tcp::new(&config),
            udp: Udp::new(&config),
            pool: Pool::new(config.memory_bytes),
            counters: Counters::default(),
            udp_first: false,
            now: Ns(0),
        })
    }

    // The device's side.

    /// Takes in one received frame, which may be GRO-sized.
    pub fn receive(&mut self, now: Ns, frame: &[u8], meta: RxMeta) -> Received {
        self.now = now;
        match self.ip.receive(now, frame, meta, &mut self.counters) {
            Input::Reassembled(packet) => {
                let counters = &mut self.counters;
                match self.ip.receive_reassembled(now, &packet, counters) {
                    Input::Tcp(packet, segment) => self.receive_tcp(now, &packet, &segment, 0),
                    Input::Udp(packet, datagram) => self.receive_udp(now, &packet, &datagram),
                    Input::Error(error) => self.icmp_error(now, &error),
                    Input::Reassembled(_) | Input::Done => Received::default(),
                }
            }
            Input::Tcp(packet, segment) => {
                self.receive_tcp(now, &packet, &segment, meta.segment_bytes)
            }
            Input::Error(error) => self.icmp_error(now, &error),
            Input::Udp(packet, datagram) => self.receive_udp(now, &packet, &datagram),
            Input::Done => Received::default(),
        }
    }

    /// Writes the next frame to be sent to the start of `slot`, or returns `None` where there is none now. `slot` must hold an MTU and the
    /// medium's header; one of 65,549 bytes and more is filled with segments for the device to cut, where [`crate::config::TxOffload`] allows it.
    pub fn transmit(&mut self, now: Ns, slot: &mut [u8]) -> Option<TxFrame> {
        self.now = now;
        if self.ip.has_frames()
            && let Some(frame) = self.ip.transmit(slot, &mut self.counters)
        {
            return Some(frame);
        }
        // In turn: bulk of one does not keep the other waiting.
        self.udp_first = !self.udp_first;
        let mut frame = None;
        if self.udp_first {
            frame = self.transmit_udp(now, slot);
        }
        if frame.is_none() {
            frame = self.tcp.transmit(host!(self, now), slot);
        }
        if frame.is_none() && !self.udp_first {
            frame = self.transmit_udp(now, slot);
        }
        // What was sent may have asked for a neighbour's address.
        if frame.is_none() && self.ip.has_frames() {
            return self.ip.transmit(slot, &mut self.counters);
        }
        frame
    }

    /// When [`Engine::advance`] has something to do, at the latest; `None`: not before another call.
    #[must_use]
    pub fn poll_at(&self) -> Option<Ns> {
        let due = [self.ip.poll_at(), self.tcp.poll_at()];
        due.into_iter().flatten().min()
    }

    /// Runs the timers that are due.
    pub fn advance(&mut self, now: Ns) {
        self.now = now;
        self.ip.advance(now, &mut self.counters);
        while let Some(error) = self.ip.next_unreachable() {
            self.icmp_error(now, &error);
        }
        self.tcp.advance(host!(self, now));
    }

    // Sockets.

    /// # Errors
    /// [`SocketError::NoBuffers`]: `max_sockets` are open.
    pub fn socket(&mut self, kind: SocketKind, ipv6: bool) -> Result<SocketId, SocketError> {
        match kind {
            SocketKind::Tcp => self.tcp.socket(ipv6),
            SocketKind::Udp => {
                let sockets = &mut self.tcp.sockets;
                let slot = sockets.insert(Socket::Udp(0), ipv6);
                let slot = slot.ok_or(SocketError::NoBuffers)?;
                let id = sockets.open(slot);
                sockets.put(slot, Socket::Udp(self.udp.open(id, ipv6)));
                Ok(id)
            }
        }
    }

    /// bind(2). Port 0: an ephemeral one.
    ///
    /// # Errors
    /// Invalid (bound already), AddressInUse, AddressNotAvailable, Family, BadSocket.
    pub fn bind(&mut self, id: SocketId, local: SocketAddr) -> Result<(), SocketError> {
        if let Some(index) = self.udp_index(id)? {
            return self.udp.bind(lower!(self, self.now), index, local);
        }
        self.tcp.bind(host!(self, self.now), id, local)
    }

    /// listen(2).
    ///
    /// # Errors
    /// As listen(2).
    pub fn listen(&mut self, id: SocketId, backlog: u32) -> Result<(), SocketError> {
        self.tcp.listen(host!(self, self.now), id, backlog)
    }

    /// accept(2).
    ///
    /// # Errors
    /// WouldBlock, Invalid (not listening), BadSocket.
    pub fn accept(&mut self, id: SocketId) -> Result<(SocketId, SocketAddr), SocketError> {
        self.tcp.accept(id)
    }

    /// connect(2), non-blocking: InProgress, then writable or an error. UDP: at once; `None` disconnects (AF_UNSPEC).
    ///
    /// # Errors
    /// As connect(2).
    pub fn connect(
        &mut self,
        now: Ns,
        id: SocketId,
        peer: Option<SocketAddr>,
    ) -> Result<(), SocketError> {
        self.now = now;
        if let Some(index) = self.udp_index(id)? {
            return self.udp.connect(lower!(self, now), index, peer);
        }
        let peer = peer.ok_or(SocketError::NotSupported)?;
        self.tcp.connect(host!(self, now), id, peer)
    }

    /// send(2) on a connected socket: bytes taken, at least one.
    ///
    /// # Errors
    /// WouldBlock, BrokenPipe, NotConnected, or the connection's error, once.
    pub fn send(
        &mut self,
        now: Ns,
        id: SocketId,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Result<usize, SocketError> {
        self.now = now;
        if let Some(index) = self.udp_index(id)? {
            return self.udp.send_to(lower!(self, now), index, bytes, None);
        }
        self.tcp.send(host!(self, now), id, bytes, flags)
    }

    /// recv(2): 0 at the end of the stream.
    ///
    /// # Errors
    /// WouldBlock, NotConnected, or the connection's error, once.
    pub fn recv(
        &mut self,
        now: Ns,
        id: SocketId,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<usize, SocketError> {
        self.now = now;
        if let Some(index) = self.udp_index(id)? {
            let (len, _) = self.udp.recv_from(&mut self.pool, index, into, flags)?;
            let whole = flags.truncate;
            return Ok(if whole { len } else { len.min(into.len()) });
        }
        self.tcp.recv(host!(self, now), id, into, flags)
    }

    /// UDP: sendto(2).
    ///
    /// # Errors
    /// As sendto(2).
    pub fn send_to(
        &mut self,
        now: Ns,
        id: SocketId,
        bytes: &[u8],
        peer: Option<SocketAddr>,
    ) -> Result<usize, SocketError> {
        self.now = now;
        match self.udp_index(id)? {
            Some(index) => self.udp.send_to(lower!(self, now), index, bytes, peer),
            None => self.send(now, id, bytes, SendFlags::default()),
        }
    }

    /// UDP: recvfrom(2). The count is of the whole datagram; more than `into` holds is discarded (MSG_TRUNC).
    ///
    /// # Errors
    /// As recvfrom(2).
    pub fn recv_from(
        &mut self,
        id: SocketId,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<(usize, SocketAddr), SocketError> {
        let index = self.udp_index(id)?.ok_or(SocketError::NotSupported)?;
        self.udp.recv_from(&mut self.pool, index, into, flags)
    }

    /// shutdown(2).
    ///
    /// # Errors
    /// NotConnected, BadSocket.
    pub fn shutdown(&mut self, now: Ns, id: SocketId, how: HowToShut) -> Result<(), SocketError> {
        self.now = now;
        if let Some(index) = self.udp_index(id)? {
            let shut = self.udp.shutdown(index, how);
            self.tell_changed();
            return shut;
        }
        self.tcp.shutdown(host!(self, now), id, how)
    }

    /// close(2): the id is gone; the connection goes on to its end by itself. Unread bytes make it a reset (RFC 2525, 2.17).
    ///
    /// # Errors
    /// BadSocket.
    pub fn close(&mut self, now: Ns, id: SocketId) -> Result<(), SocketError> {
        self.now = now;
        if let Some(index) = self.udp_index(id)? {
            self.udp.close(index, &mut self.pool);
            self.tcp.sockets.free(id.slot);
            return Ok(());
        }
        self.tcp.close(host!(self, now), id, false)
    }

    /// Ends a connection with RST, whatever its linger says.
    ///
    /// # Errors
    /// BadSocket.
    pub fn abort(&mut self, now: Ns, id: SocketId) -> Result<(), SocketError> {
        self.now = now;
        match self.udp_index(id)? {
            Some(_) => self.close(now, id),
            None => self.tcp.close(host!(self, now), id, true),
        }
    }

    /// # Errors
    /// Invalid, NoOption, BadSocket.
    pub fn set_option(
        &mut self,
        now: Ns,
        id: SocketId,
        option: SocketOption,
    ) -> Result<(), SocketError> {
        self.now = now;
        if let Some(index) = self.udp_index(id)? {
            return self.udp.set_option(index, option);
        }
        self.tcp.set_option(host!(self, now), id, option)
    }

    /// The option of the kind of `like`, whose value does not matter.
    ///
    /// # Errors
    /// NoOption, BadSocket.
    pub fn option(&self, id: SocketId, like: SocketOption) -> Result<SocketOption, SocketError> {
        if let Some(index) = self.udp_index(id)? {
            return self.udp.option(index, like);
        }
        self.tcp.option(id, like)
    }

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

    // What is told.

    /// TCP_INFO.
    ///
    /// # Errors
    /// BadSocket, NoOption (not TCP).
    pub fn tcp_info(&self, now: Ns, id: SocketId) -> Result<TcpInfo, SocketError> {
        self.tcp.info(now, id)
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

    fn receive_tcp(
        &mut self,
        now: Ns,
        packet: &Packet,
        segment: &tcp::Segment,
        segment_bytes: u16,
    ) -> Received {
        let host = host!(self, now);
        Received {
            socket: self.tcp.receive(host, packet, segment, segment_bytes),
            payload_bytes: segment.payload.len() as u32,
        }
    }

    fn transmit_udp(&mut self, now: Ns, slot: &mut [u8]) -> Option<TxFrame> {
        if !self.udp.has_output() {
            return None;
        }
        let frame = self.udp.transmit(lower!(self, now), slot);
        self.tell_changed();
        frame
    }

    fn receive_udp(&mut self, now: Ns, packet: &Packet, datagram: &udp::Datagram) -> Received {
        let received = self.udp.receive(lower!(self, now), packet, datagram);
        self.tell_changed();
        received
    }

    fn icmp_error(&mut self, now: Ns, error: &IcmpError) -> Received {
        match error.protocol {
            protocol::TCP => self.tcp.icmp_error(host!(self, now), error),
            protocol::UDP => {
                self.udp.icmp_error(lower!(self, now), error);
                self.tell_changed();
            }
            _ => {}
        }
        Received::default()
    }

    /// UDP's index of a socket that is one of UDP.
    fn udp_index(&self, id: SocketId) -> Result<Option<u32>, SocketError> {
        let sockets = &self.tcp.sockets;
        Ok(match sockets.get(sockets.index(id)?) {
            Some(Socket::Udp(index)) => Some(*index),
            _ => None,
        })
    }

    fn readiness_of(&self, slot: u32) -> Readiness {
        match self.tcp.sockets.get(slot) {
            Some(Socket::Udp(index)) => self.udp.readiness(*index).unwrap_or_default(),
            _ => self.tcp.readiness(slot),
        }
    }

    fn tell_changed(&mut self) {
        while let Some(id) = self.udp.next_changed() {
            self.tcp.sockets.event(id.slot);
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
