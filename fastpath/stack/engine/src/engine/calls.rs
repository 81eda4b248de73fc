//! Socket calls.
use super::state::{Engine, host, lower};
use crate::tcp::Socket;
use crate::{
    HowToShut, Inbound, Ns, Outbound, RecvFlags, SendFlags, SocketError, SocketId, SocketKind,
    SocketOption,
};
use std::net::SocketAddr;

impl Engine {
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

    /// UDP: a port at every address that whoever owns the stack has chosen, as if it was chosen here (it does not survive a disconnect).
    ///
    /// # Errors
    /// Invalid (bound already, or port 0), AddressInUse, BadSocket.
    pub fn take_port(&mut self, id: SocketId, port: u16) -> Result<(), SocketError> {
        let index = self.udp_index(id)?.ok_or(SocketError::NotSupported)?;
        self.udp.take_port(index, port)
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

    /// Which of the device's engines a connection to `peer` belongs to: this one, where the socket has no port yet.
    ///
    /// # Errors
    /// As connect(2).
    pub fn owner_of_connection(&self, id: SocketId, peer: SocketAddr) -> Result<u16, SocketError> {
        self.tcp.owner(&self.ip, id, peer)
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
            let outbound = Outbound::default();
            return self.udp.send_to(lower!(self, now), index, bytes, &outbound);
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
            let inbound = self.udp.receive_next(&mut self.pool, index, into, flags)?;
            let len = inbound.len;
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
        let outbound = Outbound {
            peer,
            ..Outbound::default()
        };
        self.send_datagram(now, id, bytes, &outbound)
    }

    /// UDP: sendmsg(2).
    ///
    /// # Errors
    /// As sendmsg(2).
    pub fn send_datagram(
        &mut self,
        now: Ns,
        id: SocketId,
        bytes: &[u8],
        outbound: &Outbound,
    ) -> Result<usize, SocketError> {
        self.now = now;
        match self.udp_index(id)? {
            Some(index) => self.udp.send_to(lower!(self, now), index, bytes, outbound),
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
        let inbound = self.recv_datagram(id, into, flags)?;
        Ok((inbound.len, inbound.peer))
    }

    /// UDP: recvmsg(2).
    ///
    /// # Errors
    /// As recvmsg(2). After a shutdown for reading WouldBlock, too, where nothing is there.
    pub fn recv_datagram(
        &mut self,
        id: SocketId,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<Inbound, SocketError> {
        let index = self.udp_index(id)?.ok_or(SocketError::NotSupported)?;
        self.udp.receive_next(&mut self.pool, index, into, flags)
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

    /// Nobody is left who would hear how the connection ends; what was written to it before is still sent. It is given up as soon as a
    /// closed one is.
    ///
    /// # Errors
    /// BadSocket.
    pub fn abandon(&mut self, id: SocketId) -> Result<(), SocketError> {
        self.tcp.abandon(id)
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
}
