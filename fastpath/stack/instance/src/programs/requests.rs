//! What processes of a program ask for.
use super::calls::{Answer, EDGES, errno, set_all};
use super::connection::{Connection, fill};
use super::datagram_calls::Opening;
use super::listener::Listener;
use super::names::{Kind, Of, Place};
use super::table::{self, Phase, Row, State};
use super::unlistening::listen_again;
use super::wire::{Name, Request, Response, Which};
use super::{CONNECTION, LISTENER, Programs};
use crate::sockets::Sockets;
use hopscope_eventloop::Token;
use hopscope_stack_abi::{options, tcp_info};
use hopscope_stack_engine::{HowToShut, SocketError, SocketId, SocketKind};
use nix::libc;
use nix::sys::epoll::EpollFlags;
use nix::sys::stat::fstat;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::{AsFd, OwnedFd};

/// Both ends, the instance's first.
fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // An urgent byte of a program without the library would be lost.
    sockopt::set_socket_oobinline(&ours, true)?;
    Ok((ours, theirs))
}

impl Programs {
    pub(super) fn answer(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        request: Request,
        fd: Option<OwnedFd>,
    ) -> Answer {
        match request {
            Request::Bind(which) => self.made(sockets, run, which),
            Request::Listen { which, backlog } => self.listen(sockets, run, which, backlog, fd),
            Request::Connect {
                which,
                peer,
                filled,
            } => {
                let (name, fd) = self.there(sockets, run, which)?;
                let filled = fd.as_ref().map_or(filled as usize, fill);
                let done = self.connect(sockets, run, name, peer, filled);
                if done.is_err() && fd.is_some() {
                    self.forget(sockets, run, name);
                }
                done?;
                Ok((Response::Socket(name), fd))
            }
            Request::Disconnect { name } => self.disconnect(sockets, run, name),
            Request::Unlisten { name } => self.unlisten(sockets, run, name),
            Request::WakeUp { name } => self.wake_up(run, name),
            Request::SetOption { name, option } => {
                let id = self.id_of(run, name)?;
                let option = options::parse(option.0, option.1, &option.2)?;
                let set = sockets.engine.set_option(sockets.now, id, option);
                set.map_err(errno)?;
                self.option_was_set(sockets, run, name);
                Ok((Response::Done, None))
            }
            Request::Option {
                name,
                level,
                option,
            } => {
                let id = self.id_of(run, name)?;
                let value = match (level, option) {
                    (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                        let info = sockets.engine.tcp_info(sockets.now, id);
                        tcp_info::bytes(&info.map_err(errno)?)
                    }
                    (libc::IPPROTO_IP, libc::IP_MTU) | (libc::IPPROTO_IPV6, libc::IPV6_MTU) => {
                        let mtu = sockets.engine.path_mtu(sockets.now, id).map_err(errno)?;
                        i32::from(mtu).to_ne_bytes().to_vec()
                    }
                    _ => {
                        let like = options::named(level, option)?;
                        options::value(sockets.engine.option(id, like).map_err(errno)?)
                    }
                };
                Ok((Response::Value(value), None))
            }
            Request::Queued { name } => {
                let id = self.id_of(run, name)?;
                let queued = sockets.engine.unacknowledged_bytes(id).map_err(errno)?;
                let (unacknowledged, unsent) = queued;
                let response = Response::Queued {
                    unacknowledged,
                    unsent,
                };
                Ok((response, None))
            }
            Request::Settle => {
                self.settle(sockets);
                Ok((Response::Done, None))
            }
            Request::Datagrams {
                ipv6,
                local,
                everywhere,
                options,
                wants,
            } => {
                let told = table::Datagrams {
                    everywhere,
                    wants,
                    ..table::Datagrams::default()
                };
                let opening = Opening {
                    ipv6,
                    local,
                    options,
                    told,
                };
                self.open_datagrams(sockets, run, &opening, fd)
            }
            Request::DatagramsBind {
                name,
                local,
                everywhere,
            } => self.bind_datagrams(sockets, run, name, (local, everywhere)),
            Request::DatagramsConnect {
                name,
                peer,
                by_kernel,
            } => self.connect_datagrams(sockets, run, name, (peer, by_kernel)),
            Request::DatagramsWant { name, wants } => {
                self.want_of_datagrams(sockets, run, name, wants)
            }
            Request::DatagramsLongest { name, peer } => {
                let id = self.id_of(run, name)?;
                let longest = sockets.engine.longest_datagram(sockets.now, id, peer);
                let longest = longest.map_err(errno)? as u32;
                Ok((Response::Value(longest.to_ne_bytes().to_vec()), None))
            }
            Request::DatagramsKernel { name } => self.kernel_of_datagrams(run, name),
            Request::Whose { inodes } => {
                let whose = inodes.iter().map(|inode| self.names.whose(run, *inode));
                Ok((Response::Whose(whose.collect()), None))
            }
            Request::Share => {
                let fd = fd.ok_or(libc::EBADF)?;
                let inode = fstat(&fd).map_err(|error| error as i32)?.st_ino;
                Ok((Response::Socket(self.names.share(run, inode)?), None))
            }
        }
    }

