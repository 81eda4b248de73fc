//! A server: listens, accepts, and lets a service have each connection.
use super::datagrams::{DATAGRAMS, Datagrams};
use super::{App, AppCounts};
use crate::InstanceError;
use crate::sockets::Sockets;
use hopscope_eventloop::Slab;
use hopscope_stack_engine::{Event, SocketError, SocketId, SocketKind, SocketOption};
use std::net::SocketAddr;

/// Of a listener; below are connections, one more than their key: 0 is a socket's token before it has one.
const LISTENER: u64 = 1 << 63;

/// What goes on over one connection.
pub trait Service: Send {
    type Connection: Default + Send;

    /// Does what can be done now. Everything that can be read is read, or writing is blocked, when it returns.
    ///
    /// # Errors
    /// The connection's: it is over.
    fn serve(
        &mut self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        connection: &mut Self::Connection,
        counts: &mut AppCounts,
    ) -> Result<Next, SocketError>;
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Wait,
    Close,
}

pub struct Server<S: Service> {
    service: S,
    listen: Vec<SocketAddr>,
    backlog: u32,
    listeners: Vec<SocketId>,
    datagrams: Option<Datagrams>,
    connections: Slab<(SocketId, S::Connection)>,
    counts: AppCounts,
}

impl<S: Service> Server<S> {
    pub fn new(service: S, listen: Vec<SocketAddr>, backlog: u32) -> Server<S> {
        Server {
            service,
            listen,
            backlog,
            listeners: Vec::new(),
            datagrams: None,
            connections: Slab::default(),
            counts: AppCounts::default(),
        }
    }

    /// Serves datagrams too.
    #[must_use]
    pub fn with_datagrams(mut self, datagrams: Datagrams) -> Server<S> {
        self.datagrams = Some(datagrams);
        self
    }

    fn accept(&mut self, sockets: &mut Sockets<'_>, listener: SocketId) {
        while let Ok((id, _)) = sockets.engine.accept(listener) {
            self.counts.accepted += 1;
            let key = self.connections.insert((id, S::Connection::default()));
            // Answers go out at once: what is small is all there is to send.
            let option = SocketOption::NoDelay(true);
            let ready = sockets.engine.set_token(id, key + 1).and_then(|()| {
                sockets.engine.set_option(sockets.now, id, option)?;
                sockets.engine.readiness(id)
            });
            if ready.is_ok() {
                self.serve(sockets, key);
            } else {
                self.close(sockets, key, false);
            }
        }
    }

    fn serve(&mut self, sockets: &mut Sockets<'_>, key: u64) {
        let Some((id, connection)) = self.connections.get(key) else {
            return;
        };
        let id = *id;
        match self
            .service
            .serve(sockets, id, connection, &mut self.counts)
        {
            Ok(Next::Wait) | Err(SocketError::WouldBlock) => {}
            Ok(Next::Close) => self.close(sockets, key, true),
            Err(_) => self.close(sockets, key, false),
        }
    }

    fn close(&mut self, sockets: &mut Sockets<'_>, key: u64, in_order: bool) {
        if let Some((id, _)) = self.connections.remove(key) {
            sockets.close(id);
            self.counts.ended += u64::from(in_order);
            self.counts.failed += u64::from(!in_order);
        }
    }
}

impl<S: Service> App for Server<S> {
    fn start(&mut self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError> {
        for (n, at) in self.listen.iter().enumerate() {
            let at = *at;
            let failed = |source| InstanceError::Listen { at, source };
            let id = sockets.engine.socket(SocketKind::Tcp, at.is_ipv6());
            let id = id.map_err(failed)?;
            if at.is_ipv6() {
                let only = SocketOption::V6Only(true);
                let set = sockets.engine.set_option(sockets.now, id, only);
                set.map_err(failed)?;
            }
            sockets.engine.bind(id, at).map_err(failed)?;
            sockets.engine.listen(id, self.backlog).map_err(failed)?;
            let token = LISTENER | n as u64;
            sockets.engine.set_token(id, token).map_err(failed)?;
            self.listeners.push(id);
        }
        match &self.datagrams {
            Some(datagrams) => datagrams.start(sockets),
            None => Ok(()),
        }
    }

    fn event(&mut self, sockets: &mut Sockets<'_>, event: Event) {
        match event.token {
            // Of a connection that was not accepted yet: it is looked at then.
            0 => {}
            token if token & LISTENER != 0 => self.accept(sockets, event.socket),
            token if token & DATAGRAMS != 0 => {
                if let Some(datagrams) = &mut self.datagrams {
                    datagrams.serve(sockets, event.socket, &mut self.counts);
                }
            }
            token => self.serve(sockets, token - 1),
        }
    }

    fn counts(&self) -> AppCounts {
        self.counts
    }
}
