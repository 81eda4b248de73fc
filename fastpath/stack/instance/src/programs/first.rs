//! The first of several engines: what processes ask for is done by the engine that has the socket, or by all of them.
use super::Programs;
use super::calls::Answer;
use super::engines::{Engines, Errand, Report};
use super::names::Kind;
use super::wire::{Name, Request, Response, Which, Whose};
use crate::sockets::Sockets;
use nix::libc;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

/// Requests that others have a part of, by channel: each has one at most.
#[derive(Default)]
pub(super) struct Pending {
    asked: HashMap<u64, Asked>,
    /// Sockets that stand by on all engines, or listen there.
    pub spread: HashSet<Name>,
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
pub(super) enum Next {
    /// Its answer is theirs.
    Relay,
    /// Ours and theirs are one.
    Merge(Answer),
    /// Ours, whatever they say.
    Tell(Answer),
    /// Ours, where all of them listen, too.
    Listens(Answer),
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
pub(super) struct New {
    pub run: u64,
    pub name: Name,
    /// The program's end.
    pub fd: OwnedFd,
    pub request: Request,
    /// Of the request's.
    pub has_kernels: bool,
    pub tries: u32,
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

    pub(super) fn begin_on_all(
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
            | Request::Unlisten { name }
            | Request::SetOption { name, .. }
                if self.pending.spread.contains(name) =>
            {
                let own = self.answer(sockets, run, request.clone(), fd);
                if own.is_err() {
                    return Ok(Some(own));
                }
                let then = match request {
                    Request::Listen { .. } => Next::Listens(own),
                    _ => Next::Tell(own),
                };
                self.ask_all(channel, run, &request, None, then)?;
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

    pub(super) fn wait_for(&mut self, channel: u64, left: usize, then: Next) {
        let asked = Asked {
            left,
            failed: None,
            then,
        };
        self.pending.asked.insert(channel, asked);
        self.hold_channel(channel);
    }

    pub(super) fn ask(
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
            Next::Listens(_) | Next::Spread(_) | Next::Moved { .. } => {
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
            (Next::Listens(answer), failed) => Some(failed.map_or(answer, Err)),
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

pub(super) fn missing(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EMFILE)
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
