//! send, recv, shutdown, close.
use super::state::{Host, Tcp, context};
use crate::info::TcpState;
use crate::tcp::replies::{self, Reply};
use crate::tcp::sockets::Socket;
use crate::wire::tcp::Flags;
use crate::{HowToShut, Readiness, RecvFlags, SendFlags, SocketError, SocketId};
use std::net::SocketAddr;

impl Tcp {
    /// # Errors
    /// As send(2).
    pub(crate) fn send(
        &mut self,
        host: &mut Host,
        id: SocketId,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Result<usize, SocketError> {
        let slot = self.sockets.index(id)?;
        let connection = match self.sockets.get_mut(slot) {
            Some(Socket::Connection(connection)) => connection,
            Some(Socket::Connecting(connecting)) if connecting.shut_write => {
                return Err(SocketError::BrokenPipe);
            }
            Some(Socket::Connecting(_)) => return Err(SocketError::WouldBlock),
            Some(Socket::Idle(idle)) => {
                return Err(idle.error.take().unwrap_or(SocketError::BrokenPipe));
            }
            _ => return Err(SocketError::BrokenPipe),
        };
        let sent = connection.send(&mut context!(self, host), bytes, flags);
        if connection.is_starved(host.pool) && !connection.send.starved {
            connection.send.starved = true;
            self.starved.push_back(slot);
        }
        self.settle(host, slot);
        sent
    }

    /// # Errors
    /// As recv(2).
    pub(crate) fn recv(
        &mut self,
        host: &mut Host,
        id: SocketId,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<usize, SocketError> {
        let slot = self.sockets.index(id)?;
        match self.sockets.get_mut(slot) {
            Some(Socket::Connection(connection)) => {
                let received = connection.recv(&mut context!(self, host), into, flags);
                if connection.ack.now {
                    self.settle(host, slot);
                }
                received
            }
            Some(Socket::Connecting(_)) => Err(SocketError::WouldBlock),
            Some(Socket::Idle(idle)) => match idle.error.take() {
                Some(error) => Err(error),
                None if idle.failed => Ok(0),
                None => Err(SocketError::NotConnected),
            },
            _ => Err(SocketError::NotConnected),
        }
    }

    /// # Errors
    /// NotConnected, BadSocket.
    pub(crate) fn shutdown(
        &mut self,
        host: &mut Host,
        id: SocketId,
        how: HowToShut,
    ) -> Result<(), SocketError> {
        let slot = self.sockets.index(id)?;
        match self.sockets.get_mut(slot) {
            Some(Socket::Connection(connection)) if connection.state != TcpState::Closed => {
                connection.shut(how);
                self.settle(host, slot);
                Ok(())
            }
            Some(Socket::Connecting(_)) => {
                // The attempt ends, and another one may begin (tcp_disconnect in net/ipv4/tcp.c).
                self.connecting_failed(host, slot, SocketError::Reset);
                if let Some(Socket::Idle(idle)) = self.sockets.get_mut(slot) {
                    idle.failed = false;
                }
                Ok(())
            }
            Some(Socket::Listener(_)) => {
                if how != HowToShut::Write {
                    self.stop_listening(host, slot);
                }
                Ok(())
            }
            _ => Err(SocketError::NotConnected),
        }
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn close(
        &mut self,
        host: &mut Host,
        id: SocketId,
        abort: bool,
    ) -> Result<(), SocketError> {
        let slot = self.sockets.index(id)?;
        match self.sockets.get_mut(slot) {
            Some(Socket::Connection(_)) => self.close_connection(host, slot, abort),
            Some(Socket::Connecting(connecting)) => {
                if connecting.state() == TcpState::SynReceived {
                    // RFC 9293, 3.10.4: nothing was written; Linux sends FIN, the peer has at most a half open connection.
                    let reply = reset_of_connecting(connecting);
                    context!(self, host).reply(reply);
                }
                self.connecting_failed(host, slot, SocketError::Aborted);
                self.free_idle(slot);
            }
            Some(Socket::Listener(_)) => {
                self.stop_listening(host, slot);
                self.free_idle(slot);
            }
            _ => self.free_idle(slot),
        }
        Ok(())
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn abandon(&mut self, id: SocketId) -> Result<(), SocketError> {
        let slot = self.sockets.index(id)?;
        if let Some(connection) = self.sockets.connection_mut(slot) {
            connection.abandoned = true;
        }
        Ok(())
    }

    fn close_connection(&mut self, host: &mut Host, slot: u32, abort: bool) {
        self.sockets.shut(slot);
        let Some(connection) = self.sockets.connection_mut(slot) else {
            return;
        };
        let mut cx = context!(self, host);
        if abort {
            connection.orphan = true;
            connection.abort(&mut cx);
        } else {
            connection.close(&mut cx);
            let goes_on = !matches!(connection.state, TcpState::Closed | TcpState::TimeWait);
            // Linux tcp_check_oom.
            let no_memory = connection.is_too_large(cx.pool);
            if goes_on && (self.orphans >= cx.config.orphans_max || no_memory) {
                cx.counters.abort_on_memory += 1;
                connection.abort(&mut cx);
            } else if goes_on {
                connection.counted = true;
                self.orphans += 1;
            }
        }
        self.settle(host, slot);
    }

    fn free_idle(&mut self, slot: u32) {
        if let Some(Socket::Idle(idle)) = self.sockets.free(slot)
            && let Some((_, port)) = idle.bound
        {
            self.ports.release(port, slot);
        }
    }

    /// Connections that were not accepted are reset, requests forgotten (Linux inet_csk_listen_stop).
    fn stop_listening(&mut self, host: &mut Host, slot: u32) {
        let Some(listener) = self.sockets.listener_mut(slot) else {
            return;
        };
        let accepts = std::mem::take(&mut listener.accepts);
        let (id, port) = (listener.id, listener.port);
        let (address, ipv6, options) = (listener.address, listener.ipv6, listener.options);
        self.listeners.remove(slot, port);
        let requests: Vec<u32> = self.requests.indices(|r| r.listener == id).collect();
        for index in requests {
            self.remove_request(index);
        }
        for accepted in accepts {
            self.close_connection(host, accepted, true);
        }
        let idle = crate::tcp::sockets::Idle {
            ipv6,
            options,
            bound: Some((address, port)),
            error: None,
            failed: false,
        };
        self.sockets.put(slot, Socket::Idle(Box::new(idle)));
        self.sockets.event(slot);
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn take_error(&mut self, id: SocketId) -> Result<Option<SocketError>, SocketError> {
        let slot = self.sockets.index(id)?;
        Ok(match self.sockets.get_mut(slot) {
            Some(Socket::Connection(connection)) => connection
                .error
                .take()
                .or_else(|| connection.soft_error.take()),
            Some(Socket::Idle(idle)) => idle.error.take(),
            _ => None,
        })
    }

    /// tcp_poll.
    pub(crate) fn readiness(&self, slot: u32) -> Readiness {
        match self.sockets.get(slot) {
            Some(Socket::Connection(connection)) => connection.readiness(),
            Some(Socket::Listener(listener)) => Readiness {
                readable: !listener.accepts.is_empty(),
                ..Readiness::default()
            },
            Some(Socket::Idle(idle)) => Readiness {
                readable: idle.failed,
                writable: true,
                read_hangup: idle.failed,
                hangup: true,
                error: idle.error.is_some(),
            },
            _ => Readiness::default(),
        }
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn local_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        let slot = self.sockets.index(id)?;
        let any = |bound: Option<_>| bound.unwrap_or((crate::tcp::tuple::Address::ANY, 0));
        let (address, port) = match self.sockets.get(slot) {
            Some(Socket::Connection(connection)) => {
                return Ok(self.shown(slot, connection.tuple.local()));
            }
            Some(Socket::Connecting(connecting)) => {
                return Ok(self.shown(slot, connecting.tuple.local()));
            }
            Some(Socket::Listener(listener)) => (listener.address, listener.port),
            Some(Socket::Idle(idle)) => any(idle.bound),
            _ => return Err(SocketError::BadSocket),
        };
        let is_v4_any = address == crate::tcp::tuple::Address::ANY && !self.sockets.is_ipv6(slot);
        let ip = if is_v4_any {
            [0u8; 4].into()
        } else {
            address.into()
        };
        Ok(self.shown(slot, SocketAddr::new(ip, port)))
    }

    /// # Errors
    /// NotConnected, BadSocket.
    pub(crate) fn peer_address(&self, id: SocketId) -> Result<SocketAddr, SocketError> {
        let slot = self.sockets.index(id)?;
        match self.sockets.connection(slot) {
            Some(connection) if connection.state != TcpState::Closed => {
                Ok(self.shown(slot, connection.tuple.peer()))
            }
            _ => Err(SocketError::NotConnected),
        }
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn unread_bytes(&self, id: SocketId) -> Result<u32, SocketError> {
        let connection = self.sockets.connection(self.sockets.index(id)?);
        Ok(connection.map_or(0, |c| c.receive.buffer.readable() as u32))
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn unacknowledged_bytes(&self, id: SocketId) -> Result<(u32, u32), SocketError> {
        let connection = self.sockets.connection(self.sockets.index(id)?);
        Ok(connection.map_or((0, 0), |c| (c.send.buffer.len() as u32, c.unsent_bytes())))
    }
}

fn reset_of_connecting(connecting: &crate::tcp::connecting::Connecting) -> Reply {
    let (header, peer) = (&connecting.options.header, connecting.tuple.peer.into());
    Reply {
        tuple: connecting.tuple,
        header: replies::header(
            &connecting.tuple,
            connecting.iss + 1,
            crate::tcp::seq::Seq(0),
            Flags::RST,
        ),
        hop_limit: header.hop_limit(peer),
        traffic_class: header.traffic_class(peer),
    }
}
