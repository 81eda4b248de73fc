//! A connected front end: its messages, and their effect on the queues.
use super::error::{Broken, ServeError};
use super::live::QueueError;
use super::memory::{self, Mapped};
use super::notice::Notice;
use super::pair::Pair;
use super::queue::Queue;
use super::source;
use super::wire::{Read, Wire};
use crate::common::eventfd::Eventfd;
use crate::common::feature::Negotiated;
use crate::vhost::{Change, Control, Doorbell, Header, Request};
use hopscope_eventloop::{Poll, Token};
use hopscope_serving::clock::Clock;
use nix::sys::epoll::EpollFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

pub(super) struct Session {
    control: Control,
    pub(super) mapped: Mapped,
    /// What the ports were told last.
    told: Option<Negotiated>,
    // The last to go: a front end that sees its end finds everything given back.
    wire: Wire,
}

/// What else a session needs of the back end.
pub(super) struct Around<'a> {
    pub(super) pairs: &'a mut [Pair],
    pub(super) poll: &'a Poll,
    pub(super) clock: Clock,
    pub(super) say: &'a mut dyn FnMut(Notice<'_>),
}

impl Around<'_> {
    fn queue(&mut self, n: usize) -> Option<&mut Queue> {
        self.pairs
            .get_mut(n / 2)
            .map(|pair| &mut pair.queues[n % 2])
    }
}

/// The connection's end, or the back end's.
pub(super) enum Failed {
    Connection(Broken),
    Server(ServeError),
}

impl<E: Into<Broken>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed::Connection(error.into())
    }
}

impl Session {
    pub(super) fn new(socket: UnixStream, control: Control) -> Session {
        Session {
            wire: Wire::new(socket),
            control,
            mapped: Mapped::default(),
            told: None,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.wire.socket.as_fd()
    }

    /// Handles all pending messages; false: the front end disconnected.
    pub(super) fn listen(&mut self, around: &mut Around<'_>) -> Result<bool, Failed> {
        loop {
            match self.wire.read()? {
                Read::Later => return Ok(true),
                Read::Ended => return Ok(false),
                Read::Message(header, request, descriptors) => {
                    let heard = self.hear(around, header, request, descriptors);
                    // Then it is the cause of whatever else went wrong.
                    self.there()?;
                    heard?;
                }
            }
        }
    }

    /// # Errors
    /// The guest's memory is not there any more.
    pub(super) fn there(&self) -> Result<(), Broken> {
        self.mapped.vanished().map_or(Ok(()), Err)
    }

    fn hear(
        &mut self,
        around: &mut Around<'_>,
        header: Header,
        request: Request,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), Failed> {
        if let Request::GetVringBase { queue } = request {
            // The answer says where it ended.
            self.end(around, queue as usize);
        }
        let answer = self.control.on(header, request)?;
        match answer.change {
            Change::Nothing | Change::Queue(_) => {}
            Change::Memory => {
                self.end_all(around);
                self.mapped = memory::map(self.control.regions(), descriptors)?;
            }
            Change::Doorbell { queue, which, .. } => {
                self.doorbell(around, queue, which, descriptors)?;
            }
            Change::Stopped(n) => {
                if let Some(queue) = around.queue(n) {
                    queue.broken = false;
                }
            }
            Change::Reset => self.end_all(around),
        }
        self.begin_live(around)?;
        if let Some(reply) = answer.reply {
            self.wire.answer(&reply)?;
        }
        Ok(())
    }

    fn doorbell(
        &mut self,
        around: &mut Around<'_>,
        n: usize,
        which: Doorbell,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), Failed> {
        let bell = descriptors.into_iter().next();
        let bell = bell.map(|fd| Eventfd::new(n, fd)).transpose()?;
        let poll = around.poll;
        let Some(queue) = around.queue(n) else {
            return Ok(());
        };
        match which {
            Doorbell::Kick => {
                if let Some(old) = queue.kick.take() {
                    // What is in it counts: nobody will look again.
                    let _ = queue.counted(&old);
                    poll.remove(old.fd()).map_err(std::io::Error::from)?;
                }
                if let Some(bell) = bell {
                    let token = Token::new(source::KICK, n as u64);
                    let watched = poll.add(bell.fd(), token, EpollFlags::EPOLLIN);
                    watched.map_err(std::io::Error::from)?;
                    queue.kick = Some(bell);
                }
                (queue.broken, queue.ready, queue.blocked) = (false, true, false);
            }
            Doorbell::Call => {
                if let Err(QueueError::Eventfd(error)) = queue.called_by(bell) {
                    return Err(Broken::from(error).into());
                }
            }
            Doorbell::Error => queue.error = bell,
        }
        Ok(())
    }

    /// Begins queues that are all told, and ends those that are not any more.
    fn begin_live(&mut self, around: &mut Around<'_>) -> Result<(), Failed> {
        let taken = Negotiated(self.control.features().unwrap_or(0));
        for n in 0..2 * around.pairs.len() {
            let wanted = self.control.live(n)?;
            let Some(queue) = around.queue(n) else {
                continue;
            };
            let now = queue.live.as_ref().map(|live| (live.layout, live.taken));
            let wanted = wanted.map(|layout| (layout, taken));
            if now == wanted || queue.broken {
                continue;
            }
            self.end(around, n);
            let Some((layout, taken)) = wanted else {
                continue;
            };
            if self.told != Some(taken) {
                self.told = Some(taken);
                for pair in around.pairs.iter_mut() {
                    let told = pair.negotiated(taken);
                    told.map_err(|error| Failed::Server(error.into()))?;
                }
            }
            let base = self.control.queue(n).map_or(0, |state| state.base);
            let Some(queue) = around.queue(n) else {
                continue;
            };
            let size = layout.size;
            match queue.begin(layout, taken, base, &self.mapped.memory) {
                Ok(found) => {
                    (around.say)(Notice::Queue { n, size, taken });
                    if let Some(emptied) = found {
                        (around.say)(Notice::Found { n, emptied });
                    }
                }
                Err(error) => {
                    queue.give_up();
                    let error = &error;
                    (around.say)(Notice::Broken { n, error });
                }
            }
        }
        Ok(())
    }

    /// Ends a queue, and keeps where.
    fn end(&mut self, around: &mut Around<'_>, n: usize) {
        let clock = around.clock;
        let Some(queue) = around.queue(n) else { return };
        match queue.end(&self.mapped.memory, clock) {
            Ok(Some(base)) => self.control.base(n, base),
            Ok(None) => {}
            Err(error) => {
                let error = &error;
                (around.say)(Notice::Broken { n, error });
            }
        }
    }

    fn end_all(&mut self, around: &mut Around<'_>) {
        for n in 0..2 * around.pairs.len() {
            self.end(around, n);
        }
    }

    /// The connection is over: the queues end, and nobody's doorbells are kept.
    pub(super) fn close(mut self, around: &mut Around<'_>) {
        match self.there() {
            Ok(()) => self.end_all(around),
            Err(_) => around.pairs.iter_mut().for_each(Pair::abandon),
        }
        let poll = around.poll;
        for n in 0..2 * around.pairs.len() {
            let Some(queue) = around.queue(n) else {
                continue;
            };
            if let Some(kick) = queue.kick.take() {
                let _ = queue.counted(&kick);
                let _ = poll.remove(kick.fd());
            }
            (queue.call, queue.error, queue.broken) = (None, None, false);
            queue.ended = None;
            queue.drop_pending();
        }
        let _ = poll.remove(self.fd());
    }
}
