//! The loop: frames in, timers, events to the app, frames out; then sleep until something of it can go on.
use crate::command::{Commands, Mail, Request};
use crate::device::Device;
use crate::events::What;
use crate::share::{Share, Whose};
use crate::sockets::Sockets;
use crate::{App, InstanceError, Ns, offload, show};
use hopscope_eventloop::{Poll, Token};
use hopscope_netio::Outgoing;
use hopscope_serving::clock::Clock;
use hopscope_serving::control::Control;
use hopscope_serving::events::EventLog;
use hopscope_stack_engine::{Config, Engine};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use serde_json::{Value, json};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

mod linger;
mod link;
mod wait;

use linger::Linger;
use link::Link;
pub use link::{LinkChange, OnLink};
use wait::Wait;

/// Frames that are received or sent before the other direction has its turn.
const BURST: usize = 64;

const STOP: u8 = 0;
const PORT: u8 = 1;
const TIMER: u8 = 2;
const BELL: u8 = 3;
/// Of the control socket.
pub const CONTROL: u8 = 4;
const APP: u8 = 5;
const LINK: u8 = 6;

pub struct InstancePlan {
    pub device: Device,
    pub config: Config,
    pub share: Share,
    /// Never sleeps.
    pub spin: bool,
    pub log: EventLog,
    /// Told when the device goes down, when it is up again, and when its MTU changes.
    pub on_link: OnLink,
    /// Where the first engine asks this one.
    pub mail: Arc<Mail>,
}

pub struct Instance<A: App> {
    engine: Engine,
    device: Device,
    app: A,
    share: Share,
    log: EventLog,
    poll: Poll,
    wait: Wait,
    link: Link,
    linger: Linger,
    clock: Clock,
    mail: Arc<Mail>,
    control: Option<(Control, Commands)>,
    spin: bool,
    stopped: bool,
}

impl<A: App> Instance<A> {
    /// Opens the app's sockets. Everything is ready when it returns, and [`Instance::run`] serves.
    ///
    /// # Errors
    /// The configuration cannot be; the app's sockets cannot be opened; no descriptors.
    pub fn start(plan: InstancePlan, mut app: A) -> Result<Instance<A>, InstanceError> {
        let system = InstanceError::system::<Errno>;
        let mut engine = Engine::new(plan.config)?;
        let mut log = plan.log;
        let clock = Clock::start();
        app.start(&mut Sockets {
            engine: &mut engine,
            now: clock.now(),
            log: &mut log,
        })?;
        let poll = Poll::new(16).map_err(system("watching"))?;
        let wait = Wait::new(&poll, TIMER)?;
        if let Some(fd) = plan.device.port.wait_fd() {
            poll.add(fd, Token::of(PORT), EpollFlags::EPOLLIN)
                .map_err(system("watching the port"))?;
        }
        if let Some(fd) = plan.device.port.link_fd() {
            poll.add(fd, Token::of(LINK), EpollFlags::EPOLLIN)
                .map_err(system("watching the device"))?;
        }
        poll.add(plan.share.bell(), Token::of(BELL), EpollFlags::EPOLLIN)
            .map_err(system("watching other engines"))?;
        app.watch(&poll, APP)?;
        Ok(Instance {
            engine,
            link: Link::new(plan.on_link, plan.device.mtu),
            device: plan.device,
            app,
            share: plan.share,
            log,
            poll,
            wait,
            linger: Linger::default(),
            clock,
            mail: plan.mail,
            control: None,
            spin: plan.spin,
            stopped: false,
        })
    }

    /// Takes requests too. `others` are asked by mail.
    ///
    /// # Errors
    /// The socket cannot be had there.
    pub fn open_control(
        &mut self,
        path: &std::path::Path,
        others: &[Arc<Mail>],
    ) -> Result<&Control, InstanceError> {
        let control = Control::open(path, &self.poll, CONTROL)?;
        let bells = (1..).map(|n| self.share.bell_of(n));
        let others = others.iter().cloned().zip(bells).collect();
        let (control, _) = self.control.insert((control, Commands::new(others)));
        Ok(control)
    }

