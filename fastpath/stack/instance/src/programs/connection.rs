//! A connection of a program: bytes between the engine and the pair of unix(7) sockets whose other end the program has.
use super::table::{Phase, Row, State, Table};
use super::wire::Name;
use crate::app::AppCounts;
use crate::sockets::Sockets;
use hopscope_stack_engine::{Linger, SocketError, SocketId, SocketOption};
use nix::sys::epoll::EpollFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::{AsFd, OwnedFd};

/// Bytes that are moved at once.
pub const PIECE: usize = 64 << 10;
/// Pieces that one connection moves before others have their turn.
const PIECES: usize = 8;
/// What fills a pair so that the program's end is not writable before the connection is there: more than a quarter of what it
/// takes at most (unix_writable() in net/unix/af_unix.c).
pub const FILL: usize = 64 << 10;

pub struct Connection {
    pub id: SocketId,
    pub name: Name,
    pub ipv6: bool,
    phase: Phase,
    pair: OwnedFd,
    filled: usize,
    /// The pair may have bytes of the program, room for more, and these came from it and are not sent.
    readable: bool,
    writable: bool,
    unsent: Vec<u8>,
    /// Less came than was asked for: no more is there, but for what [`Connection::look_again`] says.
    unsure: bool,
    /// Its end is on its way behind the bytes that are there.
    ending: bool,
    /// The program's last byte is here; the peer's last byte is there.
    program_ended: bool,
    peer_ended: bool,
    /// Nobody has the other end any more, or both directions are shut.
    gone: bool,
    /// Its row is this engine's to write.
    tells: bool,
    /// Another engine is asked for its connection: until that has answered, it stays.
    held: bool,
    /// Of one that has listened: the kernel's on the same port, which does not either.
    pub unlistened: Option<OwnedFd>,
}

/// What a socket works with.
pub struct Means<'a, 's> {
    pub sockets: &'a mut Sockets<'s>,
    pub table: &'a Table,
    /// What bytes pass through: of UDP as long as a datagram with its header.
    pub piece: &'a mut [u8],
    pub counts: &'a mut AppCounts,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Waits,
    /// There is more to do at once.
    Again,
    Over,
}

impl Connection {
    pub fn new(id: SocketId, name: Name, ipv6: bool, phase: Phase, pair: OwnedFd) -> Connection {
        Connection {
            id,
            name,
            ipv6,
            phase,
            pair,
            filled: 0,
            readable: true,
            writable: true,
            unsent: Vec::new(),
            unsure: false,
            ending: false,
            program_ended: false,
            peer_ended: false,
            gone: false,
            tells: true,
            held: false,
            unlistened: None,
        }
    }

    /// The first of several engines has its row, until there is a connection here.
    pub fn stands_by(&mut self) {
        self.tells = false;
    }

    pub fn tells(&self) -> bool {
        self.tells
    }

    pub fn is_held(&self) -> bool {
        self.held
    }

    pub fn hold(&mut self) {
        self.held = true;
    }

