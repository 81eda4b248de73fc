//! Programs of others whose connections this instance has: they attach by a socket in the file system, and each of their sockets is one
//! end of a pair that the instance has the other end of. What is between them: [`wire`] and [`table`].
//!
//! ```text
//! process ── read, write ── pair ── Connection ── Engine
//!         ── accept ─────── pair ── Listener ──── Engine
//!         ── connect, … ─── channel ── requests ─ Engine
//!         ── datagrams ──── pair ── Datagrams ─── Engine, and the kernel's socket
//! ```
use crate::app::AppCounts;
use crate::handed::Reach;
use crate::sockets::Sockets;
use crate::{App, InstanceError, Ns};
use hopscope_eventloop::{Poll, Slab, Token};
use hopscope_serving::ServingError;
use hopscope_serving::endpoint::Endpoint;
use hopscope_serving::privileges::RunAs;
use hopscope_stack_engine::Event;
use nix::sys::epoll::EpollFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

mod accepting;
mod calls;
pub mod connection;
pub mod datagram;
mod datagram_calls;
mod datagrams;
mod engines;
mod first;
mod joined;
pub mod joining;
mod listener;
mod names;
mod other;
pub mod passing;
mod requests;
mod runs;
mod settling;
mod spreading;
pub mod table;
mod unlistening;
pub mod wire;

use connection::{Connection, Means, PIECE, Then};
use datagram::DATAGRAM_MAX;
use datagrams::Datagrams;
use engines::Engines;
use first::Pending;
use listener::Listener;
use names::{Kind, Names};
use table::{SOCKETS_MAX, Table};
use wire::Name;

/// Sources of descriptors.
const ATTACH: u8 = 16;
const DOOR: u8 = 17;
const CHANNEL: u8 = 18;
const CONNECTION: u8 = 19;
const LISTENER: u8 = 20;
const KERNEL: u8 = 21;
const DATAGRAMS: u8 = 22;
const JOINED: u8 = 23;
const ENGINES: u8 = 24;

/// Of a listener's token, and of a socket's of UDP; below are connections, one more than their key.
const LISTENS: u64 = 1 << 63;
const OF_DATAGRAMS: u64 = 1 << 62;
/// Descriptors that programs' sockets leave: for doors, channels, the control socket, and what passes through.
const SPARE: u64 = 512;
/// Until what there was no descriptor for is looked at again.
const LATER: Ns = Ns::from_ms(10);
/// Until connections are looked at whose last read ended early: rarely needed, and a call for each of them.
const LOOK_AGAIN: Ns = Ns::from_ms(100);

/// What a program is told when it attaches.
#[derive(Debug, Clone)]
pub struct Offer {
    pub device: String,
    pub reach: Reach,
}

/// A program and what it has started.
struct Run {
    door: UnixStream,
    /// It has said hello.
    is_known: bool,
    /// Nobody has the door's other end.
    is_gone: bool,
    channels: usize,
}

struct Channel {
    run: u64,
    fd: OwnedFd,
    /// Other engines are asked for its answer.
    waits: bool,
}

pub struct Programs {
    /// The first engine's.
    endpoint: Option<Endpoint>,
    engines: Engines,
    pending: Pending,
    offer: Offer,
    poll: Option<Poll>,
    runs: Slab<Run>,
    channels: Slab<Channel>,
    table: Table,
    names: Names,
    connections: Slab<Connection>,
    listeners: Slab<Listener>,
    datagrams: Slab<Datagrams>,
    /// Tokens of those that have more to do.
    again: VecDeque<u64>,
    /// When all is looked at again, because there was no descriptor for something.
    later: Option<Ns>,
    /// Those that may have more than their events have told, and when they are looked at.
    unsure: Vec<u64>,
    look_again: Option<Ns>,
    piece: Box<[u8]>,
    counts: AppCounts,
    /// Sockets of all programs at most: descriptors are left for those that come.
    sockets_max: usize,
}

