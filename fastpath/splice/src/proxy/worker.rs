//! The event loop.
use super::auto::Chooser;
use super::connection::{Connection, DOWN, End, Turn, UP};
use super::counts::Counters;
use super::kernel::{Engine, NotJoined, Notice};
use super::pipe::CHUNK;
use super::share::{Kernel, Share};
use super::shared::{Phase, Shared};
use super::{EngineKind, ProxyError, ProxyPlan, dial};
use crate::echo::listen::reset_at_close;
use hopscope_eventloop::{Poll, Slab, Token};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Sources of events.
const LISTENER: u8 = 0;
const WAKE: u8 = 1;
const NOTICES: u8 = 2;
/// A connection's sockets, by side.
const SOCKETS: [u8; 2] = [3, 4];
/// Events of one wait.
const EVENTS: usize = 1024;
/// Accepted before others get a turn.
const ACCEPTED_AT_ONCE: usize = 128;

/// Nothing is redirected.
struct NoKernel;

impl Kernel for NoKernel {
    fn is_drained(&self, _: &Share) -> Result<bool, ProxyError> {
        Ok(true)
    }

    fn is_all_read(&self, _: &Share) -> Result<bool, ProxyError> {
        Ok(true)
    }

    fn takeovers(&self, _: &Share) -> Result<u32, ProxyError> {
        Ok(0)
    }

    fn say_progress(&self, _: &Share) -> Result<(), ProxyError> {
        Ok(())
    }
}

/// Why something is looked at later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    /// The kernel's part was not with TCP.
    Drained,
    /// The upstream must be there by then.
    Connected,
    /// Something must have been moved by then.
    Idle,
}