    pub fn go_on(&mut self) {
        self.held = false;
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn pair(&self) -> &OwnedFd {
        &self.pair
    }

    /// It listens from now on.
    pub fn into_ends(self) -> (OwnedFd, Option<OwnedFd>) {
        (self.pair, self.unlistened)
    }

    /// connect(2) was called, and so many bytes are in the pair that nobody has written.
    pub fn connecting(&mut self, filled: usize) {
        self.phase = Phase::Connecting;
        self.filled = filled;
        self.tells = true;
        self.unlistened = None;
    }

    /// Takes what a pair was filled with out again.
    pub fn drain(&self, filled: usize, piece: &mut [u8]) {
        let mut left = filled;
        while left > 0 {
            let most = left.min(piece.len());
            match recv(&self.pair, &mut piece[..most], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(_) => break,
                Ok((count, _)) => left -= count,
            }
        }
    }

    pub fn is_ready(&mut self, flags: EpollFlags) {
        use EpollFlags as Is;
        let gone = flags.intersects(Is::EPOLLHUP | Is::EPOLLERR);
        self.ending |= gone || flags.contains(Is::EPOLLRDHUP);
        self.readable |= self.ending || flags.contains(Is::EPOLLIN);
        self.writable |= flags.contains(Is::EPOLLOUT);
        self.gone |= gone;
    }

    /// It is to be looked at again ([`Connection::look_again`]).
    pub fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// A read ends early at descriptors that are sent along and at an urgent byte (unix_stream_read_generic in
    /// net/unix/af_unix.c), which programs that do not load the library can write: what is behind it no event tells of.
    pub fn look_again(&mut self) {
        self.readable |= std::mem::take(&mut self.unsure);
    }

    /// Does what can be done now.
    pub fn turn(&mut self, with: &mut Means<'_, '_>) -> Then {
        let done = match self.phase {
            Phase::Connecting => self.connect(with),
            Phase::Connected => {
                if self.gone {
                    // There may be more of it than the peer takes for now, which keeps it from being closed here.
                    let _ = with.sockets.engine.abandon(self.id);
                }
                Ok(Then::Again)
            }
            // Nothing was asked of it yet.
            _ if self.gone && !self.held => {
                with.sockets.close(self.id);
                return Then::Over;
            }
            _ => return Then::Waits,
        };
        let moved = match done {
            Ok(Then::Again) => self.move_all(with),
            other => other,
        };
        match moved {
            Ok(Then::Over) => {
                with.sockets.close(self.id);
                with.counts.ended += 1;
                Then::Over
            }
            Ok(then) => then,
            Err(error) => {
                self.fail(with.sockets, with.table, error);
                with.counts.failed += 1;
                Then::Over
            }
        }
    }

    /// `Again`: it is connected.
    fn connect(&mut self, with: &mut Means<'_, '_>) -> Result<Then, SocketError> {
        if let Some(error) = with.sockets.engine.take_error(self.id)? {
            return Err(error);
        }
        if self.gone {
            return Ok(Then::Over);
        }
        if !with.sockets.engine.readiness(self.id)?.writable {
            return Ok(Then::Waits);
        }
        self.phase = Phase::Connected;
        self.tell(with.sockets, with.table);
        // The program's end is writable from now on.
        self.drain(self.filled, with.piece);
        Ok(Then::Again)
    }

    /// Its row, whole.
    pub fn tell(&self, sockets: &Sockets<'_>, table: &Table) {
        let local = sockets.engine.local_address(self.id).ok();
        let peer = sockets.engine.peer_address(self.id).ok();
        let row = Row::new(self.name.generation, State::of(self.phase), self.ipv6);
        table.write(self.name.row, &row.with(local, peer));
    }

    fn move_all(&mut self, with: &mut Means<'_, '_>) -> Result<Then, SocketError> {
        let mut busy = false;
        for _ in 0..PIECES {
            let from = self.take_from_program(with)?;
            let to = self.give_to_program(with)?;
            busy = from || to;
            if !busy {
                break;
            }
        }
        if self.gone && self.program_ended && self.unsent.is_empty() {
            // Behind its own end nothing else tells of it.
            return match self.has_unread(with.sockets)? {
                true => Err(self.reset(with.sockets)),
                false => Ok(Then::Over),
            };
        }
        // The peer may wait for what is not read here, as this one for room there: a socket that is connected to itself does.
        if self.gone && !busy && self.has_unread(with.sockets)? {
            return Err(self.reset(with.sockets));
        }
        // A reset behind the peer's last byte, which nothing more is read of.
        if self.peer_ended
            && with.sockets.engine.readiness(self.id)?.error
            && let Some(error) = with.sockets.engine.take_error(self.id)?
        {
            return Err(error);
        }
        Ok(if busy { Then::Again } else { Then::Waits })
    }

    /// A piece; true: there may be more.
    fn take_from_program(&mut self, with: &mut Means<'_, '_>) -> Result<bool, SocketError> {
        if !self.unsent.is_empty() {
            let sent = self.send(with.sockets, &self.unsent, with.counts)?;
            self.unsent.drain(..sent);
            if !self.unsent.is_empty() {
                return Ok(false);
            }
        }
        if !self.readable || self.program_ended {
            return Ok(false);
        }
        match recv(&self.pair, &mut *with.piece, RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.program_ended = true;
                // A close that the event does not tell of yet: its end may be a reset, which no FIN goes before.
                self.gone |= is_hung_up(&self.pair);
                if !self.gone {
                    with.sockets.end_of_stream(self.id);
                }
                Ok(false)
            }
            Ok((count, _)) => {
                let sent = self.send(with.sockets, &with.piece[..count], with.counts)?;
                self.unsent.extend_from_slice(&with.piece[sent..count]);
                // A call that would find nothing is a tenth of a request.
                if count < with.piece.len() && !self.ending {
                    self.readable = false;
                    self.unsure = true;
                }
                Ok(self.unsent.is_empty() && self.readable)
            }
            Err(Errno::INTR) => Ok(true),
            Err(Errno::AGAIN) => {
                self.readable = false;
                Ok(false)
            }
            // It was closed with bytes that nobody had read.
            Err(_) => Err(self.reset(with.sockets)),
        }
    }

