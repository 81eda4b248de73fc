//! The back end as a whole: one thread, one loop. Whatever a front end does ends at most its connection.
use super::command::Inside;
use super::control::Control;
use super::counts::ServeCounts;
use super::error::{Broken, ServeError};
use super::kicks::Kicks;
use super::listen::Endpoint;
use super::pair::Pair;
use super::privileges::{self, RunAs};
use super::queue::{Queue, QueueError};
use super::request::WAIT;
use super::session::{Around, Failed, Session};
use crate::Ns;
use crate::common::clock::Clock;
use crate::common::feature::{self, Negotiated, PortOffload};
use crate::events::Events;
use crate::policy::Kind;
use crate::vhost::{self, PROTOCOL_MQ, PROTOCOL_REPLY_ACK, PROTOCOL_STATUS};
use hopscope_netio::PacketIo;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shorter waits are spent looking: a timer that wakes a thread comes some 50 us late.
const SPIN: Ns = Ns::from_us(60);
/// Until a front end that serves the socket is asked again.
const AGAIN: Duration = Duration::from_millis(100);

pub struct Plan {
    pub socket: PathBuf,
    /// The front end serves the socket, and this end connects to it.
    pub client: bool,
    /// One for each pair of queues.
    pub ports: Vec<Box<dyn PacketIo>>,
    /// The ports take TCP segments of up to 64 KiB, and give them.
    pub segments: bool,
    /// Where requests are taken, if anywhere.
    pub control: Option<PathBuf>,
    /// Other policies think beside the one at work, from the start.
    pub shadows: bool,
    pub kicks: Kicks,
    pub rx_calls: Kind,
    pub tx_calls: Kind,
    /// Where what happens is kept, besides being counted.
    pub events: Option<Events>,
}

