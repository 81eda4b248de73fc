//! The event loop of one thread's clients.
use super::Begin;
use super::slot::{Doing, Slot};
use crate::connections::drive::Worker;
use crate::connections::pattern::{Pattern, first_wrong};
use crate::connections::tally::Cause;
use crate::connections::wait::{LOOK_NS, Waiter};
use crate::connections::{LoadError, LoadPlan, Pace, socket};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(super) struct Turn<'a> {
    plan: &'a LoadPlan,
    pattern: &'a Pattern,
    pub(super) worker: &'a Worker<'a>,
    waiter: Waiter,
    slots: Vec<Option<Slot>>,
    /// Slots that are free, and since when.
    free: Vec<(usize, u64)>,
    /// Tells the requests of all threads apart.
    thread: u64,
    requests: u64,
    buffer: Vec<u8>,
}

pub(super) fn run(
    plan: &LoadPlan,
    pattern: &Pattern,
    worker: &Worker<'_>,
    slots: usize,
    thread: usize,
    begin: &mut dyn Begin,
) -> Result<(), LoadError> {
    let mut turn = Turn {
        plan,
        pattern,
        worker,
        waiter: Waiter::new(slots)?,
        slots: std::iter::repeat_with(|| None).take(slots).collect(),
        free: (0..slots).rev().map(|at| (at, 0)).collect(),
        thread: thread as u64,
        requests: 0,
        buffer: vec![0; (plan.response + 1).clamp(1 << 12, 1 << 18)],
    };
    let timeout_ns = plan.timeout.as_nanos() as u64;
    let (mut look_ns, mut over_since) = (LOOK_NS, None);
    loop {
        let now_ns = worker.now_ns();
        begin.begin(&mut turn, now_ns)?;
        if over_since.is_none() && begin.ended(worker, now_ns) {
            worker.asked_all(now_ns);
            over_since = Some(now_ns);
        }
        if now_ns >= look_ns {
            look_ns = now_ns + LOOK_NS;
            turn.end_older_than(now_ns.saturating_sub(timeout_ns));
        }
        if let Some(since) = over_since {
            if turn.all_free() && !begin.has_waiting() {
                return Ok(());
            }
            if now_ns - since > timeout_ns {
                turn.end_older_than(u64::MAX);
                for due_ns in begin.drain() {
                    worker.count(due_ns, |tally| tally.unsent += 1);
                }
                return Ok(());
            }
        }
        let next_ns = begin.next_ns().filter(|_| over_since.is_none());
        let for_ns = next_ns.map(|next| next.saturating_sub(now_ns));
        let ready = turn.waiter.wait(for_ns)?;
        for at in 0..ready {
            let (key, _) = turn.waiter.event(at);
            turn.step(key as usize)?;
        }
    }
}

