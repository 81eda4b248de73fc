//! The front end as a whole: one thread, one loop.
use super::arena::Arena;
use super::bridge::Bridge;
use super::counts::{DriveCounts, ReceiveCounts};
use super::error::DriveError;
use super::handshake::{self, Wanted};
use super::pace::Pace;
use super::queue::{Arm, Queue};
use super::receive::{Receiving, Sink, Taker};
use super::resource_usage::Spending;
use super::source::{Sending, Source};
use super::watch::{Watch, Woken};
use super::wire::Wire;
use crate::Ns;
use crate::common::Negotiated;
use crate::events::What;
use crate::policy::PolicyKind;
use hopscope_netio::PacketIo;
use hopscope_serving::clock::Clock;
use hopscope_serving::events::Events;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

/// A received frame of an ordinary MTU, in an odd number of cache lines: buffers share no places in the caches.
const RECEIVED_LEN: u32 = 33 * 64;
/// Rounds of the loop between checks of the socket and for the end.
const ROUNDS: u32 = 256;
/// What has not come back for so long at the end will not.
const PATIENCE: Ns = Ns(10_000_000_000);

pub enum Work {
    Source(Source),
    /// Receives only.
    Sink,
    /// Carries packets of a port.
    Bridge(Box<dyn PacketIo>),
}

pub struct DrivePlan {
    pub socket: PathBuf,
    /// The back end connects to this end.
    pub listen: bool,
    pub packed: bool,
    pub event_idx: bool,
    /// Entries of each ring: a power of two.
    pub ring: u16,
    pub kicks: PolicyKind,
    /// Of buffers given for receiving.
    pub rx_kicks: PolicyKind,
    pub arm: Arm,
    /// Shorter waits are busy-polled; `None`: all waits are, without notifications.
    pub spin: Option<Ns>,
    /// Packets: sent by a source, received by a sink.
    pub count: Option<u64>,
    pub duration: Option<Ns>,
    /// The port was opened with checksum offload and TSO, if the back end agrees.
    pub offload: bool,
    pub work: Work,
    /// Where what happens is kept, besides being counted.
    pub events: Option<Events>,
}

enum Job {
    Source(Sending, Sink),
    Sink(Sink),
    Bridge(Bridge),
}

pub struct Driver {
    wire: Wire,
    arena: Arena,
    taken: Negotiated,
    rx: Queue,
    tx: Queue,
    clock: Clock,
    arm: Arm,
    spin: Option<Ns>,
    count: Option<u64>,
    duration: Option<Ns>,
    receiving: Receiving,
    job: Job,
    stopping: bool,
}

impl Driver {
    /// Connects, negotiates, and starts both queues. With [`DrivePlan::listen`] `ready` is called once a back end can
    /// connect, and one is waited for until `stop` is readable.
    ///
    /// # Errors
    /// No back end, or none with the required features.
    pub fn start(
        plan: DrivePlan,
        stop: BorrowedFd<'_>,
        ready: &mut dyn FnMut(),
    ) -> Result<Driver, DriveError> {
        let ring = plan.ring;
        if !ring.is_power_of_two() || !(2..=crate::ring::SIZE_MAX).contains(&ring) {
            return Err(DriveError::Ring(ring));
        }
        if let Work::Source(source) = &plan.work {
            source.check()?;
        }
        let mut wire = if plan.listen {
            Wire::accept(&plan.socket, stop, ready)?
        } else {
            Wire::connect(&plan.socket)?
        };
        let unfinished = match &plan.work {
            Work::Bridge(port) => plan.offload && port.capabilities().offload,
            Work::Source(_) | Work::Sink => false,
        };
        let wanted = Wanted {
            packed: plan.packed,
            event_idx: plan.event_idx,
            unfinished,
        };
        let taken = handshake::negotiate(&mut wire, wanted)?;
        let sent_len = match &plan.work {
            Work::Source(source) => source.buffer_len(),
            Work::Sink => RECEIVED_LEN,
            Work::Bridge(port) => Bridge::buffer_len(port.as_ref()),
        };
        let received_len = match (taken.merges(), &plan.work) {
            (false, Work::Bridge(port)) => Bridge::buffer_len(port.as_ref()),
            _ => RECEIVED_LEN,
        };
        let (arena, [rx, tx]) = Arena::new(ring, [received_len, sent_len])?;
        let queue =
            |n, kick, place| Queue::new(n, kick, plan.packed, taken.ring(), &arena.memory, place);
        let mut rx = queue(0, plan.rx_kicks, rx)?;
        let mut tx = queue(1, plan.kicks, tx)?;
        if let Some(events) = &plan.events {
            (rx.events, tx.events) = (events.log(0), events.log(1));
        }
        let queues = [(rx.place(), &rx.eventfds), (tx.place(), &tx.eventfds)];
        handshake::start(&mut wire, &arena, plan.packed, queues)?;
        let clock = Clock::start();
        let job = match plan.work {
            Work::Source(source) => {
                let pace = Pace::new(source.rate, plan.count)?;
                let sending = Sending::new(source, pace, &tx, &arena.memory)?;
                Job::Source(sending, Sink::default())
            }
            Work::Sink => Job::Sink(Sink::default()),
            Work::Bridge(port) => Job::Bridge(Bridge::new(port, taken)?),
        };
        Ok(Driver {
            wire,
            arena,
            taken,
            rx,
            tx,
            clock,
            arm: plan.arm,
            spin: plan.spin,
            count: plan.count,
            duration: plan.duration,
            receiving: Receiving::default(),
            job,
            stopping: false,
        })
    }

