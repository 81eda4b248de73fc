//! All sockets, requests and TIME-WAITs, as ss shows them.
use super::state::Tcp;
use crate::info::TcpState;
use crate::tcp::connection::empty_info;
use crate::tcp::sockets::Socket;
use crate::{Connection, Ns, SocketError, SocketId, SocketKind, TcpInfo};

impl Tcp {
    /// # Errors
    /// BadSocket, NoOption (not TCP).
    pub(crate) fn info(&self, now: Ns, id: SocketId) -> Result<TcpInfo, SocketError> {
        match self.sockets.get(self.sockets.index(id)?) {
            Some(Socket::Connection(connection)) => Ok(connection.info(now)),
            Some(Socket::Connecting(connecting)) => Ok(empty_info(connecting.state())),
            Some(Socket::Listener(_)) => Ok(empty_info(TcpState::Listen)),
            Some(Socket::Idle(_)) => Ok(empty_info(TcpState::Closed)),
            _ => Err(SocketError::NoOption),
        }
    }

    pub(crate) fn connections(&self, now: Ns) -> impl Iterator<Item = Connection> + '_ {
        let sockets = self.sockets.iter();
        let sockets = sockets.filter_map(move |(slot, socket)| self.row(now, slot, socket));
        sockets.chain(self.half_open()).chain(self.waiting())
    }

    fn row(&self, now: Ns, slot: u32, socket: &Socket) -> Option<Connection> {
        let id = self.sockets.id(slot);
        let row = |state, local| Connection {
            socket: id,
            token: self.sockets.token(slot),
            kind: SocketKind::Tcp,
            state,
            local,
            peer: None,
            receive_queue: 0,
            send_queue: 0,
            info: None,
        };
        match socket {
            Socket::Connection(c) => Some(Connection {
                // A socket whose connection ended has none.
                peer: c.attached.then(|| c.tuple.peer()),
                receive_queue: c.receive.buffer.readable() as u32,
                send_queue: c.send.buffer.len() as u32,
                info: Some(c.info(now)),
                ..row(c.state, c.tuple.local())
            }),
            Socket::Connecting(c) => Some(Connection {
                peer: Some(c.tuple.peer()),
                send_queue: 1,
                ..row(c.state(), c.tuple.local())
            }),
            Socket::Listener(listener) => Some(Connection {
                receive_queue: listener.accepts.len() as u32,
                send_queue: listener.backlog,
                ..row(TcpState::Listen, self.local_address(id?).ok()?)
            }),
            Socket::Idle(_) => Some(row(TcpState::Closed, self.local_address(id?).ok()?)),
            Socket::Udp(_) => None,
        }
    }

    fn half_open(&self) -> impl Iterator<Item = Connection> + '_ {
        self.requests.iter().map(|request| Connection {
            socket: None,
            token: 0,
            kind: SocketKind::Tcp,
            state: TcpState::SynReceived,
            local: request.tuple.local(),
            peer: Some(request.tuple.peer()),
            receive_queue: 0,
            send_queue: 0,
            info: None,
        })
    }

    fn waiting(&self) -> impl Iterator<Item = Connection> + '_ {
        self.time_waits.iter().map(|entry| Connection {
            socket: None,
            token: 0,
            kind: SocketKind::Tcp,
            state: TcpState::TimeWait,
            local: entry.tuple.local(),
            peer: Some(entry.tuple.peer()),
            receive_queue: 0,
            send_queue: 0,
            info: None,
        })
    }
}
