//! Socket calls on UDP sockets.
use super::datagrams::counted;
use super::queued::Queued;
use super::state::{Lower, Udp};
use crate::buffer::Pool;
use crate::wire::udp::{HEADER_BYTES, MAX_PAYLOAD_V4, MAX_PAYLOAD_V6};
use crate::{
    HowToShut, Inbound, MtuDiscovery, Outbound, Readiness, RecvFlags, SocketError, SocketOption,
};
use std::net::{IpAddr, SocketAddr};

impl Udp {
    /// sendto(2), with what sendmsg(2) may say of one datagram.
    ///
    /// # Errors
    /// As sendto(2).
    pub(crate) fn send_to(
        &mut self,
        lower: &mut Lower,
        index: u32,
        payload: &[u8],
        outbound: &Outbound,
    ) -> Result<usize, SocketError> {
        self.get(index)?;
        // Whatever becomes of the datagram (inet_send_prepare).
        self.autobind(lower, index)?;
        let (peer, source) = self.addresses(lower, index, payload.len(), outbound)?;
        let socket = self.get_mut(index)?;
        // Last, as sock_alloc_send_pskb looks at them.
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        if socket.shut_write {
            return Err(SocketError::BrokenPipe);
        }
        let counts = counted(payload.len());
        // One datagram always has room (sock_alloc_send_pskb).
        if socket.queued_bytes >= socket.options.send_buffer as usize {
            socket.wants_room = true;
            return Err(SocketError::WouldBlock);
        }
        let queued = Queued::new(socket, index, (source, peer), outbound);
        let queued = self.outgoing.push(lower.pool, queued, payload);
        lower.counters.memory_pressures = lower.pool.pressures();
        if !queued {
            lower.counters.udp_sndbuf_errors += 1;
            return Err(SocketError::NoBuffers);
        }
        self.get_mut(index)?.queued_bytes += counts;
        Ok(payload.len())
    }

    /// Where a datagram goes, and from which address.
    fn addresses(
        &self,
        lower: &Lower,
        index: u32,
        payload_bytes: usize,
        outbound: &Outbound,
    ) -> Result<(SocketAddr, SocketAddr), SocketError> {
        let socket = self.get(index)?;
        // First of IPv4's sockets alone (udp_sendmsg).
        if !socket.ipv6 && payload_bytes > usize::from(u16::MAX) {
            return Err(SocketError::MessageTooLong);
        }
        let peer = match outbound.peer {
            Some(peer) if peer.port() == 0 => return Err(SocketError::Invalid),
            Some(peer) => socket.canonical(peer)?,
            // connect(2) takes port 0.
            None => socket.peer.ok_or(SocketError::DestinationRequired)?,
        };
        if peer.ip().is_unspecified() {
            return Err(SocketError::Invalid);
        }
        let mut source = socket.local;
        if let Some(asked) = outbound.source.map(|ip| ip.to_canonical()) {
            if asked.is_ipv4() != peer.is_ipv4() {
                return Err(SocketError::Invalid);
            }
            if !lower.ip.is_local(asked) {
                return Err(match asked {
                    IpAddr::V4(_) => SocketError::NetworkUnreachable,
                    IpAddr::V6(_) => SocketError::Invalid,
                });
            }
            source.set_ip(asked);
        } else if source.ip().is_unspecified() || source.is_ipv4() != peer.is_ipv4() {
            if !source.ip().is_unspecified() {
                return Err(SocketError::NetworkUnreachable);
            }
            source.set_ip(lower.ip.source_for(peer.ip())?);
        } else {
            lower.ip.source_for(peer.ip())?;
        }
        if source.ip().is_loopback() && !lower.ip.is_local(peer.ip()) {
            return Err(SocketError::Invalid);
        }
        if lower.ip.is_group(peer.ip()) && !peer.ip().is_multicast() {
            // Without SO_BROADCAST, which there is none of.
            return Err(SocketError::Access);
        }
        if payload_bytes > self.longest_payload(lower, index, peer.ip())? {
            return Err(SocketError::MessageTooLong);
        }
        Ok((peer, source))
    }