    /// Serves until `stop` is readable or the app is over.
    ///
    /// # Errors
    /// The port's, or the kernel's.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> Result<(), InstanceError> {
        self.poll
            .add(stop, Token::of(STOP), EpollFlags::EPOLLIN)
            .map_err(InstanceError::system("watching for the end"))?;
        while !self.stopped {
            let mut turns = 0;
            let mut awake = true;
            while awake && turns < self.app.turns() {
                let busy = self.turn()?;
                awake = self.linger.goes_on(self.clock.now(), busy);
                turns += 1;
            }
            if self.app.is_over() {
                break;
            }
            self.look(!awake)?;
        }
        Ok(())
    }

    /// A piece of everything that there is to do, without waiting; false: nothing was.
    ///
    /// # Errors
    /// The port's.
    pub fn turn(&mut self) -> Result<bool, InstanceError> {
        let now = self.clock.now();
        if let Some(mtu) = self.link.look(now, &mut *self.device.port)? {
            self.engine.set_mtu(now, mtu);
        }
        let mut busy = self.receive(now)?;
        if self.engine.poll_at().is_some_and(|at| at <= now) {
            self.engine.advance(now);
            busy = true;
        }
        busy |= self.serve(now);
        busy |= self.transmit(now)?;
        let (engine, link) = (&self.engine, &self.link);
        let parts = (engine, &mut self.device, &mut self.share, link, &self.app);
        self.mail.turn(|request| tell(parts, now, request));
        Ok(busy)
    }

    fn receive(&mut self, now: Ns) -> Result<bool, InstanceError> {
        let (engine, log, share) = (&mut self.engine, &mut self.log, &mut self.share);
        let mut take = |engine: &mut Engine, frame: hopscope_netio::Frame<'_>, whose| {
            log.begin(What::Rx);
            let mut meta = offload::received(frame.offload);
            meta.for_all = whose == Whose::Everybodys;
            let received = engine.receive(now, frame.bytes, meta);
            if let Some(socket) = received.socket {
                log.begin(What::Demux);
                log.end(What::Demux, socket.to_bits());
            }
            log.end_of_any(What::Rx, received.payload_bytes.into());
        };
        let received = self.device.port.receive(BURST, &mut |frame| {
            if let Some(whose) = share.pass_on(&frame) {
                take(engine, frame, whose);
            }
        });
        let mut count = self.link.heard(now, received, &*self.device.port)?;
        if !share.is_alone() {
            count += share.receive(BURST, &mut |frame, whose| take(engine, frame, whose))?;
        }
        Ok(count > 0)
    }

    fn serve(&mut self, now: Ns) -> bool {
        let mut sockets = Sockets {
            engine: &mut self.engine,
            now,
            log: &mut self.log,
        };
        let mut busy = false;
        while let Some(event) = sockets.engine.next_event() {
            sockets.log.begin(What::Deliver);
            self.app.event(&mut sockets, event);
            sockets.log.end(What::Deliver, event.socket.to_bits());
            busy = true;
        }
        if self.app.deadline().is_some_and(|at| at <= now) {
            self.app.advance(&mut sockets);
        }
        busy
    }

    fn transmit(&mut self, now: Ns) -> Result<bool, InstanceError> {
        let (engine, log) = (&mut self.engine, &mut self.log);
        if self.link.is_down() {
            return Ok(self.link.lose(now, engine, BURST) > 0);
        }
        let sent = self.device.port.send(BURST, &mut |slot| {
            log.begin(What::Tx);
            let frame = engine.transmit(now, slot);
            match &frame {
                Some(frame) => log.end_of_any(What::Tx, frame.payload_bytes.into()),
                None => log.end(What::Tx, 0),
            }
            frame.map_or_else(Outgoing::default, offload::outgoing)
        });
        let port = &mut *self.device.port;
        let sent = self.link.heard(now, sent, port)?;
        let flushed = port.flush();
        let waiting = self.link.heard(now, flushed, port)?;
        let takes_less = port.takes_less();
        if takes_less {
            self.link.look_soon(now);
        }
        self.wait
            .for_room(&self.poll, &*self.device.port, PORT, waiting > 0)?;
        Ok(sent > 0 || takes_less)
    }

    /// Looks at the descriptors; sleeps before where nothing is to be done.
    fn look(&mut self, idle: bool) -> Result<(), InstanceError> {
        if let Some((control, _)) = &mut self.control {
            control.wake(&self.poll, self.clock)?;
        }
        let can_wait = self.device.port.wait_fd().is_some();
        let timeout = if !idle || self.spin || !can_wait {
            if idle && !can_wait && !self.spin {
                // A port in memory, or a file: nothing tells when frames come.
                std::thread::yield_now();
            }
            Some(std::time::Duration::ZERO)
        } else {
            let control = self.control.as_ref().and_then(|(c, _)| c.deadline());
            let link = self.link.deadline();
            let deadlines = [self.engine.poll_at(), self.app.deadline(), control, link];
            let deadline = deadlines.into_iter().flatten().min();
            self.wait.until(self.clock.now(), deadline)?
        };
        let ready = self.poll.wait(timeout);
        let ready = ready.map_err(InstanceError::system("waiting"))?;
        if idle && !self.spin {
            self.linger.slept(self.clock.now());
        }
        for at in 0..ready {
            let ready = self.poll.ready(at);
            match ready.token.source {
                STOP => self.stopped = true,
                BELL => drop(self.share.bell().read()),
                TIMER => self.wait.rang(),
                CONTROL => self.control()?,
                APP => self.act(|app, sockets| app.ready(sockets)),
                LINK => self.link.look_soon(self.clock.now()),
                PORT if ready.flags.contains(EpollFlags::EPOLLERR) => {
                    self.link.look_soon(self.clock.now());
                }
                // The port: it is read in each turn.
                _ => {}
            }
        }
        Ok(())
    }

    fn control(&mut self) -> Result<(), InstanceError> {
        let Some((control, commands)) = &mut self.control else {
            return Ok(());
        };
        let (clock, now) = (self.clock, self.clock.now());
        let (engine, app, link) = (&self.engine, &self.app, &self.link);
        let (device, share) = (&mut self.device, &mut self.share);
        control.turn(&self.poll, clock, &mut |line, counts| {
            let own = |request| tell((engine, device, share, link, app), now, request);
            commands.answer(line, now, own, |request, parts| match request {
                Request::Stats => json!({
                    "type": "stack_stats", "schema": 1, "up_ns": now, "control": counts, "engines": parts,
                }),
                Request::Ss { .. } => json!({
                    "type": "stack_ss", "schema": 1, "up_ns": now, "engines": parts,
                }),
            })
        })?;
        Ok(())
    }

    /// Lets the app act; what it sends goes out with the next turn.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut A, &mut Sockets<'_>) -> R) -> R {
        let now = self.clock.now();
        act(
            &mut self.app,
            &mut Sockets {
                engine: &mut self.engine,
                now,
                log: &mut self.log,
            },
        )
    }

    /// The engine's and the port's counters, what the app did.
    pub fn stats(&mut self) -> Value {
        let now = self.clock.now();
        let (engine, link) = (&self.engine, &self.link);
        let parts = (engine, &mut self.device, &mut self.share, link, &self.app);
        tell(parts, now, Request::Stats)
    }

    /// Tells what was done, and resets what is open: nobody answers from now on.
    ///
    /// # Errors
    /// The port's.
    pub fn end(&mut self) -> Result<Value, InstanceError> {
        let now = self.clock.now();
        while self.transmit(now)? {}
        let stats = self.stats();
        let open = self.engine.connections(now).filter_map(|row| row.socket);
        for id in open.collect::<Vec<_>>() {
            // Of an id that is there.
            let _ = self.engine.abort(now, id);
        }
        while self.transmit(now)? {}
        if let Some((control, _)) = &mut self.control {
            // What its directory does not allow is the next start's.
            let _ = control.remove();
        }
        Ok(stats)
    }

    pub fn app(&self) -> &A {
        &self.app
    }

    pub fn counts(&self) -> crate::app::AppCounts {
        self.app.counts()
    }

    pub fn now(&self) -> Ns {
        self.clock.now()
    }
}

type Parts<'a, A> = (&'a Engine, &'a mut Device, &'a mut Share, &'a Link, &'a A);

fn tell<A: App>(parts: Parts<'_, A>, now: Ns, request: Request) -> Value {
    let (engine, device, share, link, app) = parts;
    match request {
        Request::Stats => {
            let port = device.port.counters();
            let (buffers, tables) = engine.memory_bytes();
            let (passed_on, lost) = share.counts();
            json!({
                "counters": show::counters(engine.counters()),
                "port": port.map_or(Value::Null, |port| show::port(&port)),
                "link": link.counts(),
                "app": show::app(&app.counts()),
                "share": { "received": passed_on, "receive_dropped": lost },
                "memory": { "buffer_bytes": buffers, "table_bytes": tables },
            })
        }
        Request::Ss { limit } => {
            let (connections, total) = show::connections(engine, now, limit);
            json!({ "connections": connections, "total": total })
        }
    }
}
