//! Open descriptions: what one or several descriptors name.
use crate::control::Wants;
use crate::pieces::Pieces;
use crate::set::Set;
use hopscope_stack_engine::{HowToShut, Ns, SocketId, SocketKind, TcpState};

#[derive(Debug)]
pub struct Description {
    /// All descriptors of it. The kernel has a description of its own for them: a socket in whose place ours is.
    pub fds: Vec<i32>,
    /// Calls under way.
    pub pins: u32,
    pub nonblocking: bool,
    pub kind: Kind,
    /// Epoll sets that it is in, and its place there.
    pub watchers: Vec<(u32, u32)>,
    /// Who sleeps until something happens here.
    pub sleepers: Vec<u32>,
    /// poll's bits when something happened last, without those that calls have taken back since.
    pub level: u32,
    /// Of TCP, then.
    pub state: Option<TcpState>,
}

#[derive(Debug)]
pub enum Kind {
    Undecided(Undecided),
    Socket(Socket),
    Epoll(Set),
}

/// A socket that may still become the kernel's. Until then all is done to the kernel's, and kept for the engine's.
#[derive(Debug, Clone)]
pub struct Undecided {
    pub kind: SocketKind,
    pub ipv6: bool,
    /// Level, name, value.
    pub options: Vec<(i32, i32, Vec<u8>)>,
    /// To every address, at the kernel's socket.
    pub bound: bool,
    /// Of UDP: datagrams went by the kernel's socket, which may receive answers.
    pub kernel_used: bool,
    /// Of UDP: it was shut down, which fails without a peer, and counts.
    pub shut: Option<HowToShut>,
    pub times: Times,
}

/// SO_RCVTIMEO, SO_SNDTIMEO.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub receive: Option<Ns>,
    pub send: Option<Ns>,
}

#[derive(Debug)]
pub struct Socket {
    pub id: SocketId,
    pub kind: SocketKind,
    pub ipv6: bool,
    pub listening: bool,
    /// The kernel's socket listens, or receives datagrams, too.
    pub kernel_too: bool,
    /// Of UDP: it is at every address, so that the kernel's socket is part of it while it is not connected.
    pub everywhere: bool,
    pub connected: bool,
    pub wants: Wants,
    /// Calls that receive datagrams.
    pub calls: u32,
    /// Whose connection is accepted first: in turn.
    pub kernel_first: bool,
    pub times: Times,
    /// TCP_INQ.
    pub inq: bool,
    pub pieces: Pieces,
}

impl Socket {
    pub fn new(id: SocketId, kind: SocketKind, ipv6: bool, times: Times) -> Socket {
        Socket {
            id,
            kind,
            ipv6,
            listening: false,
            kernel_too: false,
            everywhere: false,
            connected: false,
            wants: Wants::default(),
            calls: 0,
            kernel_first: false,
            times,
            inq: false,
            pieces: Pieces::default(),
        }
    }
}

impl Description {
    pub fn new(kind: Kind, nonblocking: bool) -> Description {
        Description {
            fds: Vec::new(),
            pins: 0,
            nonblocking,
            kind,
            watchers: Vec::new(),
            sleepers: Vec::new(),
            level: 0,
            state: None,
        }
    }

    /// The kernel's socket, where what comes there is this one's, too.
    pub fn kernel_part(&self) -> Option<i32> {
        let is = match &self.kind {
            Kind::Undecided(undecided) => undecided.kernel_used,
            Kind::Socket(socket) => socket.kernel_too,
            Kind::Epoll(_) => false,
        };
        self.fds.first().copied().filter(|_| is)
    }

    pub fn socket(&self) -> Option<&Socket> {
        match &self.kind {
            Kind::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    pub fn socket_mut(&mut self) -> Option<&mut Socket> {
        match &mut self.kind {
            Kind::Socket(socket) => Some(socket),
            _ => None,
        }
    }
}
