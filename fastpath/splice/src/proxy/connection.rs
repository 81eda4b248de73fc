//! A proxied connection: two sockets, two directions.
use super::kernel::Engine;
use super::pipe::{Next, Pipe, Side};
use super::share::{Kernel, Share};
use super::{EngineKind, ProxyError};
use nix::sys::epoll::EpollFlags;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Indices: the client's socket and the direction that begins there, the upstream's likewise.
pub(super) const DOWN: usize = 0;
pub(super) const UP: usize = 1;

const FIRST_LOOK: Duration = Duration::from_millis(1);
/// Of a direction that its reader holds back for long.
const LAST_LOOK: Duration = Duration::from_millis(64);

pub(super) struct Connection {
    pub(super) streams: [TcpStream; 2],
    /// From the socket of the same index to the other.
    pub(super) pipes: [Pipe; 2],
    pub(super) is_connected: bool,
    pub(super) engine: EngineKind,
    pub(super) opened: Instant,
    /// Of both sockets, where the kernel has one of them in its maps.
    pub(super) cookies: Option<[u64; 2]>,
    /// In which comparison of engines it takes part.
    pub(super) window: Option<u32>,
    pub(super) waits_for: [EpollFlags; 2],
    /// It is in the list of those that are looked at again.
    pub(super) is_soon: bool,
    pub(super) look: Duration,
    /// What had been moved when it was last looked at for being idle.
    pub(super) moved_before: u64,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Ended,
    /// By the client or the upstream.
    Reset(usize),
    Failed,
}

pub(super) enum Turn {
    Wait,
    Soon,
    End(End),
}

impl Connection {
    pub(super) fn new(down: TcpStream, up: TcpStream, engine: EngineKind) -> Connection {
        Connection {
            streams: [down, up],
            pipes: [Pipe::default(), Pipe::default()],
            is_connected: false,
            engine,
            opened: Instant::now(),
            cookies: None,
            window: None,
            waits_for: [EpollFlags::EPOLLET, EpollFlags::EPOLLOUT],
            is_soon: false,
            look: FIRST_LOOK,
            moved_before: 0,
        }
    }

    /// Bytes of both directions, by whomever.
    pub(super) fn moved(&self, engine: Option<&Engine>) -> Result<u64, ProxyError> {
        let mut bytes = self.pipes.iter().map(|pipe| pipe.sent).sum();
        if let Some(engine) = engine {
            for share in self.shares() {
                bytes += engine.redirected(share)?;
            }
        }
        Ok(bytes)
    }

    pub(super) fn shares(&self) -> impl Iterator<Item = &Share> {
        self.pipes.iter().filter_map(|pipe| pipe.share.as_ref())
    }

    /// What a socket is to be watched for. Without room or bytes to wait for edges are enough, and needed:
    /// that both directions have ended is said again and again otherwise, while the kernel still sends.
    /// Of bytes that the kernel redirects nobody is woken: they come with EPOLLIN alone.
    pub(super) fn wants(&self, side: usize) -> EpollFlags {
        let (source, sink) = (&self.pipes[side], &self.pipes[1 - side]);
        let mut flags = EpollFlags::empty();
        flags.set(EpollFlags::EPOLLIN, source.wants_bytes());
        flags.set(EpollFlags::EPOLLRDHUP, source.wants_end());
        flags.set(EpollFlags::EPOLLOUT, sink.wants_room());
        let level = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT;
        if !flags.intersects(level) {
            flags |= EpollFlags::EPOLLET;
        }
        flags
    }

    /// After an epoll event of a socket.
    pub(super) fn event(
        &mut self,
        side: usize,
        events: EpollFlags,
        buffer: &mut [u8],
        kernel: &impl Kernel,
    ) -> Result<Turn, ProxyError> {
        if events.contains(EpollFlags::EPOLLERR) {
            return Ok(Turn::End(self.failed(side)));
        }
        let ends = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP;
        if events.intersects(ends) {
            self.pipes[side].is_ending = true;
        }
        let mut is_turn = [false; 2];
        is_turn[side] = events.intersects(ends | EpollFlags::EPOLLIN);
        is_turn[1 - side] = events.contains(EpollFlags::EPOLLOUT);
        self.turn(is_turn, buffer, kernel)
    }

    pub(super) fn turn(
        &mut self,
        is_turn: [bool; 2],
        buffer: &mut [u8],
        kernel: &impl Kernel,
    ) -> Result<Turn, ProxyError> {
        let mut is_soon = false;
        for side in [DOWN, UP] {
            if !is_turn[side] || self.pipes[side].is_shut {
                continue;
            }
            let (from, to) = (&self.streams[side], &self.streams[1 - side]);
            match self.pipes[side].turn(from, to, buffer, kernel)? {
                Next::Wait => {}
                Next::Soon => is_soon = true,
                Next::Failed(which, kind) => {
                    let side = match which {
                        Side::Source => side,
                        Side::Destination => 1 - side,
                    };
                    return Ok(Turn::End(end_of(side, kind)));
                }
            }
        }
        if self.pipes.iter().all(|pipe| pipe.is_shut) {
            return Ok(Turn::End(End::Ended));
        }
        Ok(if is_soon { Turn::Soon } else { Turn::Wait })
    }

    /// When it is to be looked at again; later each time.
    pub(super) fn next_look(&mut self) -> Duration {
        let look = self.look;
        self.look = (look * 2).min(LAST_LOOK);
        look
    }

    pub(super) fn forget_looks(&mut self) {
        self.look = FIRST_LOOK;
    }

    pub(super) fn failed(&self, side: usize) -> End {
        match self.streams[side].take_error() {
            Ok(Some(error)) => end_of(side, error.kind()),
            // Another call has been told.
            _ => End::Reset(side),
        }
    }
}

fn end_of(side: usize, kind: ErrorKind) -> End {
    match kind {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected => {
            End::Reset(side)
        }
        _ => End::Failed,
    }
}
