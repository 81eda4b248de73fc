//! The event loop of one thread.
use super::EchoError;
use super::connection::{CHUNK, Connection, Next};
use super::counts::Counters;
use super::kernel::{Engine, Notice};
use super::share::{Drained, Share};
use hopscope_eventloop::{Poll, Slab, Token};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::eventfd::EventFd;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Sources of events.
const LISTENER: u8 = 0;
const STOP: u8 = 1;
const NOTICES: u8 = 2;
const CONNECTION: u8 = 3;
/// Events of one wait.
const EVENTS: usize = 1024;

/// After how long those are looked at again that wait for the kernel's part: it says nothing when it is done.
const SOON: Duration = Duration::from_millis(1);
/// Accepted before others get a turn.
const ACCEPTED_AT_ONCE: usize = 128;

/// Nothing is turned round in the kernel.
struct NoKernel;

impl Drained for NoKernel {
    fn is_drained(&self, _: &Share) -> Result<bool, EchoError> {
        Ok(true)
    }

    fn is_all_read(&self, _: &Share) -> Result<bool, EchoError> {
        Ok(true)
    }
}

pub(super) struct Worker<'a> {
    listener: TcpListener,
    engine: Option<Engine>,
    counters: &'a Counters,
    poll: Poll,
    connections: Slab<Connection>,
    by_cookie: HashMap<u64, u64>,
    /// Keys, and when they are looked at again.
    soon: Vec<u64>,
    soon_at: Instant,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        listener: TcpListener,
        engine: Option<Engine>,
        stop: &EventFd,
        counters: &'a Counters,
    ) -> Result<Worker<'a>, EchoError> {
        let failed = EchoError::system::<Errno>("watching sockets");
        let poll = Poll::new(EVENTS).map_err(&failed)?;
        let readable = EpollFlags::EPOLLIN;
        poll.add(&listener, Token::of(LISTENER), readable)
            .map_err(&failed)?;
        poll.add(stop, Token::of(STOP), readable).map_err(&failed)?;
        if let Some(engine) = &engine {
            let notices = Token::of(NOTICES);
            engine.watch(&poll, notices).map_err(&failed)?;
        }
        Ok(Worker {
            listener,
            engine,
            counters,
            poll,
            connections: Slab::default(),
            by_cookie: HashMap::new(),
            soon: Vec::new(),
            soon_at: Instant::now(),
        })
    }

    /// Serves until it is told to stop.
    pub(super) fn run(mut self) -> Result<(), EchoError> {
        let mut buffer = vec![0; CHUNK];
        loop {
            // The kernel's part is polled: it does not notify when it is drained.
            let most = (!self.soon.is_empty()).then_some(SOON);
            let ready = self.poll.wait(most);
            for at in 0..ready.map_err(EchoError::system("waiting for sockets"))? {
                let ready = self.poll.ready(at);
                match ready.token.source {
                    STOP => {
                        let open = self.connections.len() as u64;
                        Counters::add(&self.counters.open_at_stop, open);
                        return Ok(());
                    }
                    LISTENER => self.accept()?,
                    NOTICES => self.notices(&mut buffer)?,
                    _ => {
                        let ends = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP;
                        let ends = ready.flags.intersects(ends);
                        self.turn(ready.token.key, ends, &mut buffer)?;
                    }
                }
            }
            self.look_again(&mut buffer)?;
        }
    }

    fn accept(&mut self) -> Result<(), EchoError> {
        for _ in 0..ACCEPTED_AT_ONCE {
            let accepted = self.listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                Ok(stream)
            });
            match accepted {
                Ok(stream) => self.enter(stream)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => {
                    Counters::add(&self.counters.accept_failed, 1);
                    // The listener stays ready: without a pause this would spin, and take the
                    // processor from those that could give a descriptor back.
                    std::thread::sleep(SOON);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, stream: TcpStream) -> Result<(), EchoError> {
        Counters::add(&self.counters.accepted, 1);
        let share = match &self.engine {
            Some(engine) => engine.take_over(&stream)?,
            None => None,
        };
        let cookie = share.as_ref().map(|share| share.cookie);
        let connection = Connection::new(stream, share);
        let flags = connection.waits_for;
        let key = self.connections.insert(connection);
        if let Some(cookie) = cookie {
            self.by_cookie.insert(cookie, key);
        }
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        let token = Token::new(CONNECTION, key);
        self.poll
            .add(&connection.stream, token, flags)
            .map_err(EchoError::system("watching a connection"))
    }

    fn turn(&mut self, key: u64, ends: bool, buffer: &mut [u8]) -> Result<(), EchoError> {
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        connection.is_ending |= ends;
        let mut sent = 0;
        let next = match &self.engine {
            Some(engine) => connection.turn(buffer, engine, &mut sent)?,
            None => connection.turn(buffer, &NoKernel, &mut sent)?,
        };
        if sent > 0 {
            Counters::add(&self.counters.user_bytes, sent);
        }
        match next {
            Next::Wait(flags) => self.wait_for(key, flags),
            Next::Soon => {
                if self.soon.is_empty() {
                    self.soon_at = Instant::now() + SOON;
                }
                self.soon.push(key);
                self.wait_for(key, EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET)
            }
            Next::Ended => self.leave(key, |counters| &counters.ended),
            Next::Reset => self.leave(key, |counters| &counters.reset),
            Next::Failed => self.leave(key, |counters| &counters.failed),
        }
    }

    fn wait_for(&mut self, key: u64, flags: EpollFlags) -> Result<(), EchoError> {
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        if connection.waits_for == flags {
            return Ok(());
        }
        connection.waits_for = flags;
        let token = Token::new(CONNECTION, key);
        self.poll
            .modify(&connection.stream, token, flags)
            .map_err(EchoError::system("watching a connection"))
    }

    fn leave(
        &mut self,
        key: u64,
        how: fn(&Counters) -> &std::sync::atomic::AtomicU64,
    ) -> Result<(), EchoError> {
        if let Some(connection) = self.connections.remove(key) {
            Counters::add(how(self.counters), 1);
            if let Some(share) = &connection.share {
                self.by_cookie.remove(&share.cookie);
            }
        }
        Ok(())
    }

    fn notices(&mut self, buffer: &mut [u8]) -> Result<(), EchoError> {
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        for notice in engine.notices()? {
            match notice {
                Notice::User { cookie } => {
                    let Some(&key) = self.by_cookie.get(&cookie) else {
                        continue;
                    };
                    if let Some(share) = self.connections.get(key).and_then(|c| c.share.as_mut()) {
                        share.is_user = true;
                    }
                    self.turn(key, false, buffer)?;
                }
                Notice::Over { cookie } => {
                    let Some(&key) = self.by_cookie.get(&cookie) else {
                        continue;
                    };
                    if let Some(connection) = self.connections.get(key) {
                        super::listen::reset_at_close(&connection.stream)?;
                    }
                    self.leave(key, |counters| &counters.over_limit)?;
                }
            }
        }
        Ok(())
    }

    fn look_again(&mut self, buffer: &mut [u8]) -> Result<(), EchoError> {
        if self.soon.is_empty() || Instant::now() < self.soon_at {
            return Ok(());
        }
        let mut keys = std::mem::take(&mut self.soon);
        Counters::add(&self.counters.waited, keys.len() as u64);
        // Two events may have put the same connection here.
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            self.turn(key, false, buffer)?;
        }
        Ok(())
    }
}