    pub fn taken(&self) -> Negotiated {
        self.taken
    }

    /// Works until `stop` is readable, or the plan's end. Then waits until everything sent is back, and ends the
    /// queues in order.
    ///
    /// # Errors
    /// The back end has gone, or what it wrote cannot be; the port fails.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<DriveCounts, DriveError> {
        let port = match &self.job {
            Job::Bridge(bridge) => bridge.port.wait_fd(),
            _ => None,
        };
        let eventfds = [&self.rx.eventfds, &self.tx.eventfds];
        let mut watch = Watch::new(stop, self.wire.fd(), eventfds, port)?;
        let clock = self.clock;
        Receiving::fill(&mut self.rx, &self.arena.memory, clock)?;
        let mut spending = Spending::begin(clock)?;
        let begun = clock.now();
        if let Job::Source(sending, _) = &mut self.job {
            sending.pace.start(begun);
        }
        let end = self.duration.map(|duration| begun + duration);
        let mut progress = begun;
        let mut rounds = 0;
        loop {
            let now = clock.now();
            self.stopping |= end.is_some_and(|end| end <= now);
            let mut busy = self.reclaim(&mut spending, now)? | self.turn(now)?;
            if busy {
                progress = now;
            }
            if self.is_over(now, progress)? {
                break;
            }
            rounds += 1;
            if rounds % ROUNDS == 0 {
                let seen = watch.look()?;
                // What the port has is to be taken before this end sleeps.
                busy |= seen.port;
                self.saw(seen)?;
            }
            if !busy {
                self.idle(&mut watch, end, now)?;
            }
        }
        self.finish(spending)
    }

    /// What the back end has sent; true: something was.
    fn reclaim(&mut self, spending: &mut Spending, now: Ns) -> Result<bool, DriveError> {
        let before = self.tx.counts.entries;
        self.tx.events.begin(What::Reclaim);
        while let Some(back) = self.tx.reclaim(&self.arena.memory)? {
            self.tx.release(back.buffer);
            spending.packet(now.since(back.came));
        }
        let reclaimed = self.tx.counts.entries - before;
        self.tx.events.end(What::Reclaim, reclaimed);
        Ok(reclaimed > 0)
    }

    /// True: something was done.
    fn turn(&mut self, now: Ns) -> Result<bool, DriveError> {
        let (memory, clock) = (&self.arena.memory, self.clock);
        self.rx.due(memory, clock, now)?;
        self.tx.due(memory, clock, now)?;
        let merges = self.taken.merges();
        let taker: &mut dyn Taker = match &mut self.job {
            Job::Source(_, sink) | Job::Sink(sink) => sink,
            Job::Bridge(bridge) => bridge,
        };
        let before = self.rx.counts.entries;
        self.rx.events.begin(What::Reclaim);
        let received = self
            .receiving
            .turn(&mut self.rx, memory, merges, taker, clock)?;
        if let Job::Bridge(bridge) = &mut self.job {
            // A frame that the device has no room for waits there.
            self.receiving.blocked |= bridge.port.flush()? > 0;
        }
        let reclaimed = self.rx.counts.entries - before;
        self.rx.events.end(What::Reclaim, reclaimed);
        let sent = match &mut self.job {
            Job::Sink(_) => false,
            Job::Source(sending, sink) => {
                if self.stopping {
                    sending.pace.end();
                }
                sending.turn(&mut self.tx, memory, sink.came.own, clock)?
            }
            Job::Bridge(_) if self.stopping => false,
            Job::Bridge(bridge) => bridge.turn(&mut self.tx, memory, clock)?,
        };
        if self.stopping && !sent {
            // What was at hand, and was waited for, does not come now.
            self.tx.pause(memory, clock)?;
        }
        Ok(received | sent)
    }

    /// Nothing more is to be done, and everything sent is back. `progress`: when something was done last.
    fn is_over(&mut self, now: Ns, progress: Ns) -> Result<bool, DriveError> {
        let (done, missing) = match &self.job {
            Job::Source(sending, sink) => {
                let missing = sending.missing(sink.came.own);
                // Who was stopped does not wait for what comes back.
                (
                    sending.pace.ended() && (missing == 0 || self.stopping),
                    missing,
                )
            }
            Job::Sink(sink) => {
                let enough = self.count.is_some_and(|n| sink.came.own >= n);
                (self.stopping || enough, 0)
            }
            Job::Bridge(_) => (self.stopping, 0),
        };
        let left = u64::from(self.tx.out());
        let seconds = PATIENCE.0 / 1_000_000_000;
        let waited = now.since(progress) > PATIENCE;
        match (done, left) {
            (true, 0) => Ok(true),
            (_, 1..) if waited && (done || missing > 0) => Err(DriveError::Stuck { left, seconds }),
            (false, 0) if waited && missing > 0 => Err(DriveError::Lost { missing, seconds }),
            _ => Ok(false),
        }
    }

    /// Idle now: busy-polls, or sleeps.
    fn idle(&mut self, watch: &mut Watch, end: Option<Ns>, now: Ns) -> Result<(), DriveError> {
        let next = match &self.job {
            Job::Source(sending, sink) => sending.next(&self.tx, sink.came.own, now),
            Job::Sink(_) | Job::Bridge(_) => None,
        };
        let holds = [self.rx.hold(), self.tx.hold()];
        let first = holds.into_iter().flatten().chain(next).chain(end).min();
        let left = first.map(|at| at.since(now));
        let memory = &self.arena.memory;
        let Some(spin) = self
            .spin
            .filter(|spin| left.is_none_or(|left| left > *spin))
        else {
            self.tx.hush(memory)?;
            return self.rx.hush(memory);
        };
        // While the port has no room, what came waits: only the port can wake this end for it.
        let came = !self.receiving.blocked && self.rx.ask(memory, Arm::First)?;
        if self.tx.ask(memory, self.arm)? | came {
            return Ok(());
        }
        let port = match &self.job {
            Job::Bridge(bridge) => bridge.port.wait_fd(),
            _ => None,
        };
        if let Job::Bridge(bridge) = &self.job {
            watch.port(port, !bridge.ready, self.receiving.blocked)?;
        }
        // The rest is spent looking, so that a timer that comes late delays nothing.
        // Somebody who does not come is noticed.
        let most = left.map_or(PATIENCE, |left| left.since(spin).min(PATIENCE));
        let seen = watch.sleep(most)?;
        self.saw(seen)
    }

    fn saw(&mut self, seen: Woken) -> Result<(), DriveError> {
        let left = u64::from(self.tx.out());
        if let Some(queue) = seen.given_up {
            return Err(DriveError::GivenUp { queue, left });
        }
        if seen.gone {
            return Err(DriveError::Gone { left });
        }
        self.stopping |= seen.stop;
        for (queue, called) in [&mut self.rx, &mut self.tx].into_iter().zip(seen.called) {
            if called {
                queue.called()?;
            }
        }
        if seen.port {
            self.receiving.blocked = false;
            if let Job::Bridge(bridge) = &mut self.job {
                bridge.ready = true;
            }
        }
        Ok(())
    }

    fn finish(mut self, spending: Spending) -> Result<DriveCounts, DriveError> {
        let (latency, spent) = spending.end()?;
        let memory = &self.arena.memory;
        self.tx.pause(memory, self.clock)?;
        handshake::stop(&mut self.wire)?;
        // What was on its way when the queues ended.
        self.receiving.blocked = false;
        if let Job::Bridge(bridge) = &mut self.job {
            bridge.ending = true;
        }
        let now = self.clock.now();
        while self.turn(now)? {}
        let (came, port) = match self.job {
            Job::Source(_, sink) | Job::Sink(sink) => (sink.came, None),
            Job::Bridge(mut bridge) => {
                bridge.port.flush()?;
                (bridge.came, Some(bridge.port.counters()?))
            }
        };
        let came = ReceiveCounts {
            dropped: came.dropped + self.receiving.dropped,
            ..came
        };
        Ok(DriveCounts {
            tx: self.tx.finish()?,
            rx: self.rx.finish()?,
            came,
            latency,
            spent,
            port,
        })
    }
}
