//! Socket calls on UDP sockets.
use super::datagrams::counted;
use super::queued::Queued;
use super::state::{Lower, Udp};
use crate::buffer::Pool;
use crate::wire::udp::{MAX_PAYLOAD_V4, MAX_PAYLOAD_V6};
use crate::{HowToShut, Readiness, RecvFlags, SocketError, SocketOption};
use std::net::SocketAddr;

impl Udp {
    /// sendto(2); `None`: to the connected peer.
    ///
    /// # Errors
    /// As sendto(2).
    pub(crate) fn send_to(
        &mut self,
        lower: &mut Lower,
        index: u32,
        payload: &[u8],
        peer: Option<SocketAddr>,
    ) -> Result<usize, SocketError> {
        let socket = self.get_mut(index)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        if socket.shut_write {
            return Err(SocketError::BrokenPipe);
        }
        let peer = match peer {
            Some(peer) => socket.canonical(peer)?,
            None => socket.peer.ok_or(SocketError::DestinationRequired)?,
        };
        let most = match peer {
            SocketAddr::V4(_) => MAX_PAYLOAD_V4,
            SocketAddr::V6(_) => MAX_PAYLOAD_V6,
        };
        if payload.len() > most {
            return Err(SocketError::MessageTooLong);
        }
        if peer.port() == 0 || peer.ip().is_unspecified() {
            return Err(SocketError::Invalid);
        }
        if lower.ip.is_group(peer.ip()) && !peer.ip().is_multicast() {
            // Without SO_BROADCAST, which there is none of.
            return Err(SocketError::Access);
        }
        let counts = counted(payload.len());
        // One datagram always has room (sock_alloc_send_pskb).
        if socket.queued_bytes >= socket.options.send_buffer as usize {
            socket.wants_room = true;
            return Err(SocketError::WouldBlock);
        }
        self.autobind(lower, index)?;
        let socket = self.get(index)?;
        let mut source = socket.local;
        if source.ip().is_unspecified() || source.is_ipv4() != peer.is_ipv4() {
            if !source.ip().is_unspecified() {
                return Err(SocketError::NetworkUnreachable);
            }
            source.set_ip(lower.ip.source_for(peer.ip())?);
        }
        let queued = Queued::new(socket, index, source, peer);
        let queued = self.outgoing.push(lower.pool, queued, payload);
        lower.counters.memory_pressures = lower.pool.pressures();
        if !queued {
            lower.counters.udp_sndbuf_errors += 1;
            return Err(SocketError::NoBuffers);
        }
        self.get_mut(index)?.queued_bytes += counts;
        Ok(payload.len())
    }

    /// recvfrom(2). The count is of the whole datagram; more than `into` holds is discarded.
    ///
    /// # Errors
    /// WouldBlock, BadSocket, or the socket's error, once.
    pub(crate) fn recv_from(
        &mut self,
        pool: &mut Pool,
        index: u32,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<(usize, SocketAddr), SocketError> {
        let socket = self.get_mut(index)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let Some((peer, len)) = socket.received.front() else {
            return match socket.shut_read {
                true => Ok((0, socket.shown(socket.peer.unwrap_or(socket.local)))),
                false => Err(SocketError::WouldBlock),
            };
        };
        let peer = socket.shown(*peer);
        let copied = len.min(into.len());
        socket.received.copy_front(0, &mut into[..copied]);
        if !flags.peek {
            socket.received.pop(pool);
        }
        Ok((len, peer))
    }

    /// shutdown(2).
    ///
    /// # Errors
    /// NotConnected, BadSocket.
    pub(crate) fn shutdown(&mut self, index: u32, how: HowToShut) -> Result<(), SocketError> {
        let socket = self.get_mut(index)?;
        socket.peer.ok_or(SocketError::NotConnected)?;
        socket.shut_read |= matches!(how, HowToShut::Read | HowToShut::Both);
        socket.shut_write |= matches!(how, HowToShut::Write | HowToShut::Both);
        self.change(index);
        Ok(())
    }

    /// # Errors
    /// Invalid, NoOption, BadSocket.
    pub(crate) fn set_option(
        &mut self,
        index: u32,
        option: SocketOption,
    ) -> Result<(), SocketError> {
        let socket = self.get_mut(index)?;
        let is_bound = socket.local.port() != 0;
        socket.options.set(option, is_bound)
    }

    /// # Errors
    /// NoOption, BadSocket.
    pub(crate) fn option(
        &self,
        index: u32,
        like: SocketOption,
    ) -> Result<SocketOption, SocketError> {
        self.get(index)?.options.get(like)
    }

    /// SO_ERROR.
    ///
    /// # Errors
    /// BadSocket.
    pub(crate) fn take_error(&mut self, index: u32) -> Result<Option<SocketError>, SocketError> {
        Ok(self.get_mut(index)?.error.take())
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn readiness(&self, index: u32) -> Result<Readiness, SocketError> {
        Ok(self.get(index)?.readiness())
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn local_address(&self, index: u32) -> Result<SocketAddr, SocketError> {
        let socket = self.get(index)?;
        Ok(socket.shown(socket.local))
    }

    /// # Errors
    /// NotConnected, BadSocket.
    pub(crate) fn peer_address(&self, index: u32) -> Result<SocketAddr, SocketError> {
        let socket = self.get(index)?;
        let peer = socket.peer.ok_or(SocketError::NotConnected)?;
        Ok(socket.shown(peer))
    }

    /// FIONREAD: of the next datagram.
    ///
    /// # Errors
    /// BadSocket.
    pub(crate) fn unread_bytes(&self, index: u32) -> Result<u32, SocketError> {
        let front = self.get(index)?.received.front();
        Ok(front.map_or(0, |(_, len)| len as u32))
    }

    /// What its datagrams count that are received, and that wait to be sent: `ss`' Recv-Q and Send-Q.
    ///
    /// # Errors
    /// BadSocket.
    pub(crate) fn queues(&self, index: u32) -> Result<(u32, u32), SocketError> {
        let socket = self.get(index)?;
        let received = socket.received.counted_bytes();
        Ok((received as u32, socket.queued_bytes as u32))
    }
}
