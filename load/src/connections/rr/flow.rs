//! One connection and what is under way on it.
use crate::connections::drive::Worker;
use crate::connections::pattern::{Pattern, first_wrong};
use crate::connections::tally::Cause;
use crate::connections::{LoadPlan, Pace};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// A request that was sent, at least in part.
struct Flight {
    number: u64,
    due_ns: u64,
    sent_ns: u64,
}

/// What the flows of one thread share.
pub(super) struct Shared<'a> {
    pub(super) plan: &'a LoadPlan,
    pub(super) pattern: &'a Pattern,
    pub(super) worker: &'a Worker<'a>,
}

pub(super) struct Flow {
    pub(super) stream: TcpStream,
    connection: u64,
    requests: u64,
    /// Intended times of requests that cannot be sent yet.
    queue: VecDeque<u64>,
    flights: VecDeque<Flight>,
    /// Bytes of the newest request that were written; `None` where all were.
    written: Option<usize>,
    /// Bytes of the oldest answer that were read, and its first wrong one.
    read: usize,
    wrong: Option<(usize, u8, u8)>,
    /// When the connection could take the next request.
    free_ns: u64,
    pub(super) alive: bool,
}

impl Flow {
    pub(super) fn new(connection: u64, stream: TcpStream) -> Flow {
        Flow {
            stream,
            connection,
            requests: 0,
            queue: VecDeque::new(),
            flights: VecDeque::new(),
            written: None,
            read: 0,
            wrong: None,
            free_ns: 0,
            alive: true,
        }
    }

    pub(super) fn ask(&mut self, due_ns: u64) {
        self.queue.push_back(due_ns);
    }

    /// Requests that were sent or wait for it.
    pub(super) fn open_requests(&self) -> usize {
        self.queue.len() + self.flights.len()
    }

    /// A request was written in part.
    pub(super) fn is_blocked(&self) -> bool {
        self.written.is_some()
    }

    /// Sends what is due and may be under way, until the socket takes no more.
    pub(super) fn send(&mut self, shared: &Shared<'_>) {
        let Shared {
            plan,
            pattern,
            worker,
        } = shared;
        while self.alive {
            if self.written.is_none() {
                if self.flights.len() >= plan.depth {
                    return;
                }
                let Some(due_ns) = self.queue.pop_front() else {
                    return;
                };
                let sent_ns = worker.now_ns();
                let could_ns = due_ns.max(self.free_ns);
                let late_ns = sent_ns.saturating_sub(could_ns);
                if plan.pace != Pace::Closed && late_ns > plan.behind_after.as_nanos() as u64 {
                    worker.count(due_ns, |tally| tally.behind += 1);
                }
                let number = self.requests;
                self.flights.push_back(Flight {
                    number,
                    due_ns,
                    sent_ns,
                });
                self.requests += 1;
                self.written = Some(0);
            }
            let (Some(newest), Some(from)) = (self.flights.back(), self.written) else {
                return;
            };
            let due_ns = newest.due_ns;
            let message = pattern.message(self.connection, newest.number, plan.request);
            match self.stream.write(&message[from..]) {
                Ok(n) => {
                    worker.count(due_ns, |tally| tally.bytes_sent += n as u64);
                    self.written = Some(from + n).filter(|at| *at < plan.request);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => self.end("send", Cause::of(&error), worker),
            }
        }
    }

    /// Reads what has come, and counts what is complete.
    pub(super) fn receive(&mut self, shared: &Shared<'_>, buffer: &mut [u8]) {
        while self.alive {
            match self.stream.read(buffer) {
                Ok(0) => self.end("receive", Cause::Closed, shared.worker),
                Ok(n) => {
                    self.take(&buffer[..n], shared);
                    // A short read emptied the socket: another call would only say so.
                    if n < buffer.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => self.end("receive", Cause::of(&error), shared.worker),
            }
        }
    }

    fn take(&mut self, mut bytes: &[u8], shared: &Shared<'_>) {
        let (plan, worker) = (shared.plan, shared.worker);
        let now_ns = worker.now_ns();
        while !bytes.is_empty() {
            let Some(flight) = self.flights.front() else {
                // A server that answers more than it was asked is not to be trusted further.
                worker.count(now_ns, |tally| tally.surplus += bytes.len() as u64);
                return self.end("receive", Cause::Surplus, worker);
            };
            let (now, rest) = bytes.split_at(bytes.len().min(plan.response - self.read));
            if plan.verify && self.wrong.is_none() {
                let pattern = shared.pattern;
                let message = pattern.message(self.connection, flight.number, plan.request);
                self.wrong = first_wrong(message, self.read, now);
            }
            self.read += now.len();
            bytes = rest;
            let due_ns = flight.due_ns;
            let from_ns = match plan.pace {
                Pace::Closed => flight.sent_ns,
                Pace::Open { .. } | Pace::Together => due_ns,
            };
            let complete = self.read == plan.response;
            let wrong = if complete { self.wrong.take() } else { None };
            let name = || format!("connection {} request {}", self.connection, flight.number);
            worker.count(due_ns, |tally| {
                tally.bytes_received += now.len() as u64;
                match (complete, wrong) {
                    (false, _) => {}
                    (true, Some(wrong)) => tally.corrupted(&name(), wrong),
                    (true, None) => tally.done(now_ns, now_ns - from_ns),
                }
            });
            if complete {
                self.flights.pop_front();
                self.read = 0;
                self.free_ns = now_ns;
            }
        }
    }

    /// Ends the connection when its oldest request waits for longer than allowed.
    pub(super) fn check_time(&mut self, shared: &Shared<'_>, now_ns: u64) {
        let limit = shared.plan.timeout.as_nanos() as u64;
        let oldest = self.flights.front();
        if oldest.is_some_and(|flight| now_ns.saturating_sub(flight.sent_ns) > limit) {
            self.end("receive", Cause::TimedOut, shared.worker);
        }
    }

    /// Nothing more comes on this connection: requests under way failed, waiting ones are unsent.
    pub(super) fn end(&mut self, doing: &str, cause: Cause, worker: &Worker<'_>) {
        self.alive = false;
        self.written = None;
        for flight in self.flights.drain(..) {
            worker.count(flight.due_ns, |tally| tally.fail(doing, cause, 1));
        }
        self.give_up(worker);
        // The other side learns it now and not when the run ends; it may know already.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// What is due and was never sent is counted as that.
    pub(super) fn give_up(&mut self, worker: &Worker<'_>) {
        for due_ns in self.queue.drain(..) {
            worker.count(due_ns, |tally| tally.unsent += 1);
        }
    }
}
