//! Many connections in one event loop.
use super::flow::{Flow, Shared};
use crate::connections::due::Due;
use crate::connections::wait::{LOOK_NS, Waiter};
use crate::connections::{LoadError, Pace, tally::Cause};
use nix::sys::epoll::EpollFlags;
use std::net::TcpStream;

/// A flow, and whether the event loop waits for room to write on it.
struct Watched {
    flow: Flow,
    for_room: bool,
}

impl Watched {
    /// Sends, and waits for room where there was too little.
    fn send(&mut self, key: usize, shared: &Shared<'_>, waiter: &Waiter) -> Result<(), LoadError> {
        self.flow.send(shared);
        if self.flow.alive && self.flow.is_blocked() != self.for_room {
            self.for_room = self.flow.is_blocked();
            let mut flags = EpollFlags::EPOLLIN;
            flags.set(EpollFlags::EPOLLOUT, self.for_room);
            let changed = waiter.change(&self.flow.stream, key as u64, flags);
            changed.map_err(LoadError::system("cannot watch a socket"))?;
        }
        Ok(())
    }
}

pub(super) fn run(
    shared: &Shared<'_>,
    share: Vec<(u64, TcpStream)>,
    mut due: Due,
) -> Result<(), LoadError> {
    let (plan, worker) = (shared.plan, shared.worker);
    let mut waiter = Waiter::new(share.len())?;
    let mut flows = Vec::with_capacity(share.len());
    for (connection, stream) in share {
        let added = waiter.add(&stream, flows.len() as u64, EpollFlags::EPOLLIN);
        added.map_err(LoadError::system("cannot watch a socket"))?;
        flows.push(Watched {
            flow: Flow::new(connection, stream),
            for_room: false,
        });
    }
    let mut buffer = vec![0; (plan.response * plan.depth + 1).clamp(1 << 12, 1 << 18)];
    let (closed, count) = (plan.pace == Pace::Closed, flows.len());
    let (mut next_flow, mut look_ns, mut over_since) = (0, LOOK_NS, None);
    if closed {
        for (key, watched) in flows.iter_mut().enumerate() {
            refill(&mut watched.flow, &mut due, shared);
            watched.send(key, shared, &waiter)?;
        }
    }
    loop {
        let now_ns = worker.now_ns();
        // Request k goes to connection k modulo their number, alive or busy or not: a connection
        // that stands still keeps its requests waiting.
        while !closed && let Some(due_ns) = due.take(worker, now_ns) {
            worker.count(due_ns, |tally| tally.asked += 1);
            let watched = &mut flows[next_flow];
            watched.flow.ask(due_ns);
            if watched.flow.alive {
                watched.send(next_flow, shared, &waiter)?
            } else {
                watched.flow.give_up(worker)
            }
            next_flow = (next_flow + 1) % count;
        }
        if over_since.is_none() && due.ended(worker, now_ns) {
            worker.asked_all(now_ns);
            over_since = Some(now_ns);
        }
        let look = now_ns >= look_ns;
        if look {
            look_ns = now_ns + LOOK_NS;
            flows
                .iter_mut()
                .for_each(|watched| watched.flow.check_time(shared, now_ns));
            if flows.iter().all(|watched| !watched.flow.alive) {
                worker.asked_all(now_ns);
                return Ok(());
            }
        }
        if let Some(since) = over_since {
            if flows
                .iter()
                .all(|watched| watched.flow.open_requests() == 0)
            {
                return Ok(());
            }
            if now_ns - since > plan.timeout.as_nanos() as u64 {
                for watched in &mut flows {
                    watched.flow.end("receive", Cause::TimedOut, worker);
                }
                return Ok(());
            }
        }
        let next_ns = due.next_ns().filter(|_| over_since.is_none());
        let ready = waiter.wait(next_ns.map(|next| next.saturating_sub(now_ns)))?;
        for at in 0..ready {
            let (key, flags) = waiter.event(at);
            let watched = &mut flows[key as usize];
            if flags.intersects(!EpollFlags::EPOLLOUT) {
                watched.flow.receive(shared, &mut buffer);
            }
            if closed {
                refill(&mut watched.flow, &mut due, shared);
            }
            watched.send(key as usize, shared, &waiter)?;
            if !watched.flow.alive {
                // A closed socket stays ready for ever.
                let removed = waiter.remove(&watched.flow.stream);
                removed.map_err(LoadError::system("cannot leave a socket"))?;
            }
        }
    }
}

/// In a closed loop the next request follows the last answer.
fn refill(flow: &mut Flow, due: &mut Due, shared: &Shared<'_>) {
    while flow.alive && flow.open_requests() < shared.plan.depth {
        let Some(due_ns) = due.take(shared.worker, shared.worker.now_ns()) else {
            return;
        };
        shared.worker.count(due_ns, |tally| tally.asked += 1);
        flow.ask(due_ns);
    }
}