    pub(super) fn id_of(&mut self, run: u64, name: Name) -> Result<SocketId, i32> {
        let place = self.names.find(run, name)?;
        let id = match place.kind {
            Kind::Connection => self.connections.get(place.key).map(|one| one.id),
            Kind::Listener => self.listeners.get(place.key).map(|one| one.id),
            Kind::Datagrams => self.datagrams.get(place.key).map(|one| one.id),
            Kind::Moved => None,
        };
        id.ok_or(libc::ENOTCONN)
    }

    /// One that is there, or a new one with the descriptor that its program gets.
    fn there(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        which: Which,
    ) -> Result<(Name, Option<OwnedFd>), i32> {
        match which {
            Which::There(name) => Ok((name, None)),
            Which::New { .. } => match self.made(sockets, run, which)? {
                (Response::Socket(name), fd) => Ok((name, fd)),
                _ => Err(libc::EINVAL),
            },
        }
    }

    /// A socket, bound where it is to be.
    fn made(&mut self, sockets: &mut Sockets<'_>, run: u64, which: Which) -> Answer {
        let Which::New {
            ipv6,
            local,
            options,
        } = which
        else {
            return Err(libc::EINVAL);
        };
        let opened = sockets.engine.socket(SocketKind::Tcp, ipv6);
        let id = opened.map_err(errno)?;
        set_all(sockets, id, &options);
        let done = match local {
            Some(local) => {
                let bind = |sockets: &mut Sockets<'_>| sockets.engine.bind(id, local);
                self.settled(sockets, bind).map_err(errno)
            }
            None => Ok(()),
        };
        let added = done.and_then(|()| {
            let pair = self.pair()?;
            self.add(sockets, Of::Program(run), (id, ipv6), Phase::Bound, pair)
        });
        match added {
            Ok((name, _, fd)) => Ok((Response::Socket(name), Some(fd))),
            Err(error) => {
                sockets.close(id);
                Err(error)
            }
        }
    }

    /// Both ends for a socket that a program can have. Without, what is accepted stays in the engine's queue.
    pub(super) fn pair(&mut self) -> Result<(OwnedFd, OwnedFd), i32> {
        let made = match self.has_room_for(1) {
            true => pair().map_err(rustix::io::Errno::raw_os_error),
            false => Err(libc::ENFILE),
        };
        self.counts.descriptors_missing += u64::from(made.is_err());
        made
    }

    /// For a socket with so many descriptors.
    pub(super) fn has_room_for(&self, descriptors: usize) -> bool {
        let streams = self.connections.len() + self.listeners.len();
        let there = streams + 2 * self.datagrams.len();
        self.table.has_room() && there + descriptors <= self.sockets_max
    }

    /// A row and a place for a socket of the engine: its name, its key, and the program's end of the pair.
    pub(super) fn add(
        &mut self,
        sockets: &mut Sockets<'_>,
        of: Of,
        (id, ipv6): (SocketId, bool),
        phase: Phase,
        (ours, theirs): (OwnedFd, OwnedFd),
    ) -> Result<(Name, u64, OwnedFd), i32> {
        let name = self.table.take().ok_or(libc::ENFILE)?;
        let inode = fstat(&theirs).map_or(0, |there| there.st_ino);
        let connection = Connection::new(id, name, ipv6, phase, ours);
        connection.tell(sockets, &self.table);
        let key = self.connections.insert(connection);
        let kind = Kind::Connection;
        self.names.insert(name, of, Place { kind, key }, inode);
        let _ = sockets.engine.set_token(id, key + 1);
        let poll = self.poll.as_ref().ok_or(libc::EIO)?;
        let watched = match self.connections.get(key) {
            Some(added) => poll.add(added.pair(), Token::new(CONNECTION, key), EDGES),
            None => Ok(()),
        };
        if let Err(error) = watched {
            self.forget_connection(key);
            return Err(error as i32);
        }
        Ok((name, key, theirs))
    }

    pub(super) fn connect(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        name: Name,
        peer: std::net::SocketAddr,
        filled: usize,
    ) -> Result<(), i32> {
        let place = self.names.find(run, name)?;
        let found = self
            .connections
            .get(place.key)
            .filter(|_| place.kind == Kind::Connection);
        let connection = found.ok_or(libc::EISCONN)?;
        match sockets
            .engine
            .connect(sockets.now, connection.id, Some(peer))
        {
            Ok(()) | Err(SocketError::InProgress) => {}
            Err(error) => {
                connection.drain(filled, &mut self.piece);
                return Err(error.errno());
            }
        }
        connection.connecting(filled);
        connection.tell(sockets, &self.table);
        // Here and not when it is connected: it may end before.
        self.counts.accepted += 1;
        Ok(())
    }