pub(super) struct Worker<'a> {
    plan: ProxyPlan,
    listener: Option<TcpListener>,
    engine: Option<Engine>,
    shared: &'a Shared,
    counters: &'a Counters,
    poll: Poll,
    connections: Slab<Connection>,
    /// Key and direction of what the kernel has.
    by_cookie: HashMap<u64, (u64, usize)>,
    later: BinaryHeap<Reverse<(Instant, u64, Look)>>,
    chooser: Chooser,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        plan: ProxyPlan,
        listener: TcpListener,
        engine: Option<Engine>,
        shared: &'a Shared,
    ) -> Result<Worker<'a>, ProxyError> {
        let failed = ProxyError::system::<Errno>("watching sockets");
        let poll = Poll::new(EVENTS).map_err(&failed)?;
        let readable = EpollFlags::EPOLLIN;
        poll.add(&listener, Token::of(LISTENER), readable)
            .map_err(&failed)?;
        poll.add(&shared.wake, Token::of(WAKE), readable)
            .map_err(&failed)?;
        if let Some(engine) = &engine {
            let notices = Token::of(NOTICES);
            engine.watch(&poll, notices).map_err(&failed)?;
        }
        Ok(Worker {
            chooser: Chooser::new(plan.engine, plan.window, plan.again),
            plan,
            listener: Some(listener),
            engine,
            shared,
            counters: &shared.counters,
            poll,
            connections: Slab::default(),
            by_cookie: HashMap::new(),
            later: BinaryHeap::new(),
        })
    }

    /// Serves until it is told to end, or has no connection left after it was told to take no more.
    pub(super) fn run(mut self) -> Result<(), ProxyError> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let ready = self.poll.wait(self.timeout());
            for at in 0..ready.map_err(ProxyError::system("waiting for sockets"))? {
                let ready = self.poll.ready(at);
                let (key, flags) = (ready.token.key, ready.flags);
                match ready.token.source {
                    LISTENER => self.accept()?,
                    // Both are looked at after each wait.
                    WAKE | NOTICES => {}
                    source if source == SOCKETS[UP] => self.event(key, UP, flags, &mut buffer)?,
                    _ => self.event(key, DOWN, flags, &mut buffer)?,
                }
            }
            self.notices(&mut buffer)?;
            self.look_again(&mut buffer)?;
            self.compare()?;
            match self.shared.phase() {
                Phase::Serve => {}
                Phase::Drain => {
                    // Those that wait in the queue are connected already, as they see it.
                    self.accept()?;
                    self.listener = None;
                    if self.connections.is_empty() {
                        return Ok(());
                    }
                    self.stop_waking()?;
                }
                Phase::End => return self.cut(),
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let next = self.later.peek().map(|Reverse((at, ..))| *at);
        let next = next.into_iter().chain(self.chooser.deadline()).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// The eventfd may be written to again, for the end.
    fn stop_waking(&self) -> Result<(), ProxyError> {
        match self.shared.wake.read() {
            Ok(_) | Err(Errno::EAGAIN) => Ok(()),
            Err(errno) => Err(ProxyError::system("being woken")(errno)),
        }
    }

    fn cut(&mut self) -> Result<(), ProxyError> {
        for key in self.connections.keys() {
            self.leave(key, true, |counters| &counters.open_at_stop)?;
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), ProxyError> {
        #[cfg(test)]
        if let Some(gate) = &self.plan.gate {
            drop(gate.lock());
        }
        for _ in 0..ACCEPTED_AT_ONCE {
            let Some(listener) = &self.listener else {
                return Ok(());
            };
            let accepted = listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(stream)
            });
            match accepted {
                Ok(stream) => self.enter(stream)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => {
                    Counters::add(&self.counters.accept_failed, 1);
                    // The listener stays ready: without a pause this would spin.
                    std::thread::sleep(Duration::from_millis(1));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, down: TcpStream) -> Result<(), ProxyError> {
        Counters::add(&self.counters.accepted, 1);
        let up = match dial::dial(self.plan.to) {
            Ok(up) => up,
            Err(errno) => {
                Counters::add(
                    of_connect(std::io::Error::from(errno).kind())(self.counters),
                    1,
                );
                return Ok(reset_at_close(&down)?);
            }
        };
        if let Some(after) = self.plan.keep_alive {
            let failed = ProxyError::system("switching keep-alive on");
            for stream in [&down, &up] {
                dial::keep_alive(stream, after).map_err(&failed)?;
            }
        }
        let (engine, window) = self.chooser.pick(Instant::now());
        let mut connection = Connection::new(down, up, engine);
        connection.window = window;
        let (flags, until) = (
            connection.waits_for,
            connection.opened + self.plan.connect_timeout,
        );
        Counters::add(&self.counters.open, 1);
        Counters::add(
            match engine {
                EngineKind::Kernel => &self.counters.kernel_connections,
                EngineKind::User => &self.counters.user_connections,
            },
            1,
        );
        let key = self.connections.insert(connection);
        self.later.push(Reverse((until, key, Look::Connected)));
        if let Some(idle) = self.plan.idle_timeout {
            let until = Instant::now() + idle;
            self.later.push(Reverse((until, key, Look::Idle)));
        }
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        let failed = ProxyError::system("watching a connection");
        for side in [DOWN, UP] {
            let token = Token::new(SOCKETS[side], key);
            self.poll
                .add(&connection.streams[side], token, flags[side])
                .map_err(&failed)?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        key: u64,
        side: usize,
        events: EpollFlags,
        buffer: &mut [u8],
    ) -> Result<(), ProxyError> {
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        if !connection.is_connected {
            return self.connecting(key, side, events);
        }
        connection.forget_looks();
        let turn = match &self.engine {
            Some(engine) => connection.event(side, events, buffer, engine)?,
            None => connection.event(side, events, buffer, &NoKernel)?,
        };
        self.turned(key, turn)
    }

    fn connecting(&mut self, key: u64, side: usize, events: EpollFlags) -> Result<(), ProxyError> {
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        let is_failed = events.contains(EpollFlags::EPOLLERR);
        if side == DOWN {
            // A client may say FIN already, and wait for an answer; that it reset is the end.
            if is_failed {
                self.leave(key, true, |counters| &counters.gone_before_connect)?;
            }
            return Ok(());
        }
        let error = connection.streams[UP].take_error();
        if let Some(error) = error.map_err(ProxyError::system("asking for a socket's error"))? {
            return self.leave(key, true, of_connect(error.kind()));
        }
        if is_failed || !events.contains(EpollFlags::EPOLLOUT) {
            return self.leave(key, true, |counters| &counters.connect_failed);
        }
        connection.is_connected = true;
        if connection.engine == EngineKind::Kernel {
            self.join(key)?;
        }
        self.watch(key)
    }

    fn join(&mut self, key: u64) -> Result<(), ProxyError> {
        let (Some(connection), Some(engine)) = (self.connections.get(key), &mut self.engine) else {
            return Ok(());
        };
        let joined = engine.join(&connection.streams)?;
        connection.cookies = joined.cookies;
        for (side, share) in joined.shares.into_iter().enumerate() {
            if let Some(share) = share {
                self.by_cookie.insert(share.cookie, (key, side));
                connection.pipes[side].share = Some(share);
            }
        }
        if let Some(not) = joined.not {
            let counter = match not {
                NotJoined::Ended => &self.counters.not_joined_ended,
                NotJoined::Full => &self.counters.not_joined_full,
                NotJoined::Refused => &self.counters.not_joined_refused,
            };
            Counters::add(counter, 1);
        }
        Ok(())
    }

    fn turned(&mut self, key: u64, turn: Turn) -> Result<(), ProxyError> {
        match turn {
            Turn::Wait => self.watch(key),
            Turn::Soon => {
                self.soon(key);
                self.watch(key)
            }
            Turn::End(End::Ended) => self.leave(key, false, |counters| &counters.ended),
            Turn::End(End::Reset(DOWN)) => {
                self.leave(key, true, |counters| &counters.reset_by_client)
            }
            Turn::End(End::Reset(_)) => {
                self.leave(key, true, |counters| &counters.reset_by_upstream)
            }
            Turn::End(End::Failed) => self.leave(key, true, |counters| &counters.failed),
        }
    }

    fn soon(&mut self, key: u64) {
        if let Some(connection) = self.connections.get(key)
            && !connection.is_soon
        {
            connection.is_soon = true;
            let at = Instant::now() + connection.next_look();
            self.later.push(Reverse((at, key, Look::Drained)));
        }
    }

    /// Has its sockets watched for what it waits for now.
    fn watch(&mut self, key: u64) -> Result<(), ProxyError> {
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        for side in [DOWN, UP] {
            let flags = connection.wants(side);
            if connection.waits_for[side] == flags {
                continue;
            }
            connection.waits_for[side] = flags;
            let token = Token::new(SOCKETS[side], key);
            self.poll
                .modify(&connection.streams[side], token, flags)
                .map_err(ProxyError::system("watching a connection"))?;
        }
        Ok(())
    }

    fn leave(
        &mut self,
        key: u64,
        is_reset: bool,
        how: fn(&Counters) -> &AtomicU64,
    ) -> Result<(), ProxyError> {
        let Some(connection) = self.connections.remove(key) else {
            return Ok(());
        };
        if is_reset {
            for stream in &connection.streams {
                reset_at_close(stream)?;
            }
        }
        self.count_moved(&connection)?;
        let cookies = connection.cookies;
        for share in connection.shares() {
            self.by_cookie.remove(&share.cookie);
        }
        // Its sockets are closed before their records go: no verdict runs without one.
        drop(connection);
        if let (Some(engine), Some(cookies)) = (&mut self.engine, cookies) {
            engine.forget(cookies);
        }
        Counters::add(how(self.counters), 1);
        Counters::take(&self.counters.open, 1);
        Ok(())
    }

    fn count_moved(&mut self, connection: &Connection) -> Result<(), ProxyError> {
        Counters::add(&self.counters.user_bytes_up, connection.pipes[DOWN].sent);
        Counters::add(&self.counters.user_bytes_down, connection.pipes[UP].sent);
        if let Some(window) = connection.window
            && window == self.chooser.number()
        {
            let bytes = connection.moved(self.engine.as_ref())?;
            let took = connection.opened.elapsed();
            self.chooser.add(window, connection.engine, bytes, took);
        }
        Ok(())
    }

    fn notices(&mut self, buffer: &mut [u8]) -> Result<(), ProxyError> {
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        for notice in engine.notices()? {
            let (Notice::User { cookie }
            | Notice::Over { cookie }
            | Notice::Kernel { cookie }
            | Notice::HoldBack { cookie }) = notice;
            let Some(&(key, side)) = self.by_cookie.get(&cookie) else {
                continue;
            };
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            let pipe = &mut connection.pipes[side];
            let mut is_turn = [false; 2];
            match notice {
                Notice::Over { .. } => {
                    self.leave(key, true, |counters| &counters.over_limit)?;
                    continue;
                }
                #[cfg(test)]
                Notice::HoldBack { .. } if self.plan.without.hold_back => {}
                Notice::HoldBack { .. } => pipe.hold_back(&connection.streams[side]),
                Notice::User { .. } => {
                    pipe.has_kernel(false);
                    is_turn[side] = true;
                }
                Notice::Kernel { .. } => pipe.has_kernel(true),
            }
            self.turn(key, is_turn, buffer)?;
        }
        Ok(())
    }

    fn turn(&mut self, key: u64, is_turn: [bool; 2], buffer: &mut [u8]) -> Result<(), ProxyError> {
        let Some(connection) = self.connections.get(key) else {
            return Ok(());
        };
        let turn = match &self.engine {
            Some(engine) => connection.turn(is_turn, buffer, engine)?,
            None => connection.turn(is_turn, buffer, &NoKernel)?,
        };
        self.turned(key, turn)
    }

    fn look_again(&mut self, buffer: &mut [u8]) -> Result<(), ProxyError> {
        let now = Instant::now();
        while let Some(&Reverse((at, key, look))) = self.later.peek()
            && at <= now
        {
            self.later.pop();
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            match look {
                Look::Connected if connection.is_connected => {}
                Look::Connected => {
                    self.leave(key, true, |counters| &counters.connect_timed_out)?;
                }
                Look::Idle => {
                    let moved = connection.moved(self.engine.as_ref())?;
                    if moved == connection.moved_before {
                        self.leave(key, true, |counters| &counters.idle_timed_out)?;
                    } else if let Some(idle) = self.plan.idle_timeout {
                        connection.moved_before = moved;
                        self.later.push(Reverse((now + idle, key, Look::Idle)));
                    }
                }
                Look::Drained => {
                    connection.is_soon = false;
                    Counters::add(&self.counters.waited, 1);
                    let is_turn = [DOWN, UP].map(|side| connection.pipes[side].waits());
                    self.turn(key, is_turn, buffer)?;
                }
            }
        }
        Ok(())
    }

    /// At the end of a comparison's window.
    fn compare(&mut self) -> Result<(), ProxyError> {
        if self.chooser.deadline().is_none_or(|at| Instant::now() < at) {
            return Ok(());
        }
        let mut open = Vec::new();
        for key in self.connections.keys() {
            let number = self.chooser.number();
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            if connection.window != Some(number) {
                continue;
            }
            let (engine, took) = (connection.engine, connection.opened.elapsed());
            let bytes = connection.moved(self.engine.as_ref())?;
            open.push((engine, bytes, took));
        }
        if let Some(choice) = self.chooser.choose(Instant::now(), open) {
            self.shared.chose(choice);
        }
        Ok(())
    }
}

/// How a connection that could not be made is counted.
fn of_connect(kind: ErrorKind) -> fn(&Counters) -> &AtomicU64 {
    match kind {
        ErrorKind::ConnectionRefused => |counters| &counters.connect_refused,
        ErrorKind::TimedOut => |counters| &counters.connect_timed_out,
        _ => |counters| &counters.connect_failed,
    }
}
