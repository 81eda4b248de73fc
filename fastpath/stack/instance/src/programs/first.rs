//! The first of several engines: what processes ask for is done by the engine that has the socket, or by all of them.
use super::Programs;
use super::calls::Answer;
use super::connection::fill;
use super::engines::{Engines, Errand, Report, Standby};
use super::names::{Kind, Place};
use super::wire::{Name, OptionSet, Request, Response, Which, Whose};
use crate::sockets::Sockets;
use nix::libc;
use nix::sys::stat::fstat;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// Ports that this engine chose, and another one did not have free.
const TRIES: u32 = 64;

/// Requests that others have a part of, by channel: each has one at most.
#[derive(Default)]
pub(super) struct Pending {
    asked: HashMap<u64, Asked>,
    /// Sockets that stand by on all engines, or listen there.
    spread: HashSet<Name>,
    /// Whose the next connection is that may be anybody's.
    next: usize,
}

struct Asked {
    /// Answers that are still to come.
    left: usize,
    failed: Option<i32>,
    then: Next,
}

/// What is done when all have answered.
enum Next {
    /// Its answer is theirs.
    Relay,
    /// Ours and theirs are one.
    Merge(Answer),
    /// Ours, whatever they say.
    Tell(Answer),
    /// A new socket is on all engines.
    Spread(Box<New>),
    /// It was ours until here, where its connection is theirs.
    Moved {
        name: Name,
        to: usize,
        made: Option<(u64, OwnedFd)>,
    },
}

/// A new socket that has a port.
struct New {
    run: u64,
    name: Name,
    /// The program's end.
    fd: OwnedFd,
    request: Request,
    /// Of the request's.
    has_kernels: bool,
    tries: u32,
}

impl Programs {
    /// `None`: it is answered later ([`Programs::report`]).
    pub(super) fn begin(
        &mut self,
        sockets: &mut Sockets<'_>,
        (channel, run): (u64, u64),
        request: Request,
        fd: Option<OwnedFd>,
    ) -> Option<Answer> {
        if self.engines.others().is_empty() {
            return Some(self.answer(sockets, run, request, fd));
        }
        match self.begin_on_all(sockets, (channel, run), request, fd, 0) {
            Ok(answered) => answered,
            Err(errno) => Some(Err(errno)),
        }
    }

    fn begin_on_all(
        &mut self,
        sockets: &mut Sockets<'_>,
        (channel, run): (u64, u64),
        request: Request,
        fd: Option<OwnedFd>,
        tries: u32,
    ) -> Result<Option<Answer>, i32> {
        let engine = match request.name() {
            Some(name) => self.engine_of(run, name)?,
            None => 0,
        };
        if engine > 0 {
            self.ask(channel, run, engine, (request, fd), Next::Relay);
            return Ok(None);
        }
        match &request {
            Request::Whose { .. } | Request::Settle | Request::Share => {
                let theirs = fd.as_ref().map(OwnedFd::try_clone).transpose();
                let theirs =
                    theirs.map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?;
                let own = self.answer(sockets, run, request.clone(), fd);
                self.ask_all(channel, run, &request, theirs.as_ref(), Next::Merge(own))?;
                Ok(None)
            }
            Request::Bind(Which::New { .. })
            | Request::Listen {
                which: Which::New { .. },
                ..
            }
            | Request::Connect {
                which: Which::New { local: Some(_), .. },
                ..
            } => {
                self.spread(sockets, (channel, run), request, fd, tries)?;
                Ok(None)
            }
            Request::Connect {
                which: Which::New { local: None, .. },
                ..
            } => {
                let engine = self.pending.next % (self.engines.others().len() + 1);
                self.pending.next = engine + 1;
                if engine == 0 {
                    return Ok(Some(self.answer(sockets, run, request, fd)));
                }
                self.ask(channel, run, engine, (request, fd), Next::Relay);
                Ok(None)
            }
            Request::Connect {
                which: Which::There(name),
                peer,
                filled,
            } if self.pending.spread.contains(name) => {
                let (name, peer, filled) = (*name, *peer, *filled);
                self.connect_spread(sockets, (channel, run), name, (peer, filled), None)
            }
            Request::Listen {
                which: Which::There(name),
                ..
            }
            | Request::SetOption { name, .. }
                if self.pending.spread.contains(name) =>
            {
                let own = self.answer(sockets, run, request.clone(), fd);
                if own.is_err() {
                    return Ok(Some(own));
                }
                self.ask_all(channel, run, &request, None, Next::Tell(own))?;
                Ok(None)
            }
            _ => Ok(Some(self.answer(sockets, run, request, fd))),
        }
    }

