//! The stack as a whole: what its owner calls.
use crate::buffer::Pool;
use crate::frame::{Received, RxMeta, TxFrame};
use crate::ip::{IcmpError, Input, Interface, Packet};
use crate::tcp::{Host, Tcp};
use crate::wire::{protocol, tcp};
use crate::{
    Config, ConfigError, Connection, Counters, Event, HowToShut, Ns, Readiness, RecvFlags,
    SendFlags, SocketError, SocketId, SocketKind, SocketOption, TcpInfo,
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

#[derive(Debug)]
pub struct Engine {
    ip: Interface,
    tcp: Tcp,
    pool: Pool,
    counters: Counters,
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
            pool: Pool::new(config.memory_bytes),
            counters: Counters::default(),
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
                    Input::Error(error) => self.icmp_error(now, &error),
                    _ => Received::default(),
                }
            }
            Input::Tcp(packet, segment) => {
                self.receive_tcp(now, &packet, &segment, meta.segment_bytes)
            }
            Input::Error(error) => self.icmp_error(now, &error),
            Input::Udp(..) | Input::Done => Received::default(),
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
        let frame = self.tcp.transmit(host!(self, now), slot);
        // What TCP sent may have asked for a neighbour's address.
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
            SocketKind::Udp => Err(SocketError::NotSupported),
        }
    }

    /// bind(2). Port 0: an ephemeral one.
    ///
    /// # Errors
    /// Invalid (bound already), AddressInUse, AddressNotAvailable, Family, BadSocket.
    pub fn bind(&mut self, id: SocketId, local: SocketAddr) -> Result<(), SocketError> {
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
        let _ = (now, id, bytes, peer);
        Err(SocketError::NotSupported)
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
        let _ = (id, into, flags);
        Err(SocketError::NotSupported)
    }

    /// shutdown(2).
    ///
    /// # Errors
    /// NotConnected, BadSocket.
    pub fn shutdown(&mut self, now: Ns, id: SocketId, how: HowToShut) -> Result<(), SocketError> {
        self.now = now;
        self.tcp.shutdown(host!(self, now), id, how)
    }

    /// close(2): the id is gone; the connection goes on to its end by itself. Unread bytes make it a reset (RFC 2525, 2.17).
    ///
    /// # Errors
    /// BadSocket.
    pub fn close(&mut self, now: Ns, id: SocketId) -> Result<(), SocketError> {
        self.now = now;
        self.tcp.close(host!(self, now), id, false)
    }

    /// Ends a connection with RST, whatever its linger says.
    ///
    /// # Errors
    /// BadSocket.
    pub fn abort(&mut self, now: Ns, id: SocketId) -> Result<(), SocketError> {
        self.now = now;
        self.tcp.close(host!(self, now), id, true)
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
        self.tcp.set_option(host!(self, now), id, option)
    }

    /// The option of the kind of `like`, whose value does not matter.
    ///
    /// # Errors
    /// NoOption, BadSocket.
    pub fn option(&self, id: SocketId, like: SocketOption) -> Result<SocketOption, SocketError> {
        self.tcp.option(id, like)
    }

    /// SO_ERROR: tells and clears it.
    ///
    /// # Errors
    /// BadSocket.
    pub fn take_error(&mut self, id: SocketId) -> Result<Option<SocketError>, SocketError> {
        self.tcp.take_error(id)
    }

    /// # Errors
    /// BadSocket.
    pub fn readiness(&self, id: SocketId) -> Result<Readiness, SocketError> {
        Ok(self.tcp.readiness(self.tcp.sockets.index(id)?))
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
            readiness: self.tcp.readiness(slot),
        })
    }

    /// # Errors
    /// BadSocket.
    pub fn local_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        self.tcp.local_address(id)
    }

    /// # Errors
    /// NotConnected, BadSocket.
    pub fn peer_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        self.tcp.peer_address(id)
    }

    /// FIONREAD: bytes that recv would give (UDP: of the next datagram).
    ///
    /// # Errors
    /// BadSocket.
    pub fn unread_bytes(&self, id: SocketId) -> Result<u32, SocketError> {
        self.tcp.unread_bytes(id)
    }

    /// SIOCOUTQ: bytes that the peer has not acknowledged; SIOCOUTQNSD: of them not sent.
    ///
    /// # Errors
    /// BadSocket.
    pub fn unacknowledged_bytes(&self, id: SocketId) -> Result<(u32, u32), SocketError> {
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
        self.tcp.connections(now)
    }

    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes of all buffers now, and of all tables.
    #[must_use]
    pub fn memory_bytes(&self) -> (u64, u64) {
        let tables = self.tcp.memory_bytes() + self.ip.memory_bytes();
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

    fn icmp_error(&mut self, now: Ns, error: &IcmpError) -> Received {
        if error.protocol == protocol::TCP {
            self.tcp.icmp_error(host!(self, now), error);
        }
        Received::default()
    }
}
