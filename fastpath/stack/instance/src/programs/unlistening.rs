//! shutdown(2) of listeners: a socket that has listened is bound and no more, and may listen again (inet_shutdown in net/ipv4/af_inet.c).
use super::calls::{Answer, EDGES};
use super::connection::{Connection, FILL};
use super::names::{Kind, Place};
use super::passing::{self, SendFlags};
use super::table::Phase;
use super::wire::{Accepted, Name, Response};
use super::{CONNECTION, Programs};
use crate::sockets::Sockets;
use hopscope_eventloop::Token;
use hopscope_stack_engine::{HowToShut, Linger, SocketOption};
use nix::libc;
use rustix::net::{Shutdown, listen, shutdown};
use std::os::fd::OwnedFd;

impl Programs {
    /// What is in the pair already is its program's to end.
    pub(super) fn unlisten(&mut self, sockets: &mut Sockets<'_>, run: u64, name: Name) -> Answer {
        let place = self.names.find(run, name)?;
        if place.kind != Kind::Listener {
            return Err(libc::ENOTCONN);
        }
        let listener = self.listeners.remove(place.key).ok_or(libc::ENOTCONN)?;
        let _ = sockets
            .engine
            .shutdown(sockets.now, listener.id, HowToShut::Read);
        if let Some((Accepted::Ours(waits), _)) = listener.held() {
            self.reset_at_end(sockets, *waits);
        }
        let (id, ipv6) = (listener.id, listener.ipv6);
        let (pair, kernel) = listener.into_ends();
        let poll = self.poll.as_ref().ok_or(libc::EIO)?;
        if let Some(kernel) = &kernel {
            let _ = poll.remove(kernel);
            let _ = shutdown(kernel, Shutdown::Read);
        }
        let mut connection = Connection::new(id, name, ipv6, Phase::Bound, pair);
        connection.unlistened = kernel;
        if self.table.has(name.row) {
            connection.tell(sockets, &self.table);
            // What kept it from being writable would be read as its program's bytes if it were connected. A program that writes there
            // all the time keeps nobody waiting.
            connection.drain(4 * FILL, &mut self.piece);
        } else {
            connection.stands_by();
        }
        let key = self.connections.insert(connection);
        let kind = Kind::Connection;
        self.names.becomes(name, Place { kind, key });
        let _ = sockets.engine.set_token(id, key + 1);
        if let Some(socket) = self.connections.get(key) {
            // Of a descriptor that is watched.
            let _ = poll.modify(socket.pair(), Token::new(CONNECTION, key), EDGES);
        }
        Ok((Response::Done, None))
    }

    fn reset_at_end(&mut self, sockets: &mut Sockets<'_>, name: Name) {
        let place = self.names.place(name);
        let place = place.filter(|place| place.kind == Kind::Connection);
        if let Some(connection) = place.and_then(|place| self.connections.get(place.key)) {
            let reset = SocketOption::Linger(Linger::Reset);
            let _ = sockets.engine.set_option(sockets.now, connection.id, reset);
        }
    }

    pub(super) fn wake_up(&mut self, run: u64, name: Name) -> Answer {
        let place = self.names.find(run, name)?;
        let place = Some(place).filter(|place| place.kind == Kind::Connection);
        let socket = place.and_then(|place| self.connections.get(place.key));
        let socket = socket.filter(|socket| socket.phase() == Phase::Bound);
        let pair = socket.ok_or(libc::EINVAL)?.pair();
        // One that is full wakes up without.
        let told = Accepted::Unlistened.to_bytes();
        let _ = passing::send(pair, &told, &[], SendFlags::DONTWAIT);
        Ok((Response::Done, None))
    }
}

/// The kernel's, with the other one.
pub(super) fn listen_again(kernel: &OwnedFd, backlog: u32) -> rustix::io::Result<()> {
    listen(kernel, i32::try_from(backlog).unwrap_or(i32::MAX))
}