impl Turn<'_> {
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    pub(super) fn all_free(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Sockets for the next requests, made and bound but not connected.
    pub(super) fn prepare(&self, clients: usize) -> Result<Vec<TcpStream>, LoadError> {
        let make = |at| socket::prepare(self.plan, self.requests as usize + at);
        let sockets: Result<_, Errno> = (0..clients).map(make).collect();
        sockets.map_err(LoadError::system("cannot make a socket"))
    }

    /// Begins a request in a free slot, on a socket that was prepared or a new one.
    pub(super) fn start(
        &mut self,
        due_ns: u64,
        prepared: Option<TcpStream>,
    ) -> Result<(), LoadError> {
        let Some((at, free_ns)) = self.free.pop() else {
            return Ok(());
        };
        let number = self.requests;
        self.requests += 1;
        let begun_ns = self.worker.now_ns();
        let late_ns = begun_ns.saturating_sub(due_ns.max(free_ns));
        // Clients released together are sent one after the other: late by their own kind.
        let open = matches!(self.plan.pace, Pace::Open { .. });
        if open && late_ns > self.plan.behind_after.as_nanos() as u64 {
            self.worker.count(due_ns, |tally| tally.behind += 1);
        }
        let stream = match prepared {
            Some(stream) => Ok(stream),
            None => socket::prepare(self.plan, number as usize),
        };
        let begun = stream.and_then(|stream| {
            socket::begin(&stream, self.plan.target)?;
            Ok(stream)
        });
        match begun {
            Ok(stream) => {
                // Also for one that is connected at once: it is writable, which is the next event.
                let added = self.waiter.add(&stream, at as u64, EpollFlags::EPOLLOUT);
                added.map_err(LoadError::system("cannot watch a socket"))?;
                self.slots[at] = Some(Slot {
                    stream,
                    doing: Doing::Connect,
                    number,
                    due_ns,
                    begun_ns,
                    sent_ns: 0,
                    wrong: None,
                });
            }
            Err(errno) => {
                self.free.push((at, begun_ns));
                let failed = Cause::Errno(errno);
                self.worker
                    .count(due_ns, |tally| tally.fail("connect", failed, 1));
                // No port or no descriptor: asking again at once would only count as fast as the
                // processor goes.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Goes on with a slot whose socket is ready.
    fn step(&mut self, at: usize) -> Result<(), LoadError> {
        let Some(mut slot) = self.slots[at].take() else {
            return Ok(());
        };
        match self.proceed(at, &mut slot) {
            Ok(true) => self.finish(at, slot),
            Ok(false) => self.slots[at] = Some(slot),
            Err(Stuck::System(error)) => return Err(error),
            Err(Stuck::Request(cause)) => self.fail(at, slot, cause),
        }
        Ok(())
    }

    /// True when the answer is complete.
    fn proceed(&mut self, at: usize, slot: &mut Slot) -> Result<bool, Stuck> {
        let message = self
            .pattern
            .message(self.thread, slot.number, self.plan.request);
        if slot.doing == Doing::Connect {
            let connected = socket::connected(&slot.stream);
            connected.map_err(|errno| Stuck::Request(Cause::Errno(errno)))?;
            slot.sent_ns = self.worker.now_ns();
            let took_ns = slot.sent_ns - slot.begun_ns;
            self.worker
                .count(slot.due_ns, |tally| tally.connect.record(took_ns));
            slot.doing = Doing::Send(0);
        }
        while let Doing::Send(from) = slot.doing {
            match slot.stream.write(&message[from..]) {
                Ok(n) => {
                    self.worker
                        .count(slot.due_ns, |tally| tally.bytes_sent += n as u64);
                    slot.doing = if from + n < message.len() {
                        Doing::Send(from + n)
                    } else {
                        Doing::Receive(0)
                    };
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(Stuck::Request(Cause::of(&error))),
            }
            if slot.doing == Doing::Receive(0) {
                let watched = self
                    .waiter
                    .change(&slot.stream, at as u64, EpollFlags::EPOLLIN);
                let what = LoadError::system("cannot watch a socket");
                watched.map_err(|errno| Stuck::System(what(errno)))?;
                // No answer can be here yet; trying would cost a system call for nothing.
                return Ok(false);
            }
        }
        while let Doing::Receive(from) = slot.doing {
            let n = match slot.stream.read(&mut self.buffer) {
                Ok(0) => return Err(Stuck::Request(Cause::Closed)),
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(Stuck::Request(Cause::of(&error))),
            };
            self.worker
                .count(slot.due_ns, |tally| tally.bytes_received += n as u64);
            if from + n > self.plan.response {
                return Err(Stuck::Request(Cause::Surplus));
            }
            if self.plan.verify && slot.wrong.is_none() {
                slot.wrong = first_wrong(message, from, &self.buffer[..n]);
            }
            slot.doing = Doing::Receive(from + n);
            if from + n == self.plan.response {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn finish(&mut self, at: usize, slot: Slot) {
        let now_ns = self.worker.now_ns();
        let from_ns = match self.plan.pace {
            Pace::Closed => slot.begun_ns,
            Pace::Open { .. } | Pace::Together => slot.due_ns,
        };
        let name = || format!("thread {} request {}", self.thread, slot.number);
        self.worker.count(slot.due_ns, |tally| match slot.wrong {
            Some(wrong) => tally.corrupted(&name(), wrong),
            None => {
                tally.exchange.record(now_ns - slot.sent_ns);
                tally.done(now_ns, now_ns - from_ns);
            }
        });
        // Dropping the socket closes it, and takes it out of the event loop.
        drop(slot.stream);
        self.free.push((at, now_ns));
    }

    fn fail(&mut self, at: usize, slot: Slot, cause: Cause) {
        let doing = slot.doing.name();
        self.worker
            .count(slot.due_ns, |tally| tally.fail(doing, cause, 1));
        self.free.push((at, self.worker.now_ns()));
    }

    /// Requests that were begun before this time have failed.
    fn end_older_than(&mut self, begun_ns: u64) {
        for at in 0..self.slots.len() {
            let old = |slot: &mut Slot| slot.begun_ns < begun_ns;
            if let Some(slot) = self.slots[at].take_if(old) {
                self.fail(at, slot, Cause::TimedOut);
            }
        }
    }
}

/// Why a slot cannot go on.
enum Stuck {
    Request(Cause),
    System(LoadError),
}
