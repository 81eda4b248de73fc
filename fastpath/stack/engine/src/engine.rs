//! The stack as a whole: what its owner calls.
use crate::frame::{Received, RxMeta, TxFrame};
use crate::{
    Config, ConfigError, Connection, Counters, Event, HowToShut, Ns, Readiness, RecvFlags,
    SendFlags, SocketError, SocketId, SocketKind, SocketOption, TcpInfo,
};
use std::net::SocketAddr;

pub struct Engine {}

#[allow(unused_variables)]
impl Engine {
    /// # Errors
    /// A value of `config` cannot be: [`ConfigError`] says which and what could.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        todo!()
    }

    // The device's side.

    /// Takes in one received frame, which may be GRO-sized.
    pub fn receive(&mut self, now: Ns, frame: &[u8], meta: RxMeta) -> Received {
        todo!()
    }

    /// Writes the next frame to be sent to the start of `slot`, or returns `None` where there is none now. `slot` must hold an MTU and the
    /// medium's header; one of 65,549 bytes and more is filled with segments for the device to cut, where [`crate::config::TxOffload`] allows it.
    pub fn transmit(&mut self, now: Ns, slot: &mut [u8]) -> Option<TxFrame> {
        todo!()
    }

    /// When [`Engine::advance`] has something to do, at the latest; `None`: not before another call.
    #[must_use]
    pub fn poll_at(&self) -> Option<Ns> {
        todo!()
    }

    /// Runs the timers that are due.
    pub fn advance(&mut self, now: Ns) {
        todo!()
    }

    // Sockets.

    /// # Errors
    /// [`SocketError::NoBuffers`]: `max_sockets` are open.
    pub fn socket(&mut self, kind: SocketKind, ipv6: bool) -> Result<SocketId, SocketError> {
        todo!()
    }

    /// bind(2). Port 0: an ephemeral one.
    ///
    /// # Errors
    /// Invalid (bound already), AddressInUse, AddressNotAvailable, Family, BadSocket.
    pub fn bind(&mut self, id: SocketId, local: SocketAddr) -> Result<(), SocketError> {
        todo!()
    }

    /// listen(2).
    ///
    /// # Errors
    /// As listen(2).
    pub fn listen(&mut self, id: SocketId, backlog: u32) -> Result<(), SocketError> {
        todo!()
    }

    /// accept(2).
    ///
    /// # Errors
    /// WouldBlock, Invalid (not listening), BadSocket.
    pub fn accept(&mut self, id: SocketId) -> Result<(SocketId, SocketAddr), SocketError> {
        todo!()
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
        todo!()
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
        todo!()
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
        todo!()
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
        todo!()
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
        todo!()
    }

    /// shutdown(2).
    ///
    /// # Errors
    /// NotConnected, BadSocket.
    pub fn shutdown(&mut self, now: Ns, id: SocketId, how: HowToShut) -> Result<(), SocketError> {
        todo!()
    }

    /// close(2): the id is gone; the connection goes on to its end by itself. Unread bytes make it a reset (RFC 2525, 2.17).
    ///
    /// # Errors
    /// BadSocket.
    pub fn close(&mut self, now: Ns, id: SocketId) -> Result<(), SocketError> {
        todo!()
    }

    /// Ends a connection with RST, whatever its linger says.
    ///
    /// # Errors
    /// BadSocket.
    pub fn abort(&mut self, now: Ns, id: SocketId) -> Result<(), SocketError> {
        todo!()
    }

    /// # Errors
    /// Invalid, NoOption, BadSocket.
    pub fn set_option(
        &mut self,
        now: Ns,
        id: SocketId,
        option: SocketOption,
    ) -> Result<(), SocketError> {
        todo!()
    }

    /// The option of the kind of `like`, whose value does not matter.
    ///
    /// # Errors
    /// NoOption, BadSocket.
    pub fn option(&self, id: SocketId, like: SocketOption) -> Result<SocketOption, SocketError> {
        todo!()
    }

    /// SO_ERROR: tells and clears it.
    ///
    /// # Errors
    /// BadSocket.
    pub fn take_error(&mut self, id: SocketId) -> Result<Option<SocketError>, SocketError> {
        todo!()
    }

    /// # Errors
    /// BadSocket.
    pub fn readiness(&self, id: SocketId) -> Result<Readiness, SocketError> {
        todo!()
    }

    /// What the socket's [`Event`]s carry from now on.
    ///
    /// # Errors
    /// BadSocket.
    pub fn set_token(&mut self, id: SocketId, token: u64) -> Result<(), SocketError> {
        todo!()
    }

    /// The oldest event that was not drained.
    pub fn next_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// # Errors
    /// BadSocket.
    pub fn local_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        todo!()
    }

    /// # Errors
    /// NotConnected, BadSocket.
    pub fn peer_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        todo!()
    }

    /// FIONREAD: bytes that recv would give (UDP: of the next datagram).
    ///
    /// # Errors
    /// BadSocket.
    pub fn unread_bytes(&self, id: SocketId) -> Result<u32, SocketError> {
        todo!()
    }

    /// SIOCOUTQ: bytes that the peer has not acknowledged; SIOCOUTQNSD: of them not sent.
    ///
    /// # Errors
    /// BadSocket.
    pub fn unacknowledged_bytes(&self, id: SocketId) -> Result<(u32, u32), SocketError> {
        todo!()
    }

    // What is told.

    /// TCP_INFO.
    ///
    /// # Errors
    /// BadSocket, NoOption (not TCP).
    pub fn tcp_info(&self, now: Ns, id: SocketId) -> Result<TcpInfo, SocketError> {
        todo!()
    }

    /// All sockets, requests and TIME-WAITs.
    pub fn connections(&self, now: Ns) -> impl Iterator<Item = Connection> + '_ {
        std::iter::empty()
    }

    #[must_use]
    pub fn counters(&self) -> &Counters {
        todo!()
    }

    /// Bytes of all buffers now, and of all tables.
    #[must_use]
    pub fn memory_bytes(&self) -> (u64, u64) {
        todo!()
    }
}
