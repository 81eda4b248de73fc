//! The event loop of one thread's sockets.
use super::flights::{Answer, Flights};
use super::link::Link;
use super::{LARGEST, SMALLEST};
use crate::connections::drive::Worker;
use crate::connections::due::Due;
use crate::connections::pattern::Pattern;
use crate::connections::tally::Cause;
use crate::connections::wait::{LOOK_NS, Waiter};
use crate::connections::{LoadError, LoadPlan, Pace};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;

struct Socket {
    link: Link,
    key: u64,
    flights: Flights,
}

struct Exchange<'a> {
    plan: &'a LoadPlan,
    pattern: &'a Pattern,
    worker: &'a Worker<'a>,
    answered: bool,
    message: Vec<u8>,
}

pub(super) fn run(
    plan: &LoadPlan,
    pattern: &Pattern,
    worker: &Worker<'_>,
    share: Vec<Link>,
    mut due: Due,
    answered: bool,
) -> Result<(), LoadError> {
    let mut waiter = Waiter::new(share.len())?;
    let mut sockets = Vec::with_capacity(share.len());
    for link in share {
        let key = sockets.len() as u64;
        let added = waiter.add(&link, key, EpollFlags::EPOLLIN);
        added.map_err(LoadError::system("cannot watch a socket"))?;
        sockets.push(Socket {
            link,
            key,
            flights: Flights::default(),
        });
    }
    let mut exchange = Exchange {
        plan,
        pattern,
        worker,
        answered,
        message: Vec::new(),
    };
    let mut buffer = vec![0; LARGEST + 128];
    let (closed, timeout_ns) = (plan.pace == Pace::Closed, plan.timeout.as_nanos() as u64);
    let (mut next, mut look_ns, mut over_since) = (0, LOOK_NS, None);
    loop {
        let now_ns = worker.now_ns();
        if closed {
            for socket in &mut sockets {
                if socket.flights.is_empty()
                    && let Some(due_ns) = due.take(worker, worker.now_ns())
                {
                    exchange.send(socket, due_ns);
                }
            }
        }
        while !closed && let Some(due_ns) = due.take(worker, now_ns) {
            exchange.send(&mut sockets[next], due_ns);
            next = (next + 1) % sockets.len();
        }
        if over_since.is_none() && due.ended(worker, now_ns) {
            worker.asked_all(now_ns);
            over_since = Some(now_ns);
        }
        if over_since.is_some() && sockets.iter().all(|socket| socket.flights.is_empty()) {
            return Ok(());
        }
        if now_ns >= look_ns {
            look_ns = now_ns + LOOK_NS;
            for socket in &mut sockets {
                exchange.give_up(socket, now_ns.saturating_sub(timeout_ns));
            }
        }
        let due_ns = due.next_ns().filter(|_| over_since.is_none());
        // A stream in a closed loop waits for nothing.
        let at_once = (closed && !answered).then_some(0);
        let for_ns = due_ns.map(|due| due.saturating_sub(now_ns)).or(at_once);
        let ready = waiter.wait(for_ns)?;
        for at in 0..ready {
            let (key, _) = waiter.event(at);
            exchange.receive(&mut sockets[key as usize], &mut buffer);
        }
    }
}

impl Exchange<'_> {
    /// The bytes of a datagram: its number, then the pattern.
    fn compose(&mut self, key: u64, number: u64) {
        self.message.clear();
        self.message.extend_from_slice(&number.to_le_bytes());
        let rest = self.plan.request - SMALLEST;
        self.message
            .extend_from_slice(self.pattern.message(key, number, rest));
    }

    fn send(&mut self, socket: &mut Socket, due_ns: u64) {
        let (plan, worker, number) = (self.plan, self.worker, socket.flights.next_number());
        self.compose(socket.key, number);
        let sent_ns = worker.now_ns();
        let late = plan.pace != Pace::Closed
            && sent_ns.saturating_sub(due_ns) > plan.behind_after.as_nanos() as u64;
        let sent = socket.link.send(number, &self.message);
        let bytes = plan.request as u64;
        let answered = self.answered;
        worker.count(due_ns, |tally| {
            tally.asked += 1;
            tally.behind += u64::from(late);
            match sent {
                Ok(()) => tally.bytes_sent += bytes,
                Err(errno) => tally.fail("send", Cause::Errno(errno), 1),
            }
        });
        if sent.is_ok() {
            socket.flights.sent(due_ns, sent_ns, !answered);
            if !answered {
                let now_ns = worker.now_ns();
                let from_ns = self.counts_from(due_ns, sent_ns);
                worker.count(due_ns, |tally| tally.done(now_ns, now_ns - from_ns));
            }
        }
    }

    fn counts_from(&self, due_ns: u64, sent_ns: u64) -> u64 {
        match self.plan.pace {
            Pace::Closed => sent_ns,
            Pace::Open { .. } | Pace::Together => due_ns,
        }
    }

    fn receive(&mut self, socket: &mut Socket, buffer: &mut [u8]) {
        loop {
            match socket.link.receive(buffer) {
                Ok(payload) => self.take(socket, payload),
                Err(Errno::EAGAIN) => return,
                // An ICMP message about an earlier datagram: that one fails by its time-out.
                Err(_) => {}
            }
        }
    }

    fn take(&mut self, socket: &mut Socket, payload: &[u8]) {
        let (worker, now_ns) = (self.worker, self.worker.now_ns());
        let bytes = payload.len() as u64;
        let number = payload
            .first_chunk()
            .map(|first| u64::from_le_bytes(*first));
        let (flight, late) = match socket.flights.answer(number) {
            Answer::Open { flight, late } => (flight, late),
            Answer::Again => return worker.count(now_ns, |tally| tally.duplicate += 1),
            Answer::Foreign => return worker.count(now_ns, |tally| tally.surplus += bytes),
        };
        let (number, due_ns, sent_ns) = (flight.number, flight.due_ns, flight.sent_ns);
        let wrong = if self.plan.verify {
            self.compose(socket.key, number);
            let short = payload.len().min(self.message.len());
            let differs = payload
                .iter()
                .zip(&self.message)
                .position(|(got, sent)| got != sent);
            let cut = (payload.len() != self.message.len()).then_some(short);
            let byte = |bytes: &[u8], at: usize| bytes.get(at).copied().unwrap_or(0);
            let at = differs.or(cut);
            at.map(|at| (at, byte(payload, at), byte(&self.message, at)))
        } else {
            None
        };
        let from_ns = self.counts_from(due_ns, sent_ns);
        let name = || format!("socket {} datagram {number}", socket.key);
        worker.count(due_ns, |tally| {
            tally.bytes_received += bytes;
            tally.reordered += u64::from(late);
            match wrong {
                Some(wrong) => tally.corrupted(&name(), wrong),
                None => tally.done(now_ns, now_ns - from_ns),
            }
        });
    }

    /// Datagrams that were sent before this time and are not answered are lost.
    fn give_up(&self, socket: &mut Socket, sent_ns: u64) {
        while let Some(flight) = socket.flights.give_up(sent_ns) {
            let count = |tally: &mut crate::connections::Tally| {
                tally.fail("lost", Cause::TimedOut, 1);
            };
            self.worker.count(flight.due_ns, count);
        }
    }
}
