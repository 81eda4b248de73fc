//! The control socket: requests and responses, a line of JSON each; access by mode 0600.
//!
//! It is served by the loop that carries packets, so nothing here waits, and nothing takes long. What a client
//! may cost is bounded: [`CLIENTS_MAX`] at a time, of whom the one that was silent longest makes room; a request in
//! hand at a time and of so many bytes; answers are kept until they are read, and until then nothing more is read
//! of that client. After each turn the socket rests nine times as long as the turn took, at least a millisecond.
use crate::clock::Clock;
use crate::endpoint::Endpoint;
use crate::error::ServingError;
use crate::privileges::RunAs;
use hopscope_event::Ns;
use hopscope_eventloop::{Poll, Token};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod client;
mod listener;

use client::{Client, Wants};

const CLIENTS_MAX: usize = 8;
/// Connections that are taken in one turn.
const ACCEPTS: usize = 4;
const REST_MIN: Ns = Ns::from_us(1_000);
/// Sources of the inner loop.
const LISTENER: u8 = 0;
const CLIENT: u8 = 1;

/// What came by the control socket.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ControlCounts {
    pub connections: u64,
    /// Sent away for newer ones.
    pub displaced: u64,
    pub requests: u64,
    /// Lines that are no request, or one that cannot be done.
    pub refused: u64,
}

pub struct Control {
    endpoint: Endpoint,
    /// What the outer loop calls it.
    source: Token,
    /// Of the listener and the clients: the loop sees only this one.
    inner: Poll,
    clients: Vec<Client>,
    /// Of events in their order: the next client's name, and when each was heard last.
    next: u64,
    resting: Option<Ns>,
    pub counts: ControlCounts,
}

/// An answer, and whether it is a refusal.
pub struct Answer {
    pub line: String,
    pub refused: bool,
}

impl Control {
    /// # Errors
    /// The socket cannot be had there.
    pub fn open(path: &Path, outer: &Poll, source: u8) -> Result<Control, ServingError> {
        let system = ServingError::system::<Errno>;
        let source = Token::of(source);
        let endpoint = listener::open(path)?;
        let inner = Poll::new(2 * CLIENTS_MAX).map_err(system("watching"))?;
        if let Some(listener) = endpoint.fd() {
            inner
                .add(listener, Token::of(LISTENER), EpollFlags::EPOLLIN)
                .map_err(system("watching the control socket"))?;
        }
        outer
            .add(&inner, source, EpollFlags::EPOLLIN)
            .map_err(system("watching the control socket"))?;
        Ok(Control {
            endpoint,
            source,
            inner,
            clients: Vec::new(),
            next: 0,
            resting: None,
            counts: ControlCounts::default(),
        })
    }

    /// # Errors
    /// As for [`Endpoint::hand_to`].
    pub fn hand_to(&self, user: &RunAs) -> Result<(), ServingError> {
        self.endpoint.hand_to(user)
    }

    /// # Errors
    /// As for [`Endpoint::remove`].
    pub fn remove(&mut self) -> Result<(), (PathBuf, io::Error)> {
        self.endpoint.remove()
    }

    /// When the socket is to be looked at again, should it rest.
    pub fn deadline(&self) -> Option<Ns> {
        self.resting
    }

    /// Ends a rest whose time is over.
    pub fn wake(&mut self, outer: &Poll, clock: Clock) -> Result<(), ServingError> {
        if self.resting.is_some_and(|until| until <= clock.now()) {
            self.resting = None;
            self.watch(outer, EpollFlags::EPOLLIN)?;
        }
        Ok(())
    }

    fn watch(&self, outer: &Poll, wants: EpollFlags) -> Result<(), ServingError> {
        outer
            .modify(&self.inner, self.source, wants)
            .map_err(ServingError::system("watching the control socket"))
    }

    /// At most one request, and a few connections; then a rest. `answer` may put a request off (`None`): it is asked again
    /// after the rest.
    pub fn turn(
        &mut self,
        outer: &Poll,
        clock: Clock,
        answer: &mut dyn FnMut(&[u8], ControlCounts) -> Option<Answer>,
    ) -> Result<(), ServingError> {
        let began = clock.now();
        let ready = self.inner.wait(Some(Duration::ZERO)).unwrap_or(0);
        let mut is_first = true;
        let mut connections = false;
        for at in 0..ready {
            let token = self.inner.ready(at).token;
            match token.source {
                LISTENER => connections = true,
                _ => self.serve(token.key, &mut is_first, answer),
            }
        }
        if connections {
            self.accept();
        }
        let now = clock.now();
        let rest = Ns(now.since(began).0.saturating_mul(9)).max(REST_MIN);
        self.resting = Some(now + rest);
        self.watch(outer, EpollFlags::empty())
    }

    fn serve(
        &mut self,
        name: u64,
        is_first: &mut bool,
        answer: &mut dyn FnMut(&[u8], ControlCounts) -> Option<Answer>,
    ) {
        let Some(n) = self.clients.iter().position(|client| client.name == name) else {
            return;
        };
        let (counts, next) = (&mut self.counts, &mut self.next);
        let client = &mut self.clients[n];
        let wants = client.turn(&mut |line| {
            if !std::mem::take(is_first) {
                return None;
            }
            let mut asked = *counts;
            asked.requests += 1;
            let answer = answer(line, asked)?;
            *counts = asked;
            counts.refused += u64::from(answer.refused);
            Some(answer.line)
        });
        if !*is_first {
            *next += 1;
            client.heard = *next;
        }
        let flags = match wants {
            Wants::Read => EpollFlags::EPOLLIN,
            Wants::Write => EpollFlags::EPOLLOUT,
            Wants::Nothing => {
                self.clients.swap_remove(n);
                return;
            }
        };
        let watched = self
            .inner
            .modify(client.fd(), Token::new(CLIENT, name), flags);
        if watched.is_err() {
            self.clients.swap_remove(n);
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            // What else can go wrong (too many open files) goes away, or comes again with the next turn.
            let Ok(Some(stream)) = self.endpoint.accept() else {
                return;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.next += 1;
            let client = Client::new(stream, self.next);
            if self.clients.len() >= CLIENTS_MAX {
                let silent = self.clients.iter().enumerate();
                let silent = silent.min_by_key(|(_, client)| client.heard);
                if let Some((n, _)) = silent {
                    self.clients.swap_remove(n);
                    self.counts.displaced += 1;
                }
            }
            let token = Token::new(CLIENT, client.name);
            let added = self.inner.add(client.fd(), token, EpollFlags::EPOLLIN);
            if added.is_ok() {
                self.counts.connections += 1;
                self.clients.push(client);
            }
        }
    }
}