    /// Who has a socket.
    fn engine_of(&mut self, run: u64, name: Name) -> Result<usize, i32> {
        if !self.table.has(name.row) {
            let engine = self.table.engine_of(name.row);
            let is_one = engine <= self.engines.others().len();
            return is_one.then_some(engine).ok_or(libc::ENOTCONN);
        }
        let place = self.names.find(run, name)?;
        Ok(match place.kind {
            Kind::Moved => place.key as usize,
            Kind::Connection | Kind::Listener | Kind::Datagrams => 0,
        })
    }

    fn wait_for(&mut self, channel: u64, left: usize, then: Next) {
        let asked = Asked {
            left,
            failed: None,
            then,
        };
        self.pending.asked.insert(channel, asked);
        self.hold_channel(channel);
    }

    fn ask(
        &mut self,
        channel: u64,
        run: u64,
        engine: usize,
        (request, fd): (Request, Option<OwnedFd>),
        then: Next,
    ) {
        if let Some(other) = self.engines.others().get(engine - 1) {
            other.send(Errand::Ask {
                channel,
                run,
                request,
                fd,
            });
            self.wait_for(channel, 1, then);
        }
    }

    fn ask_all(
        &mut self,
        channel: u64,
        run: u64,
        request: &Request,
        fd: Option<&OwnedFd>,
        then: Next,
    ) -> Result<(), i32> {
        let others = self.engines.others();
        let fds = others
            .iter()
            .map(|_| fd.map(OwnedFd::try_clone).transpose());
        let fds: Vec<Option<OwnedFd>> = fds.collect::<Result<_, _>>().map_err(missing)?;
        let left = others.len();
        for (other, fd) in others.iter().zip(fds) {
            let request = request.clone();
            other.send(Errand::Ask {
                channel,
                run,
                request,
                fd,
            });
        }
        self.wait_for(channel, left, then);
        Ok(())
    }

    /// A new socket with a port, here and then on all others.
    fn spread(
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
        let port = port.map_err(super::calls::errno)?.port();
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
    fn connect_spread(
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
        let owner = usize::from(owner.map_err(super::calls::errno)?);
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

    /// What others have told.
    pub(super) fn reports(&mut self, sockets: &mut Sockets<'_>) {
        let Engines::First { reports, .. } = &self.engines else {
            return;
        };
        reports.rang();
        while let Engines::First { reports, .. } = &self.engines
            && let Some(report) = reports.take()
        {
            match report {
                Report::Answer { channel, answer } => self.answered(sockets, channel, answer),
                Report::Over(name) => {
                    if self.names.has_moved(name) {
                        self.forget_name(name);
                    }
                }
            }
        }
    }

    fn answered(&mut self, sockets: &mut Sockets<'_>, channel: u64, answer: Answer) {
        let Some(asked) = self.pending.asked.get_mut(&channel) else {
            return;
        };
        asked.left -= 1;
        match &mut asked.then {
            Next::Relay => asked.then = Next::Tell(answer),
            Next::Merge(own) => merge(own, answer),
            Next::Tell(_) => {}
            Next::Spread(_) | Next::Moved { .. } => {
                asked.failed = asked.failed.or(answer.err());
            }
        }
        if asked.left > 0 {
            return;
        }
        let Some(asked) = self.pending.asked.remove(&channel) else {
            return;
        };
        let told = match (asked.then, asked.failed) {
            (Next::Tell(answer) | Next::Merge(answer), _) => Some(answer),
            (Next::Relay, _) => None,
            (Next::Spread(new), failed) => self.is_spread(sockets, channel, *new, failed),
            (Next::Moved { name, to, made }, failed) => {
                Some(self.has_moved(sockets, name, to, (made, failed)))
            }
        };
        if let Some(answer) = told {
            self.tell(channel, answer);
        }
    }

    fn is_spread(
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
    fn has_moved(
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

    /// It is nobody's any more, here and wherever it stands by: there, its pair tells.
    pub(super) fn is_spread_no_more(&mut self, name: Name) {
        self.pending.spread.remove(&name);
    }

    pub(super) fn tell_others_who_left(&self, run: u64) {
        for other in self.engines.others() {
            other.send(Errand::Leave { run });
        }
    }
}

fn missing(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EMFILE)
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

/// Of all engines together.
fn merge(own: &mut Answer, theirs: Answer) {
    match (own, theirs) {
        (Ok((Response::Whose(own), _)), Ok((Response::Whose(theirs), _))) => {
            for (own, theirs) in own.iter_mut().zip(theirs) {
                if let (Whose::Nobodys, _) | (Whose::Others, Whose::Yours(_)) = (&own, &theirs) {
                    *own = theirs;
                }
            }
        }
        (own @ Err(_), theirs @ Ok(_)) => *own = theirs,
        _ => {}
    }
}