impl Programs {
    /// Of each engine, the first's first.
    ///
    /// # Errors
    /// The socket cannot be had there.
    pub fn open(path: &Path, offer: &Offer, engines: u16) -> Result<Vec<Programs>, InstanceError> {
        // A descriptor for each socket of a program: as many as may be.
        let limits = InstanceError::system::<nix::errno::Errno>;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(limits("RLIMIT_NOFILE"))?;
        if soft < hard {
            let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
            raised.map_err(limits("raising RLIMIT_NOFILE"))?;
        }
        let sockets_max = (hard - SPARE.min(hard / 4)).min(SOCKETS_MAX.into());
        let tables = Table::of_engines(sockets_max as u32, engines)
            .map_err(InstanceError::system("a table of sockets"))?;
        let ways = InstanceError::system("making an eventfd");
        let ways = Engines::all(engines).map_err(ways)?;
        let sockets_max = sockets_max as usize / ways.len();
        let mut endpoint = Some(Endpoint::open(path, false)?);
        let all = ways
            .into_iter()
            .zip(tables)
            .map(|(engines, table)| Programs {
                endpoint: endpoint.take(),
                engines,
                pending: Pending::default(),
                offer: offer.clone(),
                poll: None,
                runs: Slab::default(),
                channels: Slab::default(),
                table,
                names: Names::default(),
                connections: Slab::default(),
                listeners: Slab::default(),
                datagrams: Slab::default(),
                again: VecDeque::new(),
                later: None,
                unsure: Vec::new(),
                look_again: None,
                piece: vec![0; DATAGRAM_MAX.max(PIECE)].into(),
                counts: AppCounts::default(),
                sockets_max,
            });
        Ok(all.collect())
    }

    /// Whose programs may attach, beside root's.
    ///
    /// # Errors
    /// As for [`Endpoint::hand_to`].
    pub fn hand_to(&self, user: &RunAs) -> Result<(), ServingError> {
        self.endpoint
            .iter()
            .try_for_each(|endpoint| endpoint.hand_to(user))
    }

    fn serve(&mut self, sockets: &mut Sockets<'_>, key: u64) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let was_unsure = connection.is_unsure();
        let then = connection.turn(&mut Means {
            sockets,
            table: &self.table,
            piece: &mut self.piece[..PIECE],
            counts: &mut self.counts,
        });
        if connection.is_unsure() && !was_unsure {
            self.unsure.push(key);
            self.look_again.get_or_insert(sockets.now + LOOK_AGAIN);
        }
        match then {
            Then::Waits => {}
            Then::Again => self.again.push_back(key + 1),
            Then::Over => self.forget_connection(key),
        }
    }

    fn go_on(&mut self, sockets: &mut Sockets<'_>, token: u64) {
        match token & OF_DATAGRAMS {
            0 => self.serve(sockets, token - 1),
            _ => self.serve_datagrams(sockets, token & !OF_DATAGRAMS),
        }
    }

    fn forget_connection(&mut self, key: u64) {
        if let Some(connection) = self.connections.remove(key) {
            let name = connection.name;
            self.forget_name(name);
            if !self.table.has(name.row) && connection.tells() {
                self.report_over(name);
            }
        }
    }

    fn forget_name(&mut self, name: Name) {
        self.names.remove(name);
        if self.table.has(name.row) {
            self.is_spread_no_more(name);
            self.table.give_back(name);
        }
    }

    /// A new socket whose call has failed.
    fn forget(&mut self, sockets: &mut Sockets<'_>, run: u64, name: Name) {
        if let Ok(place) = self.names.find(run, name)
            && place.kind == Kind::Connection
            && let Some(connection) = self.connections.get(place.key)
        {
            sockets.close(connection.id);
            self.forget_connection(place.key);
        }
    }

    fn end_listener(&mut self, sockets: &mut Sockets<'_>, key: u64) {
        if let Some(listener) = self.listeners.remove(key) {
            sockets.close(listener.id);
            self.forget_name(listener.name);
        }
    }
}

impl App for Programs {
    fn start(&mut self, _: &mut Sockets<'_>) -> Result<(), InstanceError> {
        let told = self.endpoint.iter().try_for_each(Endpoint::announce);
        told.map_err(InstanceError::system("telling those that wait for it"))
    }

