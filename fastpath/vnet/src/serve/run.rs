//! The back end as a whole: one thread, one loop. Whatever a front end does ends at most its connection.
use super::command::Inside;
use super::counts::ServeCounts;
use super::error::{Broken, ServeError};
use super::kicks::Kicks;
use super::notice::Notice;
use super::pair::Pair;
use super::queue::Queue;
use super::request::WAIT;
use super::session::{Around, Failed, Session};
use super::source;
use crate::Ns;
use crate::common::feature::{self, PortOffload};
use crate::policy::PolicyKind;
use crate::vhost::{self, PROTOCOL_MQ, PROTOCOL_REPLY_ACK, PROTOCOL_STATUS};
use hopscope_eventloop::{Poll, Token};
use hopscope_netio::PacketIo;
use hopscope_serving::clock::Clock;
use hopscope_serving::control::Control;
use hopscope_serving::endpoint::Endpoint;
use hopscope_serving::events::Events;
use hopscope_serving::privileges::{self, RunAs};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Shorter waits are spent looking: a timer that wakes a thread comes some 50 us late.
const SPIN: Ns = Ns::from_us(60);
/// Until a front end that serves the socket is asked again.
const AGAIN: Duration = Duration::from_millis(100);

pub struct BackEndPlan {
    pub socket: PathBuf,
    /// The front end serves the socket, and this end connects to it.
    pub client: bool,
    /// One for each pair of queues.
    pub ports: Vec<Box<dyn PacketIo>>,
    /// The ports take TCP segments of up to 64 KiB, and give them.
    pub segments: bool,
    /// Where requests are taken, if anywhere.
    pub control: Option<PathBuf>,
    /// Other policies run in shadow mode from the start.
    pub shadows: bool,
    pub kicks: Kicks,
    pub rx_calls: PolicyKind,
    pub tx_calls: PolicyKind,
    /// Where what happens is kept, besides being counted.
    pub events: Option<Events>,
}

pub struct Server {
    endpoint: Endpoint,
    poll: Poll,
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
    pub fn start(plan: BackEndPlan) -> Result<Server, ServeError> {
        let system = ServeError::system::<Errno>;
        let poll = Poll::new(64).map_err(system("watching"))?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags);
        let timer = timer.map_err(system("making a timer"))?;
        let readable = EpollFlags::EPOLLIN;
        poll.add(&timer, Token::of(source::TIMER), readable)
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
                    queue.events = events.log(queue.index);
                }
            }
            let mut pair = Pair::new(n, port, [rx, tx]);
            pair.watch(&poll)?;
            pairs.push(pair);
        }
        let endpoint = Endpoint::open(&plan.socket, plan.client)?;
        if let Some(listener) = endpoint.fd() {
            poll.add(listener, Token::of(source::LISTENER), readable)
                .map_err(system("watching the socket"))?;
        }
        let control = plan
            .control
            .map(|path| Control::open(&path, &poll, source::CONTROL));
        let control = control.transpose()?;
        Ok(Server {
            endpoint,
            poll,
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
        Ok(privileges::drop_all(user)?)
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
        self.poll
            .add(stop, Token::of(source::STOP), EpollFlags::EPOLLIN)
            .map_err(system("watching for the end"))?;
        loop {
            let timeout = self.timeout()?;
            if self.step(timeout, say)? {
                return Ok(());
            }
        }
    }

    /// Waits for something, then does a piece of everything that there is to do; true: it is to end.
    fn step(
        &mut self,
        timeout: Option<Duration>,
        say: &mut dyn FnMut(Notice<'_>),
    ) -> Result<bool, ServeError> {
        let ready = self.poll.wait(timeout);
        let ready = ready.map_err(ServeError::system("waiting"))?;
        if self.session.is_none()
            && let Some(stream) = self.endpoint.try_connect()?
        {
            self.connected(stream, say)?;
        }
        for at in 0..ready {
            let ready = self.poll.ready(at);
            let n = ready.token.key as usize;
            match ready.token.source {
                source::STOP => return Ok(true),
                source::LISTENER => self.accept(say)?,
                source::FRONT_END => self.listen(say)?,
                source::CONTROL => self.control(say)?,
                source::KICK => self.kicked(n, say),
                source::PORT => self.pairs[n].port_is(ready.flags)?,
                _ => {
                    // Not yet, or already: the deadlines themselves are looked at below.
                    let _ = self.timer.wait();
                }
            }
        }
        self.turn(say)?;
        Ok(false)
    }

    fn timeout(&mut self) -> Result<Option<Duration>, ServeError> {
        if let Some(control) = &mut self.control {
            control.wake(&self.poll, self.clock)?;
        }
        if self.pairs.iter().any(Pair::is_busy) {
            return Ok(Some(Duration::ZERO));
        }
        for pair in &mut self.pairs {
            pair.rewatch(&self.poll)?;
        }
        let control = self.control.as_ref().and_then(Control::deadline);
        let deadlines = self.pairs.iter_mut().filter_map(Pair::deadline);
        let deadline = deadlines.chain(control).min();
        let system = ServeError::system::<Errno>;
        if let Some(deadline) = deadline {
            let left = deadline.since(self.clock.now());
            if left < SPIN {
                return Ok(Some(Duration::ZERO));
            }
            let left = TimeSpec::from_duration(Duration::from_nanos(left.0));
            self.timer
                .set(Expiration::OneShot(left), TimerSetTimeFlags::empty())
                .map_err(system("setting a timer"))?;
        }
        let connects = self.session.is_none() && self.endpoint.is_client();
        Ok(connects.then_some(AGAIN))
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
                poll: &self.poll,
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
        let mut answer = |line: &[u8], counts| Some(inside.answer(line, counts));
        control.turn(&self.poll, self.clock, &mut answer)?;
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
        let token = Token::of(source::FRONT_END);
        self.poll
            .add(session.fd(), token, EpollFlags::EPOLLIN)
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
            poll: &self.poll,
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
                poll: &self.poll,
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
        self.step(Some(Duration::ZERO), say).map(drop)
    }

    pub(super) fn end(self, say: &mut dyn FnMut(Notice<'_>)) -> Result<ServeCounts, ServeError> {
        self.stopped(true, say)
    }
}
