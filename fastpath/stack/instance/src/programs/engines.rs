//! Programs of several engines on one device. The first engine has their doors and channels; each has the connections that are its own
//! ([`hopscope_stack_engine::config::Share`]), listeners are on all of them, and datagrams at the first.
//!
//! ```text
//! process ── channel ── first ── Errand ──► another
//!                       first ◄── Report ── another
//! ```
use super::calls::Answer;
use super::wire::{Name, OptionSet, Request};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What the first engine asks another one for.
pub(super) enum Errand {
    /// A request of a program: answered.
    Ask {
        channel: u64,
        run: u64,
        request: Request,
        fd: Option<OwnedFd>,
    },
    /// Answered.
    StandBy { channel: u64, socket: Box<Standby> },
    /// A socket that stands by is another engine's, or nobody's any more.
    Release(Name),
    /// A program asks no more.
    Leave { run: u64 },
}

/// A socket that has a port, and no connection yet: whose that will be, its peer decides.
pub(super) struct Standby {
    pub run: u64,
    pub name: Name,
    /// Of the program's end of its pair.
    pub inode: u64,
    pub ipv6: bool,
    pub local: SocketAddr,
    pub options: Vec<OptionSet>,
    pub pair: OwnedFd,
    /// It listens, with this backlog.
    pub listens: Option<u32>,
}

/// What the first engine is told.
pub(super) enum Report {
    Answer {
        channel: u64,
        answer: Answer,
    },
    /// A connection has ended whose row the first engine gave.
    Over(Name),
}

/// The way to another thread.
pub(super) struct Outbox<T> {
    queue: Sender<T>,
    bell: Arc<EventFd>,
}

/// What comes, and what is rung when something does.
pub(super) struct Inbox<T> {
    queue: Receiver<T>,
    bell: Arc<EventFd>,
}

fn way<T>() -> nix::Result<(Outbox<T>, Inbox<T>)> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    let bell = Arc::new(EventFd::from_flags(flags)?);
    let (sender, receiver) = channel();
    let outbox = Outbox {
        queue: sender,
        bell: bell.clone(),
    };
    let inbox = Inbox {
        queue: receiver,
        bell,
    };
    Ok((outbox, inbox))
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Outbox<T> {
        Outbox {
            queue: self.queue.clone(),
            bell: self.bell.clone(),
        }
    }
}

impl<T> Outbox<T> {
    /// To one that has ended, nothing comes any more; neither does anything of ours, soon.
    pub fn send(&self, what: T) {
        if self.queue.send(what).is_ok() {
            let _ = self.bell.write(1);
        }
    }
}

impl<T> Inbox<T> {
    pub fn bell(&self) -> &EventFd {
        &self.bell
    }

    pub fn rang(&self) {
        let _ = self.bell.read();
    }

    pub fn take(&self) -> Option<T> {
        self.queue.try_recv().ok()
    }
}

/// What an engine's programs know of the other engines.
pub(super) enum Engines {
    Alone,
    First {
        /// The second engine's, and so on.
        others: Vec<Outbox<Errand>>,
        reports: Inbox<Report>,
    },
    Other {
        errands: Inbox<Errand>,
        first: Outbox<Report>,
    },
}

impl Engines {
    /// Of so many, the first's first.
    ///
    /// # Errors
    /// As eventfd(2).
    pub fn all(of: u16) -> nix::Result<Vec<Engines>> {
        if of <= 1 {
            return Ok(vec![Engines::Alone]);
        }
        let (first, reports) = way()?;
        let mut others = Vec::new();
        let mut all = Vec::new();
        for _ in 1..of {
            let (outbox, errands) = way()?;
            others.push(outbox);
            all.push(Engines::Other {
                errands,
                first: first.clone(),
            });
        }
        all.insert(0, Engines::First { others, reports });
        Ok(all)
    }

    /// Rung by the others.
    pub fn bell(&self) -> Option<&EventFd> {
        match self {
            Engines::Alone => None,
            Engines::First { reports, .. } => Some(reports.bell()),
            Engines::Other { errands, .. } => Some(errands.bell()),
        }
    }

    /// Of the first: the others.
    pub fn others(&self) -> &[Outbox<Errand>] {
        match self {
            Engines::First { others, .. } => others,
            Engines::Alone | Engines::Other { .. } => &[],
        }
    }
}
