//! Sockets that have a port and no connection: they stand by on all engines until their peer decides whose it is.
use super::Programs;
use super::calls::{Answer, errno};
use super::connection::fill;
use super::engines::{Errand, Standby};
use super::first::{New, Next, missing};
use super::names::{Kind, Place};
use super::wire::{Name, OptionSet, Request, Response, Which};
use crate::sockets::Sockets;
use nix::libc;
use nix::sys::stat::fstat;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// Ports that this engine chose, and another one did not have free.
const TRIES: u32 = 64;

impl Programs {
    /// A new socket with a port, here and then on all others.
    pub(super) fn spread(
        &mut self,
        sockets: &mut Sockets<'_>,
        (channel, run): (u64, u64),
        request: Request,
        kernel: Option<OwnedFd>,
        tries: u32,
    ) -> Result<(), i32> {
        let has_kernels = kernel.is_some();
        let (made, listens) = match &request {
            Request::Listen { backlog, .. } => {
                let made = self.answer(sockets, run, request.clone(), kernel);
                (made, Some(*backlog))
            }
            Request::Bind(which) | Request::Connect { which, .. } => {
                let bind = Request::Bind(which.clone());
                (self.answer(sockets, run, bind, kernel), None)
            }
            _ => return Err(libc::EINVAL),
        };
        let (Response::Socket(name), Some(fd)) = made? else {
            return Err(libc::EIO);
        };
        let stands_by = self.stand_by(sockets, (channel, run), name, (&fd, listens), &request);
        let left = match stands_by {
            Ok(left) => left,
            Err(errno) => {
                self.undo(sockets, run, name);
                return Err(errno);
            }
        };
        self.pending.spread.insert(name);
        let new = New {
            run,
            name,
            fd,
            request,
            has_kernels,
            tries,
        };
        self.wait_for(channel, left, Next::Spread(Box::new(new)));
        Ok(())
    }

    fn stand_by(
        &mut self,
        sockets: &mut Sockets<'_>,
        (channel, run): (u64, u64),
        name: Name,
        (theirs, listens): (&OwnedFd, Option<u32>),
        request: &Request,
    ) -> Result<usize, i32> {
        let (ipv6, local, options) = wanted(request).ok_or(libc::EINVAL)?;
        let inode = fstat(theirs).map_err(|error| error as i32)?.st_ino;
        let port = sockets.engine.local_address(self.id_of(run, name)?);
        let port = port.map_err(errno)?.port();
        let any: IpAddr = match ipv6 {
            false => Ipv4Addr::UNSPECIFIED.into(),
            true => Ipv6Addr::UNSPECIFIED.into(),
        };
        let local = SocketAddr::new(local.map_or(any, |local| local.ip()), port);
        let place = self.names.find(run, name)?;
        let pair = match place.kind {
            Kind::Listener => self.listeners.get(place.key).map(|one| &one.pair),
            _ => self.connections.get(place.key).map(|one| one.pair()),
        };
        let pair = pair.ok_or(libc::ENOTCONN)?;
        let others = self.engines.others();
        let pairs = others.iter().map(|_| pair.try_clone());
        let pairs: Vec<OwnedFd> = pairs.collect::<Result<_, _>>().map_err(missing)?;
        for (other, pair) in others.iter().zip(pairs) {
            let socket = Standby {
                run,
                name,
                inode,
                ipv6,
                local,
                options: options.to_vec(),
                pair,
                listens,
            };
            let socket = Box::new(socket);
            other.send(Errand::StandBy { channel, socket });
        }
        Ok(others.len())
    }

