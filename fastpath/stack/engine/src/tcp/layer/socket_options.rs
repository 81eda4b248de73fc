//! setsockopt and getsockopt.
use super::state::{Host, Tcp};
use crate::tcp::connection::Connection;
use crate::tcp::sockets::Socket;
use crate::{Ns, SocketError, SocketId, SocketOption};

impl Tcp {
    /// # Errors
    /// Invalid, BadSocket.
    pub(crate) fn set_option(
        &mut self,
        host: &mut Host,
        id: SocketId,
        option: SocketOption,
    ) -> Result<(), SocketError> {
        let slot = self.sockets.index(id)?;
        let config = &self.config;
        let ipv6 = self.sockets.is_ipv6(slot);
        let socket = self.sockets.get_mut(slot);
        let is_fresh = matches!(&socket, Some(Socket::Idle(idle)) if idle.bound.is_none());
        match option {
            SocketOption::V6Only(_) if !ipv6 => return Err(SocketError::NoOption),
            SocketOption::V6Only(_) if !is_fresh => return Err(SocketError::Invalid),
            _ => {}
        }
        match socket {
            Some(Socket::Idle(idle)) => idle.options.set(option, config),
            // The least that is (tcp_set_window_clamp).
            Some(_) if option == SocketOption::WindowClamp(0) => Err(SocketError::Invalid),
            Some(Socket::Listener(listener)) => listener.options.set(option, config),
            Some(Socket::Connecting(connecting)) => connecting.options.set(option, config),
            Some(Socket::Connection(connection)) => {
                connection.options.set(option, config)?;
                apply(connection, host.now, option);
                self.settle(host, slot);
                Ok(())
            }
            _ => Err(SocketError::NoOption),
        }
    }

    /// # Errors
    /// BadSocket, NoOption (UDP's).
    pub(crate) fn option(
        &self,
        id: SocketId,
        like: SocketOption,
    ) -> Result<SocketOption, SocketError> {
        let config = &self.config.tcp;
        Ok(match self.sockets.get(self.sockets.index(id)?) {
            Some(Socket::Idle(idle)) => idle.options.get(like, config),
            Some(Socket::Listener(listener)) => listener.options.get(like, config),
            Some(Socket::Connecting(connecting)) => connecting.options.get(like, config),
            Some(Socket::Connection(connection)) => {
                told(connection, like).unwrap_or_else(|| connection.options.get(like, config))
            }
            _ => return Err(SocketError::NoOption),
        })
    }
}

/// What an option changes at once.
fn apply(connection: &mut Connection, now: Ns, option: SocketOption) {
    match option {
        SocketOption::KeepAlive(_) | SocketOption::KeepIdle(_) | SocketOption::KeepInterval(_) => {
            connection.restart_keep_alive(now);
        }
        SocketOption::QuickAck(on) => connection.ack.set_quick(on),
        SocketOption::Congestion(congestion) => connection.sender.set_congestion(congestion),
        SocketOption::Cork(false) | SocketOption::NoDelay(true) => {
            // What waited goes out now.
            connection.send.hold = false;
            connection.send.force = connection.unsent_bytes() > 0;
        }
        SocketOption::ReceiveBuffer(_) => {
            if let Some(bytes) = connection.options.receive_buffer {
                let space = &mut connection.receive.space;
                (space.limit, space.fixed, space.clamp) = (bytes, true, bytes / 2);
            }
        }
        SocketOption::WindowClamp(_) => {
            let space = &mut connection.receive.space;
            space.clamp = connection.options.window_clamp;
            space.ssthresh = space.ssthresh.min(space.clamp);
        }
        _ => {}
    }
}

/// What a connection knows better than its options.
fn told(connection: &Connection, like: SocketOption) -> Option<SocketOption> {
    match like {
        SocketOption::QuickAck(_) => Some(SocketOption::QuickAck(!connection.ack.ping_pong)),
        SocketOption::MaxSegment(_) => {
            Some(SocketOption::MaxSegment(connection.sender.mss() as u16))
        }
        SocketOption::SendBuffer(_) if connection.options.send_buffer.is_none() => {
            Some(SocketOption::SendBuffer(connection.send.limit))
        }
        SocketOption::ReceiveBuffer(_) => {
            Some(SocketOption::ReceiveBuffer(connection.receive.space.limit))
        }
        SocketOption::WindowClamp(_) => {
            Some(SocketOption::WindowClamp(connection.receive.space.clamp))
        }
        _ => None,
    }
}
