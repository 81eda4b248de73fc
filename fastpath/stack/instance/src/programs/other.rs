//! One of several engines that is not the first, which alone talks to programs.
use super::CONNECTION;
use super::Programs;
use super::calls::{Answer, EDGES, errno, set_all};
use super::connection::Connection;
use super::engines::{Engines, Errand, Report, Standby};
use super::names::{Kind, Of, Place};
use super::table::Phase;
use super::wire::{Name, Request, Response, Which};
use crate::sockets::Sockets;
use hopscope_eventloop::Token;
use hopscope_stack_engine::SocketKind;
use nix::libc;

impl Programs {
    /// What the first engine asks for.
    pub(super) fn errands(&mut self, sockets: &mut Sockets<'_>) {
        if let Engines::Other { errands, .. } = &self.engines {
            errands.rang();
        }
        while let Engines::Other { errands, .. } = &self.engines
            && let Some(errand) = errands.take()
        {
            match errand {
                Errand::Ask {
                    channel,
                    run,
                    request,
                    fd,
                } => {
                    let answer = self.answer(sockets, run, request, fd);
                    self.report(Report::Answer { channel, answer });
                }
                Errand::StandBy { channel, socket } => {
                    let answer = self.stands_by(sockets, *socket);
                    self.report(Report::Answer { channel, answer });
                }
                Errand::Release(name) => self.released(sockets, name),
                Errand::Leave { run } => self.names.forget_program(run),
            }
        }
    }

    fn report(&self, report: Report) {
        if let Engines::Other { first, .. } = &self.engines {
            first.send(report);
        }
    }

    /// A connection has ended whose row is the first engine's.
    pub(super) fn report_over(&self, name: Name) {
        self.report(Report::Over(name));
    }

    fn stands_by(&mut self, sockets: &mut Sockets<'_>, socket: Standby) -> Answer {
        if !self.has_room_for(1) {
            self.counts.descriptors_missing += 1;
            return Err(libc::ENFILE);
        }
        let id = sockets.engine.socket(SocketKind::Tcp, socket.ipv6);
        let id = id.map_err(errno)?;
        set_all(sockets, id, &socket.options);
        let bind = |sockets: &mut Sockets<'_>| sockets.engine.bind(id, socket.local);
        if let Err(error) = self.settled(sockets, bind) {
            sockets.close(id);
            return Err(errno(error));
        }
        let name = socket.name;
        let mut connection = Connection::new(id, name, socket.ipv6, Phase::Bound, socket.pair);
        connection.stands_by();
        let key = self.connections.insert(connection);
        let kind = Kind::Connection;
        let of = Of::Program(socket.run);
        self.names
            .insert(name, of, Place { kind, key }, socket.inode);
        let _ = sockets.engine.set_token(id, key + 1);
        let watched = match (self.connections.get(key), &self.poll) {
            (Some(added), Some(poll)) => poll.add(added.pair(), Token::new(CONNECTION, key), EDGES),
            _ => Ok(()),
        };
        let done = watched
            .map_err(|error| error as i32)
            .and_then(|()| match socket.listens {
                Some(backlog) => {
                    let which = Which::There(name);
                    let listen = Request::Listen { which, backlog };
                    self.answer(sockets, socket.run, listen, None).map(drop)
                }
                None => Ok(()),
            });
        if done.is_err() {
            self.released(sockets, name);
        }
        done.map(|()| (Response::Done, None))
    }

    fn released(&mut self, sockets: &mut Sockets<'_>, name: Name) {
        let Some(place) = self.names.place(name) else {
            return;
        };
        match place.kind {
            Kind::Listener => self.end_listener(sockets, place.key),
            Kind::Connection => {
                if let Some(connection) = self.connections.get(place.key) {
                    sockets.close(connection.id);
                    self.forget_connection(place.key);
                }
            }
            Kind::Datagrams | Kind::Moved => {}
        }
    }
}