    /// connect(2) of one that stands by on all engines: `made` where it is new.
    pub(super) fn connect_spread(
        &mut self,
        sockets: &mut Sockets<'_>,
        (channel, run): (u64, u64),
        name: Name,
        (peer, filled): (SocketAddr, u32),
        made: Option<(u64, OwnedFd)>,
    ) -> Result<Option<Answer>, i32> {
        let id = self.id_of(run, name)?;
        let place = self.names.find(run, name)?;
        let connection = self
            .connections
            .get(place.key)
            .filter(|_| place.kind == Kind::Connection);
        let connection = connection.ok_or(libc::EISCONN)?;
        if connection.is_held() {
            return Err(libc::EALREADY);
        }
        let owner = sockets.engine.owner_of_connection(id, peer);
        let owner = usize::from(owner.map_err(errno)?);
        if owner > 0 {
            connection.hold();
            let filled = match &made {
                Some((_, fd)) => fill(fd) as u32,
                None => filled,
            };
            let which = Which::There(name);
            let request = Request::Connect {
                which,
                peer,
                filled,
            };
            let to = owner;
            let then = Next::Moved { name, to, made };
            self.ask(channel, run, owner, (request, None), then);
            return Ok(None);
        }
        let filled = match &made {
            Some((_, fd)) => fill(fd),
            None => filled as usize,
        };
        self.connect(sockets, run, name, peer, filled)?;
        self.release(name, 0);
        let fd = made.map(|(_, fd)| fd);
        Ok(Some(Ok((Response::Socket(name), fd))))
    }

    /// It stands by no more, but where its connection is.
    fn release(&mut self, name: Name, but: usize) {
        if self.pending.spread.remove(&name) {
            for (other, engine) in self.engines.others().iter().zip(1..) {
                if engine != but {
                    other.send(Errand::Release(name));
                }
            }
        }
    }

    /// A new socket whose call has failed.
    fn undo(&mut self, sockets: &mut Sockets<'_>, run: u64, name: Name) {
        self.release(name, 0);
        if let Ok(place) = self.names.find(run, name)
            && place.kind == Kind::Listener
        {
            self.end_listener(sockets, place.key);
        }
        self.forget(sockets, run, name);
    }

    pub(super) fn is_spread(
        &mut self,
        sockets: &mut Sockets<'_>,
        channel: u64,
        new: New,
        failed: Option<i32>,
    ) -> Option<Answer> {
        let (run, name) = (new.run, new.name);
        if let Some(errno) = failed {
            self.undo(sockets, run, name);
            let is_ours = wanted(&new.request)
                .and_then(|(_, local, _)| local)
                .is_none_or(|local| local.port() == 0);
            if errno != libc::EADDRINUSE || !is_ours || new.has_kernels || new.tries >= TRIES {
                return Some(Err(errno));
            }
            let who = (channel, run);
            let again = self.begin_on_all(sockets, who, new.request, None, new.tries + 1);
            return again.unwrap_or_else(|errno| Some(Err(errno)));
        }
        let Request::Connect { peer, .. } = new.request else {
            return Some(Ok((Response::Socket(name), Some(new.fd))));
        };
        let made = Some((run, new.fd));
        let connected = self.connect_spread(sockets, (channel, run), name, (peer, 0), made);
        connected.unwrap_or_else(|errno| {
            self.undo(sockets, run, name);
            Some(Err(errno))
        })
    }

    /// Its connection is another engine's, unless that failed.
    pub(super) fn has_moved(
        &mut self,
        sockets: &mut Sockets<'_>,
        name: Name,
        to: usize,
        (made, failed): (Option<(u64, OwnedFd)>, Option<i32>),
    ) -> Answer {
        let place = self
            .names
            .place(name)
            .filter(|place| place.kind == Kind::Connection);
        let key = place.ok_or(libc::ENOTCONN)?.key;
        if let Some(errno) = failed {
            if let Some(connection) = self.connections.get(key) {
                connection.go_on();
            }
            match made {
                Some((run, _)) => self.undo(sockets, run, name),
                // Its program may have gone meanwhile.
                None => self.serve(sockets, key),
            }
            return Err(errno);
        }
        if let Some(connection) = self.connections.remove(key) {
            sockets.close(connection.id);
        }
        let moved = Place {
            kind: Kind::Moved,
            key: to as u64,
        };
        self.names.becomes(name, moved);
        self.release(name, to);
        Ok((Response::Socket(name), made.map(|(_, fd)| fd)))
    }
}

/// What a new socket is to be.
fn wanted(request: &Request) -> Option<(bool, Option<SocketAddr>, &[OptionSet])> {
    let which = match request {
        Request::Bind(which) | Request::Listen { which, .. } | Request::Connect { which, .. } => {
            which
        }
        _ => return None,
    };
    match which {
        Which::New {
            ipv6,
            local,
            options,
        } => Some((*ipv6, *local, options)),
        Which::There(_) => None,
    }
}
