//! All that the lock guards.
use crate::description::{Description, Kind};
use crate::edges::Edges;
use crate::instance::Instance;
use crate::kernel;
use crate::numbers;
use crate::owner::{Claimed, Owner};
use crate::pieces::Together;
use crate::say::{once, say};
use crate::sleeper::{Sleeper, watch};
use crate::stack::{Stack, now};
use crate::table::{self, Entry};
use crate::ticker::Ticker;
use hopscope_stack_abi::readiness::bits;
use hopscope_stack_engine::{Ns, RecvFlags, SocketKind};
use hopscope_stack_instance::handed::Handed;
use nix::libc;
use std::os::fd::OwnedFd;

pub struct State {
    pub handed: Handed,
    pub owner: Owner,
    pub stack: Option<Stack>,
    /// The stack is there instead.
    pub instance: Option<Instance>,
    descriptions: Vec<Option<Description>>,
    free: Vec<u32>,
    pub sleepers: Vec<Option<Sleeper>>,
    /// Doorbells that nobody has.
    pub bells: Vec<i32>,
    /// Who watches the port.
    pub leader: Option<u32>,
    pub leader_until: Option<Ns>,
    pub ticker: Ticker,
    pub ticker_leads: bool,
    pub together: Together,
    /// Turns that were done.
    pub turns: u64,
    /// Calls on sockets that the program has made.
    pub calls: u64,
    /// MadeSockets that are the kernel's, too.
    pub kernel_too: Vec<u32>,
    pub edges: Edges,
    /// Addresses of stdio's streams on sockets, which are not closed.
    pub streams: Vec<usize>,
}

impl State {
    pub fn new(handed: Handed, owner: Owner, ticker: Ticker) -> State {
        State {
            handed,
            owner,
            stack: None,
            instance: None,
            descriptions: Vec::new(),
            free: Vec::new(),
            sleepers: Vec::new(),
            bells: Vec::new(),
            leader: None,
            leader_until: None,
            ticker,
            ticker_leads: false,
            together: Together::default(),
            turns: 0,
            calls: 0,
            kernel_too: Vec::new(),
            edges: Edges::default(),
            streams: Vec::new(),
        }
    }

    pub fn description(&self, index: u32) -> Option<&Description> {
        self.descriptions.get(index as usize)?.as_ref()
    }

    pub fn description_mut(&mut self, index: u32) -> Option<&mut Description> {
        self.descriptions.get_mut(index as usize)?.as_mut()
    }

    /// Who `fd` is, if it is ours.
    pub fn index_of(&self, fd: i32) -> Option<u32> {
        match table::get(fd) {
            Entry::Ours(index) | Entry::KernelEpoll(index) => Some(index),
            Entry::Kernel | Entry::Internal | Entry::Instance(_) | Entry::Datagrams(_) => None,
        }
    }