    fn disconnect(&mut self, sockets: &mut Sockets<'_>, run: u64, name: Name) -> Answer {
        let key = self.names.find(run, name)?.key;
        let id = self.id_of(run, name)?;
        let connection = self.connections.get(key).filter(|one| one.id == id);
        let connects = connection.is_some_and(|one| one.phase() == Phase::Connecting);
        // One that has just failed, or is there, is told of by its event.
        if !connects || sockets.engine.readiness(id).map_err(errno)?.writable {
            return Err(libc::ENOTCONN);
        }
        let shut = sockets.engine.shutdown(sockets.now, id, HowToShut::Both);
        shut.map_err(errno)?;
        self.serve(sockets, key);
        Ok((Response::Done, None))
    }

    fn listen(
        &mut self,
        sockets: &mut Sockets<'_>,
        run_key: u64,
        which: Which,
        backlog: u32,
        kernel: Option<OwnedFd>,
    ) -> Answer {
        if kernel.as_ref().is_some_and(|fd| !listens(fd)) {
            return Err(libc::EINVAL);
        }
        let (name, fd) = self.there(sockets, run_key, which)?;
        let done = self.begin_to_listen(sockets, run_key, name, backlog, kernel);
        if done.is_err() && fd.is_some() {
            self.forget(sockets, run_key, name);
        }
        done?;
        // A listener is never writable.
        fd.as_ref().map(fill);
        Ok((Response::Socket(name), fd))
    }

    fn begin_to_listen(
        &mut self,
        sockets: &mut Sockets<'_>,
        run_key: u64,
        name: Name,
        backlog: u32,
        kernel: Option<OwnedFd>,
    ) -> Result<(), i32> {
        let id = self.id_of(run_key, name)?;
        if self.names.find(run_key, name)?.kind == Kind::Datagrams {
            return Err(libc::EOPNOTSUPP);
        }
        let listen = |sockets: &mut Sockets<'_>| sockets.engine.listen(id, backlog);
        self.settled(sockets, listen).map_err(errno)?;
        let place = self.names.find(run_key, name)?;
        if place.kind == Kind::Listener {
            return Ok(());
        }
        let unlistened = self.connections.get(place.key);
        let unlistened = unlistened.and_then(|one| one.unlistened.as_ref());
        if let Some(Err(error)) = unlistened.map(|kernel| listen_again(kernel, backlog)) {
            let _ = sockets.engine.shutdown(sockets.now, id, HowToShut::Read);
            return Err(error.raw_os_error());
        }
        let connection = self.connections.remove(place.key).ok_or(libc::ENOTCONN)?;
        let ipv6 = connection.ipv6;
        let (pair, unlistened) = connection.into_ends();
        let mut listener = Listener::new(id, name, ipv6, pair);
        listener.kernel = kernel.or(unlistened);
        if self.table.has(name.row) {
            let local = sockets.engine.local_address(id).ok();
            let row = Row::new(name.generation, State::of(Phase::Listening), ipv6);
            self.table.write(name.row, &row.with(local, None));
        }
        let key = self.listeners.insert(listener);
        let kind = Kind::Listener;
        self.names.becomes(name, Place { kind, key });
        let _ = sockets.engine.set_token(id, super::LISTENS | key);
        let watched = self.watch_listener(key);
        if watched.is_err() {
            self.end_listener(sockets, key);
        }
        watched
    }

    fn watch_listener(&mut self, key: u64) -> Result<(), i32> {
        let poll = self.poll.as_ref().ok_or(libc::EIO)?;
        let listener = self.listeners.get(key).ok_or(libc::ENOTCONN)?;
        let failed = |error| error as i32;
        let token = Token::new(LISTENER, key);
        poll.modify(&listener.pair, token, EDGES).map_err(failed)?;
        if let Some(kernel) = &listener.kernel {
            let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
            let token = Token::new(super::KERNEL, key);
            poll.add(kernel, token, flags).map_err(failed)?;
        }
        Ok(())
    }
}

/// A listener of the kernel's TCP.
fn listens(fd: &OwnedFd) -> bool {
    let fd = fd.as_fd();
    let of_ip = matches!(
        sockopt::socket_domain(fd),
        Ok(AddressFamily::INET | AddressFamily::INET6)
    );
    of_ip
        && sockopt::socket_type(fd) == Ok(SocketType::STREAM)
        && sockopt::socket_acceptconn(fd) == Ok(true)
}