    /// To there, with IP_MTU_DISCOVER or IPV6_MTU_DISCOVER of the socket, in bytes; longer ones are refused (EMSGSIZE).
    ///
    /// # Errors
    /// BadSocket.
    pub(crate) fn longest_payload(
        &self,
        lower: &Lower,
        index: u32,
        peer: IpAddr,
    ) -> Result<usize, SocketError> {
        let peer = peer.to_canonical();
        let unfragmented = match self.get(index)?.options.header.mtu_discovery(peer) {
            MtuDiscovery::Do => Some(lower.ip.mtu(lower.now, peer)),
            MtuDiscovery::Probe | MtuDiscovery::Interface => Some(lower.ip.link_mtu()),
            MtuDiscovery::Want | MtuDiscovery::Dont | MtuDiscovery::Omit => None,
        };
        let (longest, headers) = match peer {
            IpAddr::V4(_) => (MAX_PAYLOAD_V4, HEADER_BYTES + 20),
            IpAddr::V6(_) => (MAX_PAYLOAD_V6, HEADER_BYTES + 40),
        };
        Ok(unfragmented.map_or(longest, |mtu| {
            usize::from(mtu).saturating_sub(headers).min(longest)
        }))
    }

    /// recvmsg(2). After a shutdown for reading, too, WouldBlock says that nothing is there: Linux' calls that would wait return
    /// nothing then, and those that would not fail with EAGAIN.
    ///
    /// # Errors
    /// WouldBlock, BadSocket, or the socket's error, once.
    pub(crate) fn receive_next(
        &mut self,
        pool: &mut Pool,
        index: u32,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<Inbound, SocketError> {
        let socket = self.get_mut(index)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let (arrived, len) = socket.received.front().ok_or(SocketError::WouldBlock)?;
        let inbound = Inbound {
            len,
            peer: socket.shown(arrived.peer),
            to: socket.shown(SocketAddr::new(arrived.to, 0)).ip(),
            hop_limit: arrived.hop_limit,
            traffic_class: arrived.traffic_class,
        };
        let copied = len.min(into.len());
        socket.received.copy_front(0, &mut into[..copied]);
        if !flags.peek {
            socket.received.pop(pool);
        }
        Ok(inbound)
    }

    /// shutdown(2).
    ///
    /// # Errors
    /// NotConnected, BadSocket.
    pub(crate) fn shutdown(&mut self, index: u32, how: HowToShut) -> Result<(), SocketError> {
        let socket = self.get_mut(index)?;
        // Linux says ENOTCONN, and shuts it down all the same: whoever waits on it finds that out.
        let connected = socket.peer.ok_or(SocketError::NotConnected);
        socket.shut_read |= matches!(how, HowToShut::Read | HowToShut::Both);
        socket.shut_write |= matches!(how, HowToShut::Write | HowToShut::Both);
        self.change(index);
        connected.map(drop)
    }

    /// # Errors
    /// Invalid, NoOption, BadSocket.
    pub(crate) fn set_option(
        &mut self,
        index: u32,
        option: SocketOption,
    ) -> Result<(), SocketError> {
        let buffers = self.buffers;
        let socket = self.get_mut(index)?;
        let is_bound = socket.local.port() != 0;
        socket.options.set(option, is_bound, &buffers)
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

    /// IP_MTU: of the path to the connected peer.
    ///
    /// # Errors
    /// NotConnected, BadSocket.
    pub(crate) fn path_mtu(&self, lower: &mut Lower, index: u32) -> Result<u16, SocketError> {
        let peer = self.get(index)?.peer.ok_or(SocketError::NotConnected)?;
        Ok(lower.ip.mtu(lower.now, peer.ip()))
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
