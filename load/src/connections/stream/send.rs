//! The sending side.
use crate::connections::drive::Worker;
use crate::connections::due::Due;
use crate::connections::pattern::Pattern;
use crate::connections::tally::Cause;
use crate::connections::wait::Waiter;
use crate::connections::{LoadError, LoadPlan, Pace};
use nix::sys::epoll::EpollFlags;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Sends,
    /// Closed in our direction; the sink has not done the same yet.
    Ends,
    Over,
}

struct Stream {
    stream: TcpStream,
    state: State,
    /// Intended times of messages, the first of which may be written in part.
    queue: VecDeque<u64>,
    begun_ns: u64,
    written: usize,
    offset: u64,
    for_room: bool,
}

struct Sender<'a> {
    plan: &'a LoadPlan,
    pattern: &'a Pattern,
    worker: &'a Worker<'a>,
    waiter: Waiter,
}

pub(super) fn run(
    plan: &LoadPlan,
    pattern: &Pattern,
    worker: &Worker<'_>,
    share: Vec<(u64, TcpStream)>,
    mut due: Due,
) -> Result<(), LoadError> {
    let mut sender = Sender {
        plan,
        pattern,
        worker,
        waiter: Waiter::new(share.len())?,
    };
    let closed = plan.pace == Pace::Closed;
    let mut streams = Vec::with_capacity(share.len());
    for (_, stream) in share {
        let mut flags = EpollFlags::EPOLLIN;
        flags.set(EpollFlags::EPOLLOUT, closed);
        let added = sender.waiter.add(&stream, streams.len() as u64, flags);
        added.map_err(LoadError::system("cannot watch a socket"))?;
        streams.push(Stream {
            stream,
            state: State::Sends,
            queue: VecDeque::new(),
            begun_ns: 0,
            written: 0,
            offset: 0,
            for_room: closed,
        });
    }
    let (mut next, mut over_since) = (0, None);
    loop {
        let now_ns = worker.now_ns();
        while !closed && let Some(due_ns) = due.take(worker, now_ns) {
            worker.count(due_ns, |tally| tally.asked += 1);
            streams[next].queue.push_back(due_ns);
            sender.write(next, &mut streams[next])?;
            next = (next + 1) % streams.len();
        }
        if over_since.is_none() && due.ended(worker, now_ns) {
            worker.asked_all(now_ns);
            over_since = Some(now_ns);
        }
        if let Some(since) = over_since {
            for (key, stream) in streams.iter_mut().enumerate() {
                if stream.state == State::Sends && stream.queue.is_empty() {
                    sender.end(key, stream)?;
                }
                if now_ns - since > plan.timeout.as_nanos() as u64 {
                    sender.fail(stream, "finish", Cause::TimedOut);
                }
            }
        }
        if streams.iter().all(|stream| stream.state == State::Over) {
            worker.asked_all(worker.now_ns());
            return Ok(());
        }
        let due_ns = due.next_ns().filter(|_| over_since.is_none());
        let ready = sender
            .waiter
            .wait(due_ns.map(|due| due.saturating_sub(now_ns)))?;
        for at in 0..ready {
            let (key, flags) = sender.waiter.event(at);
            let stream = &mut streams[key as usize];
            if flags.intersects(!EpollFlags::EPOLLOUT) {
                sender.listen(stream);
            }
            // One message for each event, so that all connections get their turn.
            if closed && stream.state == State::Sends && stream.queue.is_empty() {
                let now_ns = worker.now_ns();
                if let Some(due_ns) = due.take(worker, now_ns) {
                    worker.count(due_ns, |tally| tally.asked += 1);
                    stream.queue.push_back(due_ns);
                }
            }
            sender.write(key as usize, stream)?;
        }
    }
}

impl Sender<'_> {
    /// Writes what is due, until the socket takes no more.
    fn write(&self, key: usize, stream: &mut Stream) -> Result<(), LoadError> {
        let (plan, worker) = (self.plan, self.worker);
        let open = plan.pace != Pace::Closed;
        let mut full = false;
        while stream.state == State::Sends
            && let Some(&due_ns) = stream.queue.front()
        {
            if stream.written == 0 {
                stream.begun_ns = worker.now_ns();
            }
            let message = self
                .pattern
                .stream(stream.offset, plan.request - stream.written);
            match stream.stream.write(message) {
                Ok(n) => {
                    stream.written += n;
                    stream.offset += n as u64;
                    worker.count(due_ns, |tally| tally.bytes_sent += n as u64);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    full = true;
                    break;
                }
                Err(error) => self.fail(stream, "send", Cause::of(&error)),
            }
            if stream.written == plan.request {
                let now_ns = worker.now_ns();
                let from_ns = if open { due_ns } else { stream.begun_ns };
                worker.count(due_ns, |tally| tally.done(now_ns, now_ns - from_ns));
                stream.written = 0;
                stream.queue.pop_front();
            }
        }
        let for_room = stream.state == State::Sends && (full || !open);
        if for_room != stream.for_room && stream.state == State::Sends {
            stream.for_room = for_room;
            let mut flags = EpollFlags::EPOLLIN;
            flags.set(EpollFlags::EPOLLOUT, for_room);
            let changed = self.waiter.change(&stream.stream, key as u64, flags);
            changed.map_err(LoadError::system("cannot watch a socket"))?;
        }
        Ok(())
    }

    /// Says that nothing more comes, and waits for the sink to say the same.
    fn end(&self, key: usize, stream: &mut Stream) -> Result<(), LoadError> {
        match stream.stream.shutdown(Shutdown::Write) {
            Ok(()) => {
                stream.state = State::Ends;
                let changed = self
                    .waiter
                    .change(&stream.stream, key as u64, EpollFlags::EPOLLIN);
                changed.map_err(LoadError::system("cannot watch a socket"))?;
            }
            Err(error) => self.fail(stream, "finish", Cause::of(&error)),
        }
        Ok(())
    }

    /// A sink sends nothing: what comes is its end, or an error.
    fn listen(&self, stream: &mut Stream) {
        match stream.stream.read(&mut [0; 4096]) {
            Ok(0) if stream.state == State::Ends => {
                stream.state = State::Over;
                let now_ns = self.worker.now_ns();
                self.worker
                    .count(now_ns, |tally| tally.last_done_ns = now_ns);
                let _ = self.waiter.remove(&stream.stream);
            }
            Ok(0) => self.fail(stream, "send", Cause::Closed),
            Ok(_) => self.fail(stream, "send", Cause::Surplus),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => self.fail(stream, "send", Cause::of(&error)),
        }
    }

    /// The message under way failed, or the end of the stream; those behind it are unsent.
    fn fail(&self, stream: &mut Stream, doing: &str, cause: Cause) {
        if stream.state == State::Over {
            return;
        }
        let now_ns = self.worker.now_ns();
        let first_ns = stream.queue.pop_front().unwrap_or(now_ns);
        self.worker
            .count(first_ns, |tally| tally.fail(doing, cause, 1));
        for due_ns in stream.queue.drain(..) {
            self.worker.count(due_ns, |tally| tally.unsent += 1);
        }
        stream.state = State::Over;
        let _ = self.waiter.remove(&stream.stream);
    }
}
