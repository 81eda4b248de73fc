//! A port, and the two queues that it serves.
use super::counts::PairCounts;
use super::error::ServeError;
use super::live::QueueError;
use super::queue::Queue;
use super::source;
use crate::Ns;
use crate::common::feature::Negotiated;
use crate::events::What;
use crate::ring::Memory;
use hopscope_eventloop::{Poll, Token};
use hopscope_netio::{Accepts, PacketIo, PortError};
use hopscope_serving::clock::Clock;
use nix::sys::epoll::EpollFlags;

pub(super) struct Pair {
    number: usize,
    pub(super) port: Box<dyn PacketIo>,
    /// Received by the guest, then sent by it: as queues are numbered.
    pub(super) queues: [Queue; 2],
    /// What the port is watched for.
    interest: EpollFlags,
}

const NOTHING: EpollFlags = EpollFlags::empty();

impl Pair {
    pub(super) fn new(number: usize, port: Box<dyn PacketIo>, queues: [Queue; 2]) -> Pair {
        Pair {
            number,
            port,
            queues,
            interest: NOTHING,
        }
    }

    /// # Errors
    /// The port cannot be waited for.
    pub(super) fn watch(&mut self, poll: &Poll) -> Result<(), ServeError> {
        if let Some(fd) = self.port.wait_fd() {
            poll.add(fd, self.token(), NOTHING)
                .map_err(ServeError::system("watching the port"))?;
        }
        Ok(())
    }

    fn token(&self) -> Token {
        Token::new(source::PORT, self.number as u64)
    }

    /// What the port is ready for.
    ///
    /// # Errors
    /// The device is down or gone.
    pub(super) fn port_is(&mut self, events: EpollFlags) -> Result<(), PortError> {
        let [rx, tx] = &mut self.queues;
        if events.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
            // Asking makes it say what it is.
            self.port.receive(1, &mut |_| rx.counts.drops.ended += 1)?;
            self.port.counters()?;
            let name = "the packet port's device".into();
            return Err(PortError::Down { name });
        }
        rx.ready |= events.contains(EpollFlags::EPOLLIN);
        if events.contains(EpollFlags::EPOLLOUT) {
            (tx.ready, tx.blocked) = (true, false);
        }
        Ok(())
    }

    /// Serves both queues for a while.
    ///
    /// # Errors
    /// The port fails; queues that fail are given up, and said in `failed`.
    pub(super) fn turn(
        &mut self,
        memory: &Memory,
        clock: Clock,
        failed: &mut Vec<(usize, QueueError)>,
    ) -> Result<(), PortError> {
        let port = &mut *self.port;
        for (n, queue) in self.queues.iter_mut().enumerate() {
            let before = queue.counts.chains;
            queue.events.begin(What::Drain);
            let due = queue.deadline().is_some_and(|at| at <= clock.now());
            let done = if due {
                queue.due(memory, clock)
            } else {
                Ok(())
            };
            let done = done.and_then(|()| match n {
                0 => queue.receive(port, memory, clock),
                _ => queue.transmit(port, memory, clock),
            });
            let given_back = queue.counts.chains - before;
            queue.events.end(What::Drain, given_back);
            match done {
                Ok(()) => {}
                Err(QueueError::Port(error)) => return Err(error),
                Err(error) => {
                    // What went out before is not to go out again under the next end. Of what was received a part of a
                    // packet may be given back, which nobody is to see.
                    if n == 1
                        && let Some(live) = &mut queue.live
                    {
                        let _ = live.back.queue.publish_used(memory);
                    }
                    queue.give_up();
                    failed.push((queue.index, error));
                }
            }
        }
        Ok(())
    }

    /// Ends both queues without looking at their rings.
    pub(super) fn abandon(&mut self) {
        self.queues.iter_mut().for_each(Queue::abandon);
    }

    /// Whether there is more to be done without waiting.
    pub(super) fn is_busy(&self) -> bool {
        let busy = |queue: &Queue| queue.live.is_some() && queue.ready && !queue.blocked;
        self.queues.iter().any(busy)
    }

    pub(super) fn deadline(&mut self) -> Option<Ns> {
        self.queues.iter_mut().filter_map(Queue::deadline).min()
    }

    /// Watches the port for what the queues wait for: a packet that nobody can take would wake this end for ever.
    ///
    /// # Errors
    /// The port cannot be watched.
    pub(super) fn rewatch(&mut self, poll: &Poll) -> Result<(), ServeError> {
        let [rx, tx] = &self.queues;
        let mut interest = NOTHING;
        if rx.live.is_some() && !rx.ready && !rx.blocked {
            interest |= EpollFlags::EPOLLIN;
        }
        if tx.live.is_some() && tx.blocked {
            interest |= EpollFlags::EPOLLOUT;
        }
        if interest != self.interest
            && let Some(fd) = self.port.wait_fd()
        {
            poll.modify(fd, self.token(), interest)
                .map_err(ServeError::system("watching the port"))?;
            self.interest = interest;
        }
        Ok(())
    }

    /// # Errors
    /// The port refuses.
    pub(super) fn negotiated(&mut self, taken: Negotiated) -> Result<(), PortError> {
        let (segments_v4, segments_v6) = taken.guest_tso();
        self.port.accept(Accepts {
            checksums: taken.guest_checksums(),
            segments_v4,
            segments_v6,
        })
    }

    /// # Errors
    /// The port's counters cannot be read.
    pub(super) fn counts(&mut self, now: Ns, wait: Ns) -> Result<PairCounts, PortError> {
        let port = self.port.counters()?;
        let [rx, tx] = &mut self.queues;
        Ok(PairCounts {
            rx: rx.report(now, wait),
            tx: tx.report(now, wait),
            port,
        })
    }
}