/// What a user may want to know while it happens.
#[derive(Debug)]
pub enum Notice<'a> {
    Connected,
    TurnedAway,
    Queue {
        n: usize,
        size: u16,
        taken: Negotiated,
    },
    /// It goes on where its ring says, not where the front end does; so many entries went back with nothing in them.
    Found {
        n: usize,
        emptied: u16,
    },
    Broken {
        n: usize,
        error: &'a QueueError,
    },
    BrokenOff(&'a Broken),
    Gone,
    /// The socket's file could not be removed at the end.
    Left {
        path: &'a Path,
        error: &'a io::Error,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Stop,
    Listener,
    FrontEnd,
    Timer,
    Control,
    Kick(usize),
    Port(usize),
}

impl From<Token> for u64 {
    fn from(token: Token) -> u64 {
        match token {
            Token::Stop => 0,
            Token::Listener => 1,
            Token::FrontEnd => 2,
            Token::Timer => 3,
            Token::Control => 4,
            Token::Kick(n) => 1 << 32 | n as u64,
            Token::Port(n) => 2 << 32 | n as u64,
        }
    }
}

impl Token {
    fn of(data: u64) -> Token {
        let n = data as u32 as usize;
        match (data >> 32, n) {
            (0, 0) => Token::Stop,
            (0, 1) => Token::Listener,
            (0, 2) => Token::FrontEnd,
            (0, 4) => Token::Control,
            (1, n) => Token::Kick(n),
            (2, n) => Token::Port(n),
            _ => Token::Timer,
        }
    }
}

pub struct Server {
    endpoint: Endpoint,
    epoll: Epoll,
    timer: TimerFd,
    clock: Clock,
    offered: u64,
    kicks: Kicks,
    control: Option<Control>,
    pairs: Vec<Pair>,
    session: Option<Session>,
    counts: ServeCounts,
}

impl Server {
    /// Listens; front ends can connect from now on, and are served by [`Server::run`].
    ///
    /// # Errors
    /// The socket cannot be had, or a port cannot be waited for.
    pub fn start(plan: Plan) -> Result<Server, ServeError> {
        let system = ServeError::system::<Errno>;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system("watching"))?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags);
        let timer = timer.map_err(system("making a timer"))?;
        let readable = |token: Token| EpollEvent::new(EpollFlags::EPOLLIN, token.into());
        epoll
            .add(&timer, readable(Token::Timer))
            .map_err(system("watching the timer"))?;
        let offload = plan.ports.iter().all(|port| port.capabilities().offload);
        let port_offload = match (offload, plan.segments) {
            (false, _) => PortOffload::None,
            (true, false) => PortOffload::Checksums,
            (true, true) => PortOffload::Segments,
        };
        let offered = feature::offered(port_offload, plan.ports.len(), plan.kicks.offers_index());
        let mut pairs = Vec::new();
        for (n, port) in plan.ports.into_iter().enumerate() {
            let mut rx = Queue::new(2 * n, plan.rx_calls, plan.kicks);
            let mut tx = Queue::new(2 * n + 1, plan.tx_calls, plan.kicks);
            for queue in [&mut rx, &mut tx] {
                queue.cast_shadows(plan.shadows, Ns(0));
                if let Some(events) = &plan.events {
                    queue.events = events.queue(queue.index);
                }
            }
            let mut pair = Pair::new(n, port, [rx, tx]);
            pair.watch(&epoll)?;
            pairs.push(pair);
        }
        let endpoint = Endpoint::open(&plan.socket, plan.client)?;
        if let Some(listener) = endpoint.fd() {
            epoll
                .add(listener, readable(Token::Listener))
                .map_err(system("watching the socket"))?;
        }
        let control = plan.control.map(|path| {
            let token = Token::Control.into();
            Control::open(&path, &epoll, token)
        });
        let control = control.transpose()?;
        Ok(Server {
            endpoint,
            epoll,
            timer,
            clock: Clock::start(),
            offered,
            kicks: plan.kicks,
            control,
            pairs,
            session: None,
            counts: ServeCounts::default(),
        })
    }

    /// Gives up what was needed to open everything: all capabilities, any way to new ones, and the user, if
    /// there is another to run as; the socket is that one's then. To be called while there is one thread.
    ///
    /// # Errors
    /// The kernel refuses to change the user.
    pub fn drop_privileges(&self, user: Option<&RunAs>) -> Result<(), ServeError> {
        if let Some(user) = user {
            self.endpoint.hand_to(user)?;
            if let Some(control) = &self.control {
                control.hand_to(user)?;
            }
        }
        privileges::drop_all(user)
    }

    /// Serves until `stop` is readable, or something fails: a port, or the kernel. Then the queues end in order, so that
    /// another back end can go on there.
    pub fn run(
        mut self,
        stop: BorrowedFd<'_>,
        say: &mut dyn FnMut(Notice<'_>),
    ) -> (Result<ServeCounts, ServeError>, Result<(), ServeError>) {
        let served = self.serve(stop, say);
        (self.stopped(served.is_ok(), say), served)
    }

    fn serve(
        &mut self,
        stop: BorrowedFd<'_>,
        say: &mut dyn FnMut(Notice<'_>),
    ) -> Result<(), ServeError> {
        let system = ServeError::system::<Errno>;
        let readable = EpollEvent::new(EpollFlags::EPOLLIN, Token::Stop.into());
        self.epoll
            .add(stop, readable)
            .map_err(system("watching for the end"))?;
        let mut events = vec![EpollEvent::empty(); 64];
        loop {
            let timeout = self.timeout()?;
            if self.step(&mut events, timeout, say)? {
                return Ok(());
            }
        }
    }

    /// Waits for something, then does a piece of everything that there is to do; true: it is to end.
    fn step(
        &mut self,
        events: &mut [EpollEvent],
        timeout: EpollTimeout,
        say: &mut dyn FnMut(Notice<'_>),
    ) -> Result<bool, ServeError> {
        let ready = match self.epoll.wait(events, timeout) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(ServeError::system("waiting")(errno)),
        };
        if self.session.is_none()
            && let Some(stream) = self.endpoint.try_connect()?
        {
            self.connected(stream, say)?;
        }
        for event in &events[..ready] {
            match Token::of(event.data()) {
                Token::Stop => return Ok(true),
                Token::Listener => self.accept(say)?,
                Token::FrontEnd => self.listen(say)?,
                Token::Timer => {
                    // Not yet, or already: the deadlines themselves are looked at below.
                    let _ = self.timer.wait();
                }
                Token::Control => self.control(say)?,
                Token::Kick(n) => self.kicked(n, say),
                Token::Port(n) => self.pairs[n].port_is(event.events())?,
            }
        }
        self.turn(say)?;
        Ok(false)
    }

    fn timeout(&mut self) -> Result<EpollTimeout, ServeError> {
        if let Some(control) = &mut self.control {
            control.wake(&self.epoll, Token::Control.into(), self.clock)?;
        }
        if self.pairs.iter().any(Pair::is_busy) {
            return Ok(EpollTimeout::ZERO);
        }
        for pair in &mut self.pairs {
            pair.rewatch(&self.epoll)?;
        }
        let control = self.control.as_ref().and_then(Control::deadline);
        let deadlines = self.pairs.iter_mut().filter_map(Pair::deadline);
        let deadline = deadlines.chain(control).min();
        let system = ServeError::system::<Errno>;
        if let Some(deadline) = deadline {
            let left = deadline.since(self.clock.now());
            if left < SPIN {
                return Ok(EpollTimeout::ZERO);
            }
            let left = TimeSpec::from_duration(Duration::from_nanos(left.0));
            self.timer
                .set(Expiration::OneShot(left), TimerSetTimeFlags::empty())
                .map_err(system("setting a timer"))?;
        }
        match self.session.is_none() && self.endpoint.is_client() {
            true => EpollTimeout::try_from(AGAIN).map_err(|_| system("waiting")(Errno::EINVAL)),
            false => Ok(EpollTimeout::NONE),
        }
    }

    fn turn(&mut self, say: &mut dyn FnMut(Notice<'_>)) -> Result<(), ServeError> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let mut failed = Vec::new();
        for pair in &mut self.pairs {
            pair.turn(&session.mapped.memory, self.clock, &mut failed)?;
        }
        if let Err(broken) = session.there() {
            self.break_off(&broken, say);
            return Ok(());
        }
        for (n, error) in &failed {
            say(Notice::Broken { n: *n, error });
        }
        Ok(())
    }

    fn break_off(&mut self, broken: &Broken, say: &mut dyn FnMut(Notice<'_>)) {
        self.counts.broken_off += 1;
        say(Notice::BrokenOff(broken));
        if let Some(session) = self.session.take() {
            session.close(&mut Around {
                pairs: &mut self.pairs,
                epoll: &self.epoll,
                clock: self.clock,
                say,
            });
        }
    }

    fn control(&mut self, say: &mut dyn FnMut(Notice<'_>)) -> Result<(), ServeError> {
        let Some(control) = &mut self.control else {
            return Ok(());
        };
        let mut broken = Vec::new();
        let mut inside = Inside {
            pairs: &mut self.pairs,
            memory: self.session.as_ref().map(|session| &session.mapped.memory),
            clock: self.clock,
            counts: &self.counts,
            offers_index: self.kicks.offers_index(),
            broken: &mut broken,
        };
        let mut answer = |line: &[u8], counts| inside.answer(line, counts);
        let token = Token::Control.into();
        control.turn(&self.epoll, token, self.clock, &mut answer)?;
        for (n, error) in &broken {
            say(Notice::Broken { n: *n, error });
        }
        Ok(())
    }

    fn kicked(&mut self, n: usize, say: &mut dyn FnMut(Notice<'_>)) {
        let queue = self
            .pairs
            .get_mut(n / 2)
            .map(|pair| &mut pair.queues[n % 2]);
        if let Some(queue) = queue
            && let Err(error) = queue.kicked()
        {
            queue.give_up();
            say(Notice::Broken { n, error: &error });
        }
    }

    fn accept(&mut self, say: &mut dyn FnMut(Notice<'_>)) -> Result<(), ServeError> {
        while let Some(stream) = self.endpoint.accept()? {
            if self.session.is_some() {
                self.counts.turned_away += 1;
                say(Notice::TurnedAway);
                continue;
            }
            self.connected(stream, say)?;
        }
        Ok(())
    }

    fn connected(
        &mut self,
        stream: UnixStream,
        say: &mut dyn FnMut(Notice<'_>),
    ) -> Result<(), ServeError> {
        let protocol = PROTOCOL_MQ | PROTOCOL_REPLY_ACK | PROTOCOL_STATUS;
        let control = vhost::Control::new(self.offered, protocol, 2 * self.pairs.len());
        let session = Session::new(stream, control);
        let event = EpollEvent::new(EpollFlags::EPOLLIN, Token::FrontEnd.into());
        self.epoll
            .add(session.fd(), event)
            .map_err(ServeError::system("watching the front end"))?;
        self.session = Some(session);
        self.counts.connections += 1;
        say(Notice::Connected);
        Ok(())
    }

    fn listen(&mut self, say: &mut dyn FnMut(Notice<'_>)) -> Result<(), ServeError> {
        let Some(mut session) = self.session.take() else {
            return Ok(());
        };
        let mut around = Around {
            pairs: &mut self.pairs,
            epoll: &self.epoll,
            clock: self.clock,
            say,
        };
        match session.listen(&mut around) {
            Ok(true) => {
                self.session = Some(session);
                return Ok(());
            }
            Ok(false) => (around.say)(Notice::Gone),
            Err(Failed::Server(error)) => return Err(error),
            Err(Failed::Connection(broken)) => {
                self.counts.broken_off += 1;
                (around.say)(Notice::BrokenOff(&broken));
            }
        }
        session.close(&mut around);
        Ok(())
    }

    /// Where something has failed, what a port still holds may not go out.
    fn stopped(
        mut self,
        in_order: bool,
        say: &mut dyn FnMut(Notice<'_>),
    ) -> Result<ServeCounts, ServeError> {
        if let Some(session) = self.session.take() {
            session.close(&mut Around {
                pairs: &mut self.pairs,
                epoll: &self.epoll,
                clock: self.clock,
                say,
            });
        }
        if let Some(control) = &self.control {
            self.counts.control = control.counts;
        }
        for pair in &mut self.pairs {
            let flushed = pair.port.flush();
            if in_order {
                flushed?;
            }
            let counts = pair.counts(self.clock.now(), WAIT)?;
            self.counts.pairs.push(counts);
        }
        let control = self.control.as_mut().map(Control::remove);
        for removed in control.into_iter().chain([self.endpoint.remove()]) {
            if let Err((path, error)) = &removed {
                say(Notice::Left { path, error });
            }
        }
        Ok(self.counts)
    }
}

#[cfg(test)]
impl Server {
    /// One step that does not wait, as [`Server::run`] does it.
    pub(super) fn step_once(&mut self, say: &mut dyn FnMut(Notice<'_>)) -> Result<(), ServeError> {
        self.timeout()?;
        self.step(&mut [EpollEvent::empty(); 64], EpollTimeout::ZERO, say)
            .map(drop)
    }

    pub(super) fn end(self, say: &mut dyn FnMut(Notice<'_>)) -> Result<ServeCounts, ServeError> {
        self.stopped(true, say)
    }
}
