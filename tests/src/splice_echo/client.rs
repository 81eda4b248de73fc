//! Clients that compare every byte. Each connection has a script of its own kind: one message after the
//! other; all of them at once and then the end; one and the end at once. The server's end must follow
//! the last byte.
use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

pub(crate) const SIZES: [usize; 12] = [
    1, 2, 13, 64, 100, 512, 1460, 4096, 9000, 16384, 65536, 131072,
];
/// Only what hangs is waited for so long.
const WATCHDOG_MS: u16 = 20_000;
/// A prime, so that no message boundary falls onto the pattern's.
const PERIOD: usize = 65521;
const CHUNK: usize = 128 << 10;

pub(crate) struct Plan {
    pub(crate) to: SocketAddr,
    pub(crate) sources: Vec<IpAddr>,
    pub(crate) connections: usize,
    pub(crate) at_once: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) done: usize,
    pub(crate) bytes: u64,
    /// What went wrong, and how often.
    pub(crate) wrong: BTreeMap<String, usize>,
    pub(crate) hang: usize,
}

impl Outcome {
    pub(crate) fn ensure_all(&self, connections: usize) -> Result<()> {
        ensure!(
            self.done == connections && self.wrong.is_empty() && self.hang == 0,
            "{self:?} of {connections}"
        );
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    InTurn,
    ThenEnd,
    OneAndEnd,
}

struct Connection {
    stream: TcpStream,
    kind: Kind,
    /// Where its bytes lie in the pattern.
    offset: usize,
    /// Ends of its messages.
    ends: Vec<usize>,
    sent: usize,
    received: usize,
    has_shut: bool,
}

enum Next {
    Wait(EpollFlags),
    Done,
    Wrong(String),
}

/// A small generator of its own: the same scripts each time.
fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn pattern() -> Vec<u8> {
    let bytes = |at: usize| scramble((at % PERIOD) as u64 + 1) as u8;
    (0..PERIOD + CHUNK).map(bytes).collect()
}

impl Connection {
    fn start(plan: &Plan, number: usize) -> Result<Connection> {
        let source = plan.sources[number % plan.sources.len()];
        let family = match plan.to {
            SocketAddr::V4(_) => AddressFamily::Inet,
            SocketAddr::V6(_) => AddressFamily::Inet6,
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, None)?;
        setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
        // The port is chosen with the other end known: many more connections than ports.
        setsockopt(&fd, sockopt::IpBindAddressNoPort, &true)?;
        bind(
            fd.as_raw_fd(),
            &SockaddrStorage::from(SocketAddr::new(source, 0)),
        )?;
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(plan.to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(errno).context("connect"),
        }
        let kind = [Kind::InTurn, Kind::ThenEnd, Kind::OneAndEnd][number % 3];
        let messages = match kind {
            Kind::OneAndEnd => 1,
            _ => 3,
        };
        let mut end = 0;
        let ends = (0..messages).map(|message| {
            let at = scramble((number * 16 + message) as u64) as usize;
            end += SIZES[at % SIZES.len()];
            end
        });
        Ok(Connection {
            stream: TcpStream::from(fd),
            kind,
            offset: scramble(number as u64) as usize % PERIOD,
            ends: ends.collect(),
            sent: 0,
            received: 0,
            has_shut: false,
        })
    }

    fn whole(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Up to where it may send now.
    fn may_send(&self) -> usize {
        match self.kind {
            Kind::InTurn => {
                let next = self.ends.iter().find(|end| **end > self.received);
                next.copied().unwrap_or(self.whole())
            }
            _ => self.whole(),
        }
    }

    fn turn(&mut self, pattern: &[u8], buffer: &mut [u8]) -> Next {
        match self.try_turn(pattern, buffer) {
            Ok(next) => next,
            Err(error) => Next::Wrong(format!("{:?}: {}", self.kind, error.kind())),
        }
    }

    fn try_turn(&mut self, pattern: &[u8], buffer: &mut [u8]) -> std::io::Result<Next> {
        loop {
            let mut moved = false;
            while self.sent < self.may_send() {
                let at = (self.offset + self.sent) % PERIOD;
                let len = (self.may_send() - self.sent).min(CHUNK);
                match self.stream.write(&pattern[at..at + len]) {
                    Ok(n) => self.sent += n,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
                moved = true;
            }
            if self.sent == self.whole() && self.kind != Kind::InTurn && !self.has_shut {
                self.stream.shutdown(Shutdown::Write)?;
                self.has_shut = true;
            }
            match self.stream.read(buffer) {
                Ok(0) => {
                    return Ok(match self.received == self.whole() && self.has_shut {
                        true => Next::Done,
                        false => Next::Wrong(format!("{:?}: the end came too early", self.kind)),
                    });
                }
                Ok(n) => {
                    let at = (self.offset + self.received) % PERIOD;
                    if self.received + n > self.sent || buffer[..n] != pattern[at..at + n] {
                        return Ok(Next::Wrong(format!("{:?}: other bytes", self.kind)));
                    }
                    self.received += n;
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.kind == Kind::InTurn && self.received == self.whole() {
                return Ok(Next::Done);
            }
            if !moved {
                return Ok(Next::Wait(match self.sent < self.may_send() {
                    true => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
                    false => EpollFlags::EPOLLIN,
                }));
            }
        }
    }
}

/// Runs all connections, `at_once` at a time.
pub(crate) fn run(plan: &Plan) -> Result<Outcome> {
    let pattern = pattern();
    let mut buffer = vec![0; CHUNK];
    let mut outcome = Outcome::default();
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut open: BTreeMap<u64, Connection> = BTreeMap::new();
    let mut events = vec![EpollEvent::empty(); 1024];
    let mut next = 0;
    loop {
        while next < plan.connections && open.len() < plan.at_once {
            let connection = Connection::start(plan, next)?;
            let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT;
            epoll.add(&connection.stream, EpollEvent::new(both, next as u64))?;
            open.insert(next as u64, connection);
            next += 1;
        }
        if open.is_empty() {
            return Ok(outcome);
        }
        let ready = epoll.wait(&mut events, EpollTimeout::from(WATCHDOG_MS))?;
        if ready == 0 {
            outcome.hang = open.len();
            return Ok(outcome);
        }
        for event in &events[..ready] {
            let Some(connection) = open.get_mut(&event.data()) else {
                continue;
            };
            match connection.turn(&pattern, &mut buffer) {
                Next::Wait(flags) => {
                    let mut event = EpollEvent::new(flags, event.data());
                    epoll.modify(&connection.stream, &mut event)?;
                    continue;
                }
                Next::Done => outcome.done += 1,
                Next::Wrong(what) => *outcome.wrong.entry(what).or_default() += 1,
            }
            outcome.bytes += connection.received as u64;
            open.remove(&event.data());
        }
    }
}