    /// A description with its first descriptor.
    pub fn describe(&mut self, fd: i32, description: Description) -> Option<u32> {
        // What had the number was closed where no hook saw it.
        self.unname(fd);
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.descriptions.push(None);
                self.descriptions.len() as u32 - 1
            }
        };
        self.descriptions[index as usize] = Some(description);
        self.name(fd, index).then_some(index)
    }

    /// `fd` is another name of it.
    pub fn name(&mut self, fd: i32, index: u32) -> bool {
        let Some(description) = self.description_mut(index) else {
            return false;
        };
        description.fds.push(fd);
        let idle = matches!(&description.kind, Kind::Epoll(set) if set.is_empty());
        table::set(
            fd,
            match idle {
                true => Entry::KernelEpoll(index),
                false => Entry::Ours(index),
            },
        )
    }

    /// The kernel alone has it from now on.
    pub fn forget(&mut self, index: u32) -> Option<Description> {
        let description = self.descriptions.get_mut(index as usize)?.take()?;
        for fd in &description.fds {
            table::set(*fd, Entry::Kernel);
        }
        // Its number is not another's while a call that waits on it has it.
        if description.pins == 0 {
            self.free.push(index);
        }
        Some(description)
    }

    pub fn each(&self) -> impl Iterator<Item = (u32, &Description)> {
        let all = (0..).zip(&self.descriptions);
        all.filter_map(|(index, description)| Some((index, description.as_ref()?)))
    }

    pub fn unpin(&mut self, index: u32) {
        if let Some(description) = self.description_mut(index) {
            description.pins = description.pins.saturating_sub(1);
            if description.pins == 0 && description.fds.is_empty() {
                self.end(index);
            }
        }
    }

    /// The stack, where this process has it.
    pub fn owned_stack(&mut self) -> Option<&mut Stack> {
        self.stack.as_mut().filter(|_| self.owner.is_owned())
    }

    /// Makes it this process's. EIO: another one has it.
    pub fn own(&mut self) -> Result<&mut Stack, i32> {
        match self.owner.claim() {
            None => {
                once(&self.owner.said, || {
                    format!(
                        "process {}: another process of this program has the stack on {}: connections in several processes need --mode pipeline; \
                         calls on such sockets fail",
                        kernel::process(),
                        self.handed
                            .inline()
                            .map_or("?", |inline| &inline.port.device)
                    )
                });
                return Err(libc::EIO);
            }
            Some(Claimed::Kept) => {}
            Some(Claimed::Current) => self.ticker.wake(),
            Some(Claimed::Stale) => {
                self.start_over();
                self.ticker.wake();
            }
        }
        if self.stack.is_none() {
            let made = self.make().inspect_err(|error| say(error));
            self.stack = Some(made.map_err(|_| libc::EIO)?);
        }
        self.ticker.start();
        self.stack.as_mut().ok_or(libc::EIO)
    }

    fn make(&self) -> Result<Stack, String> {
        let mut seed = [0; 32];
        kernel::random(&mut seed).map_err(|_| "no random numbers".to_owned())?;
        let socket = self
            .socket()
            .map_err(|_| "no descriptor for the port".to_owned())?;
        let stack = Stack::new(&self.handed, socket, seed).map_err(|error| error.to_string())?;
        keep(&stack);
        Ok(stack)
    }

    /// The port's descriptor, once more: the one that was handed over stays for others.
    fn socket(&self) -> Result<OwnedFd, i32> {
        let inline = self.handed.inline().ok_or(libc::EIO)?;
        Ok(kernel::own(numbers::again(inline.port.fd)?))
    }

    /// MadeSockets go on. Connections are of a process that is gone, or were: what comes for them is reset.
    fn start_over(&mut self) {
        let Ok(socket) = self.socket() else {
            return;
        };
        let handed = self.handed.clone();
        let sockets = self
            .each()
            .filter_map(|(_, description)| description.socket())
            .filter(|socket| !socket.listening);
        let (datagrams, connections): (Vec<_>, Vec<_>) = sockets
            .map(|socket| (socket.kind, socket.id))
            .partition(|(kind, _)| *kind == SocketKind::Udp);
        if let Some(stack) = &mut self.stack {
            match stack.replace_port(&handed, socket) {
                Ok(()) => keep(stack),
                Err(error) => say(&error.to_string()),
            }
            for (_, id) in connections {
                let _ = stack.engine.abort(now(), id);
            }
            // What is in the copy others have read, or lost.
            for (_, id) in datagrams {
                while stack
                    .engine
                    .recv_datagram(id, &mut [], RecvFlags::default())
                    .is_ok()
                {}
            }
        }
    }

    /// Whoever waits for a socket of the stack uses it. Where another process has the stack, nothing comes.
    pub fn claim(&mut self) {
        if self.stack.is_some() && !self.owner.is_owned() {
            let _ = self.own();
        }
    }

    /// Frames in, timers, events to whom they concern. `false`: there was nothing.
    pub fn turn(&mut self) -> bool {
        let Some(stack) = self.owned_stack() else {
            return false;
        };
        let busy = stack.receive(now());
        self.turns += 1;
        self.tell(false);
        busy
    }

    /// Frames out; true: some were for sockets here, which have them.
    pub fn flush(&mut self) -> bool {
        let now = now();
        let looped = self
            .owned_stack()
            .is_some_and(|stack| stack.transmit_all(now));
        self.together.gone(now);
        self.tell(!looped);
        looped
    }

    fn tell(&mut self, called: bool) {
        while let Some(event) = self
            .owned_stack()
            .and_then(|stack| stack.engine.next_event())
        {
            if let Some(index) = event.token.checked_sub(1) {
                let key = self.key(index as u32, called);
                self.happened(index as u32, key);
            }
        }
    }

    /// Which of poll's bits an event is about: what has changed, and bytes that came though there were some. Every bit where the
    /// connection's state has changed (sk_state_change), as Linux does. `called`: by a call of the program itself, which brings no
    /// bytes.
    fn key(&mut self, index: u32, called: bool) -> u32 {
        let Some((before, state)) = self.description(index).map(|d| (d.level, d.state)) else {
            return 0;
        };
        self.note_level(index);
        let Some((level, now)) = self.description(index).map(|d| (d.level, d.state)) else {
            return 0;
        };
        let raised = level & !before;
        let ends = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
        let bytes = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
        if raised & ends != 0 || state.is_some() && state != now {
            return u32::MAX;
        }
        match called {
            true => raised,
            false => raised | level & bytes,
        }
    }

    /// What happens from now on is new.
    pub fn note_level(&mut self, index: u32) {
        let level = self.level(index);
        let id = self.description(index).and_then(Description::socket);
        let id = id.map(|socket| socket.id);
        let stack = self.stack.as_ref();
        let state = id.and_then(|id| stack?.engine.tcp_state(id).ok());
        if let Some(description) = self.description_mut(index) {
            description.level = level;
            description.state = state;
        }
    }

    /// By a call whose change no event of the engine's tells of.
    pub fn happened_by_state(&mut self, index: u32) {
        self.note_level(index);
        self.happened(index, u32::MAX);
    }

    /// After a call, which may have taken the last bytes, or the last room.
    pub fn called(&mut self, index: u32) {
        if self
            .description(index)
            .is_some_and(|d| !d.watchers.is_empty())
        {
            let level = self.level(index);
            if let Some(description) = self.description_mut(index) {
                description.level &= level;
            }
        }
    }

    /// Its readiness may be new.
    pub fn happened(&mut self, index: u32, key: u32) {
        let Some(description) = self.description(index) else {
            return;
        };
        let watchers = description.watchers.len();
        self.ring_all(index);
        for at in 0..watchers {
            let watcher = self
                .description(index)
                .and_then(|d| d.watchers.get(at).copied());
            let Some((set, place)) = watcher else {
                return;
            };
            if let Some(Description {
                kind: Kind::Epoll(found),
                ..
            }) = self.description_mut(set)
            {
                found.happened(place, key);
            }
            self.ring_all(set);
        }
    }

    /// poll's bits of a description.
    pub fn level(&self, index: u32) -> u32 {
        let Some(description) = self.description(index) else {
            return 0;
        };
        match &description.kind {
            // As the kernel says of a TCP socket that was not connected.
            Kind::Undecided(undecided) => match undecided.kind {
                SocketKind::Tcp => (libc::EPOLLOUT | libc::EPOLLWRNORM | libc::EPOLLHUP) as u32,
                // The kernel's socket may have a port already.
                SocketKind::Udp => kernel_bits(description, ALL),
            },
            Kind::Socket(socket) => {
                let readiness = self
                    .stack
                    .as_ref()
                    .map(|stack| stack.engine.readiness(socket.id));
                match readiness {
                    Some(Ok(readiness)) if self.owner.is_owned() => {
                        let kernel = if socket.kernel_too {
                            kernel_level(description)
                        } else {
                            0
                        };
                        // datagram_poll
                        let band = match socket.kind {
                            SocketKind::Udp if readiness.writable => libc::EPOLLWRBAND as u32,
                            _ => 0,
                        };
                        bits(readiness) | band | kernel
                    }
                    // Another process accepts: here no connection comes.
                    _ if socket.listening || socket.kind == SocketKind::Udp => 0,
                    // Each call on it says what is wrong.
                    _ => (libc::EPOLLERR | libc::EPOLLIN | libc::EPOLLOUT) as u32,
                }
            }
            Kind::Epoll(_) => 0,
        }
    }
}

/// The program cannot close it.
fn keep(stack: &Stack) {
    if let Some(port) = stack.port_fd() {
        table::set(port, Entry::Internal);
    }
}

/// A connection, or a datagram, that the kernel's socket has.
pub fn kernel_level(description: &Description) -> u32 {
    kernel_bits(description, libc::POLLIN) & (libc::EPOLLIN | libc::EPOLLRDNORM) as u32
}

const ALL: i16 = libc::POLLIN
    | libc::POLLRDNORM
    | libc::POLLOUT
    | libc::POLLWRNORM
    | libc::POLLWRBAND
    | libc::POLLRDHUP;

/// What the kernel's poll says of it.
fn kernel_bits(description: &Description, asked: i16) -> u32 {
    let Some(fd) = description.fds.first() else {
        return 0;
    };
    let mut fds = [watch(*fd, asked)];
    match kernel::poll_now(&mut fds) {
        Ok(1..) => u32::from(fds[0].revents as u16),
        _ => 0,
    }
}