    fn watch(&mut self, outer: &Poll, source: u8) -> Result<(), InstanceError> {
        let system = InstanceError::system::<nix::errno::Errno>;
        let poll = Poll::new(256).map_err(system("watching programs"))?;
        if let Some(fd) = self.endpoint.as_ref().and_then(Endpoint::fd) {
            poll.add(fd, Token::of(ATTACH), EpollFlags::EPOLLIN)
                .map_err(system("watching programs"))?;
        }
        if let Some(bell) = self.engines.bell() {
            poll.add(bell, Token::of(ENGINES), EpollFlags::EPOLLIN)
                .map_err(system("watching other engines"))?;
        }
        outer
            .add(&poll, Token::of(source), EpollFlags::EPOLLIN)
            .map_err(system("watching programs"))?;
        self.poll = Some(poll);
        Ok(())
    }

    fn ready(&mut self, sockets: &mut Sockets<'_>) {
        let Some(poll) = &mut self.poll else {
            return;
        };
        let count = poll.wait(Some(std::time::Duration::ZERO)).unwrap_or(0);
        let mut ready: Vec<_> = (0..count).map(|at| poll.ready(at)).collect();
        // What was closed before a request is gone before it is answered: the port that it asks for may be that one's.
        ready.sort_by_key(|ready| matches!(ready.token.source, CHANNEL | ENGINES));
        for ready in ready {
            let (key, flags) = (ready.token.key, ready.flags);
            let over = flags.intersects(EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR);
            match ready.token.source {
                ATTACH => self.attach(sockets.now),
                DOOR => self.door(key),
                CHANNEL => self.request(sockets, key),
                ENGINES => {
                    self.errands(sockets);
                    self.reports(sockets);
                }
                CONNECTION => {
                    if let Some(connection) = self.connections.get(key) {
                        connection.is_ready(flags);
                        self.serve(sockets, key);
                    }
                }
                LISTENER if over => self.end_listener(sockets, key),
                LISTENER => self.push_on(sockets, key),
                DATAGRAMS => {
                    let reads = flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP);
                    let writes = flags.contains(EpollFlags::EPOLLOUT);
                    let gone = flags.contains(EpollFlags::EPOLLHUP);
                    if let Some(datagrams) = self.datagrams.get(key) {
                        datagrams.is_ready(reads, writes, gone);
                        self.serve_datagrams(sockets, key);
                    }
                }
                JOINED => {
                    if let Some(datagrams) = self.datagrams.get(key) {
                        datagrams.kernel.ready = true;
                        self.serve_datagrams(sockets, key);
                    }
                }
                KERNEL => {
                    if let Some(listener) = self.listeners.get(key) {
                        listener.kernel_ready = true;
                        self.accept_from_kernel(sockets.now, key);
                    }
                }
                _ => {}
            }
        }
    }

    fn event(&mut self, sockets: &mut Sockets<'_>, event: Event) {
        match event.token {
            0 => {}
            token if token & LISTENS != 0 => self.accept(sockets, token & !LISTENS),
            token => self.go_on(sockets, token),
        }
    }

    fn deadline(&self) -> Option<Ns> {
        let again = (!self.again.is_empty()).then_some(Ns(0));
        let later = self.later.into_iter().chain(self.look_again).min();
        again.or(later)
    }

    fn advance(&mut self, sockets: &mut Sockets<'_>) {
        if self.later.take_if(|at| *at <= sockets.now).is_some() {
            self.open_the_door();
            for key in self.listeners.keys() {
                self.push_on(sockets, key);
            }
        }
        if self.look_again.take_if(|at| *at <= sockets.now).is_some() {
            for key in std::mem::take(&mut self.unsure) {
                if let Some(connection) = self.connections.get(key) {
                    connection.look_again();
                    self.serve(sockets, key);
                }
            }
        }
        for _ in 0..self.again.len() {
            if let Some(token) = self.again.pop_front() {
                self.go_on(sockets, token);
            }
        }
    }

    fn turns(&self) -> u32 {
        1
    }

    fn counts(&self) -> AppCounts {
        self.counts
    }
}