    /// RFC 2525, 2.17.
    fn reset(&self, sockets: &mut Sockets<'_>) -> SocketError {
        let reset = SocketOption::Linger(Linger::Reset);
        let _ = sockets.engine.set_option(sockets.now, self.id, reset);
        SocketError::Reset
    }

    /// Of one whose program is gone: what has come for it, here and in its end of the pair, where the kernel tells of it behind the
    /// program's bytes, which there may be no room for.
    fn has_unread(&self, sockets: &Sockets<'_>) -> Result<bool, SocketError> {
        let is_reset = || matches!(socket_error(&self.pair), Ok(Err(Errno::CONNRESET)));
        Ok(sockets.engine.unread_bytes(self.id)? > 0 || is_reset())
    }

    fn send(
        &self,
        sockets: &mut Sockets<'_>,
        bytes: &[u8],
        counts: &mut AppCounts,
    ) -> Result<usize, SocketError> {
        let mut sent = 0;
        while sent < bytes.len() {
            match sockets.send(self.id, &bytes[sent..]) {
                Ok(count) => sent += count,
                Err(SocketError::WouldBlock) => break,
                Err(error) => return Err(error),
            }
        }
        counts.bytes_sent += sent as u64;
        Ok(sent)
    }

    /// A piece; true: there may be more.
    fn give_to_program(&mut self, with: &mut Means<'_, '_>) -> Result<bool, SocketError> {
        if !self.writable || self.peer_ended {
            return Ok(false);
        }
        let count = match with.sockets.peek(self.id, with.piece) {
            Ok(0) => {
                self.peer_ended = true;
                let ended = State {
                    ended: true,
                    ..State::of(Phase::Connected)
                };
                // Before the pair says so.
                with.table.set_state(self.name.row, ended);
                let _ = rustix::net::shutdown(&self.pair, rustix::net::Shutdown::Write);
                return Ok(false);
            }
            Ok(count) => count,
            Err(SocketError::WouldBlock) => return Ok(false),
            Err(error) => return Err(error),
        };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let taken = match send(&self.pair, &with.piece[..count], flags) {
            Ok(taken) => taken,
            Err(Errno::INTR) => return Ok(true),
            Err(Errno::AGAIN) => {
                self.writable = false;
                return Ok(false);
            }
            // No event says when there is memory again.
            Err(Errno::NOBUFS | Errno::NOMEM) => return Ok(true),
            // shutdown(SHUT_RD): TCP reads on, for nobody. Of one that is closed, what is unread makes its end a reset.
            Err(_) if self.gone => return Ok(false),
            Err(_) => count,
        };
        with.sockets.discard(self.id, &mut with.piece[..taken])?;
        with.counts.bytes_received += taken as u64;
        self.writable = taken == count;
        Ok(taken == count)
    }

    /// Said in the table before the pair is closed.
    fn fail(&mut self, sockets: &mut Sockets<'_>, table: &Table, error: SocketError) {
        let failed = State {
            phase: self.phase,
            ended: self.peer_ended,
            errno: error.errno() as u16,
        };
        table.set_state(self.name.row, failed);
        sockets.close(self.id);
    }
}

fn is_hung_up(pair: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pair, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Fills the program's end, which is not writable then; returns with how many bytes.
pub fn fill(program: impl AsFd) -> usize {
    let zeros = [0; FILL];
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let mut filled = 0;
    while filled < FILL {
        match send(&program, &zeros[filled..], flags) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    filled
}
