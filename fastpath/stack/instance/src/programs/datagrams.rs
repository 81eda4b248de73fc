//! A socket of UDP of a program: datagrams between the engine and the pair whose other end the program has, each with a
//! [header](super::datagram). At every address it is the kernel's socket, too, whose datagrams go the same way.
use super::connection::{Means, Then};
use super::datagram::{HEADER, Head, Message};
use super::joined::{Came, Joined};
use super::table::{self, Phase, Row, State, Table};
use super::wire::Name;
use crate::sockets::Sockets;
use hopscope_stack_engine::{
    MtuDiscovery, Outbound, RecvFlags as How, SocketError, SocketId, SocketOption,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::OwnedFd;

/// Datagrams that one socket moves before others have their turn.
const TURN: usize = 64;

pub struct Datagrams {
    pub id: SocketId,
    pub name: Name,
    pub ipv6: bool,
    pub kernel: Joined,
    pair: OwnedFd,
    /// Of its row.
    pub told: table::Datagrams,
    errno: u16,
    readable: bool,
    writable: bool,
    /// Taken from the pair, and not by the engine.
    unsent: Option<(Outbound, Vec<u8>)>,
    /// Nobody has the other end any more, or both directions are shut.
    gone: bool,
}

impl Datagrams {
    pub fn new(
        (id, name): (SocketId, Name),
        ipv6: bool,
        told: table::Datagrams,
        kernel: Joined,
        pair: OwnedFd,
    ) -> Datagrams {
        Datagrams {
            id,
            name,
            ipv6,
            kernel,
            pair,
            told,
            errno: 0,
            readable: true,
            writable: true,
            unsent: None,
            gone: false,
        }
    }

    pub fn pair(&self) -> &OwnedFd {
        &self.pair
    }

    pub fn is_ready(&mut self, readable: bool, writable: bool, gone: bool) {
        self.readable |= readable || gone;
        self.writable |= writable;
        self.gone |= gone;
    }

    /// An option was set.
    pub fn look_at_options(&mut self, sockets: &Sockets<'_>) {
        use MtuDiscovery::{Do, Interface, Probe};
        let of = |like| sockets.engine.option(self.id, like);
        let v4 = of(SocketOption::MtuDiscovery(Do));
        let v6 = of(SocketOption::MtuDiscoveryV6(Do));
        self.told.unfragmented =
            matches!(v4, Ok(SocketOption::MtuDiscovery(Do | Probe | Interface)))
                || matches!(v6, Ok(SocketOption::MtuDiscoveryV6(Do | Probe | Interface)));
    }

    /// Its row, whole.
    pub fn tell(&self, sockets: &Sockets<'_>, table: &Table) {
        let (local, peer) = match self.told.by_kernel {
            true => (self.kernel.local(), self.kernel.peer()),
            false => {
                let peer = sockets.engine.peer_address(self.id).ok();
                (sockets.engine.local_address(self.id).ok(), peer)
            }
        };
        let phase = match peer {
            Some(_) => Phase::Connected,
            None => Phase::Bound,
        };
        let state = State {
            errno: self.errno,
            ..State::of(phase)
        };
        let mut row = Row::new(self.name.generation, state, self.ipv6).with(local, peer);
        row.datagrams = self.told.to_word();
        table.write(self.name.row, &row);
    }

    /// Does what can be done now.
    pub fn turn(&mut self, with: &mut Means<'_, '_>) -> Then {
        let mut busy = false;
        for _ in 0..TURN {
            let out = self.take_from_program(with);
            let into = self.give_to_program(with);
            busy = out || into;
            if !busy {
                break;
            }
        }
        if self.gone && !self.readable && self.unsent.is_none() {
            return Then::Over;
        }
        if busy { Then::Again } else { Then::Waits }
    }

    /// One; true: there may be more.
    pub fn take_from_program(&mut self, with: &mut Means<'_, '_>) -> bool {
        if let Some((to, bytes)) = self.unsent.take() {
            return self.send(with, to, &bytes);
        }
        if !self.readable {
            return false;
        }
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let len = match recv(&self.pair, &mut *with.piece, flags) {
            // No message, or one of no bytes.
            Ok((0, _)) if self.has_ended() => {
                self.readable = false;
                return false;
            }
            Ok((_, len)) => len,
            // ECONNRESET: it was closed with datagrams that nobody had read. Those that it sent follow.
            Err(Errno::INTR | Errno::CONNRESET) => return true,
            Err(_) => {
                self.readable = false;
                return false;
            }
        };
        let message = with.piece[..len.min(with.piece.len())]
            .first_chunk()
            .and_then(Message::from_bytes);
        let (Some(Message::Datagram(head)), true) = (message, len <= with.piece.len()) else {
            with.counts.datagrams_malformed += 1;
            return true;
        };
        let to = Outbound {
            peer: head.peer,
            source: head.local,
            hop_limit: head.hop_limit,
            traffic_class: head.traffic_class,
        };
        let bytes = with.piece[HEADER..len].to_vec();
        self.send(with, to, &bytes)
    }

    /// The program sends no more.
    fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.pair, PollFlags::RDHUP)];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        let ended = PollFlags::RDHUP | PollFlags::HUP;
        polled.is_err() || fds[0].revents().intersects(ended)
    }

    fn send(&mut self, with: &mut Means<'_, '_>, to: Outbound, bytes: &[u8]) -> bool {
        // An error of before is told, and the datagram is sent all the same: the program's call has returned.
        if let Ok(Some(error)) = with.sockets.engine.take_error(self.id) {
            self.tell_error(with, error.errno());
        }
        let now = with.sockets.now;
        match with.sockets.engine.send_datagram(now, self.id, bytes, &to) {
            Ok(_) => with.counts.datagrams_sent += 1,
            Err(SocketError::WouldBlock) => {
                self.unsent = Some((to, bytes.to_vec()));
                return false;
            }
            Err(SocketError::NoBuffers) => with.counts.datagrams_dropped += 1,
            Err(error) => {
                with.counts.datagrams_dropped += 1;
                self.tell_error(with, error.errno());
            }
        }
        true
    }

    /// In the row, for whoever calls, and in the pair, for whoever waits.
    fn tell_error(&mut self, with: &mut Means<'_, '_>, errno: i32) {
        self.errno = errno as u16;
        self.told.errors = self.told.errors.wrapping_add(1);
        self.tell(with.sockets, with.table);
        let message = Message::Error {
            errno: self.errno,
            count: self.told.errors,
        };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        // Without room for it nobody waits.
        let _ = send(&self.pair, &message.to_bytes(), flags);
    }

    /// One; true: there may be more. What the pair does not take stays in the engine's queue, and the kernel's, which drop.
    fn give_to_program(&mut self, with: &mut Means<'_, '_>) -> bool {
        if !self.writable {
            return false;
        }
        self.give_engines(with) || self.give_kernels(with)
    }

    fn give_engines(&mut self, with: &mut Means<'_, '_>) -> bool {
        let how = How {
            peek: true,
            ..How::default()
        };
        let into = &mut with.piece[HEADER..];
        let inbound = match with.sockets.engine.recv_datagram(self.id, into, how) {
            Ok(inbound) => inbound,
            Err(SocketError::WouldBlock) => return false,
            Err(error) => {
                self.tell_error(with, error.errno());
                return true;
            }
        };
        let head = Head {
            peer: Some(inbound.peer),
            local: Some(inbound.to),
            hop_limit: Some(inbound.hop_limit),
            traffic_class: Some(inbound.traffic_class),
            ..Head::default()
        };
        // Connected to a peer of the kernel's, it hears nobody else.
        let done = match self.told.by_kernel {
            true => {
                with.counts.datagrams_dropped += 1;
                true
            }
            false => self.push(with, head, inbound.len),
        };
        if done {
            with.sockets.discard_from(self.id);
            return true;
        }
        self.writable
    }

    fn give_kernels(&mut self, with: &mut Means<'_, '_>) -> bool {
        let is_connected = with.sockets.engine.peer_address(self.id).is_ok();
        if !self.told.everywhere || is_connected && !self.told.by_kernel {
            return false;
        }
        match self.kernel.peek(&mut with.piece[HEADER..]) {
            Came::Datagram(head, len) => {
                if self.push(with, head, len) {
                    self.kernel.discard();
                }
                self.writable
            }
            Came::Error(errno) => {
                self.tell_error(with, errno);
                true
            }
            Came::Nothing => false,
        }
    }

    /// True: it is done with.
    fn push(&mut self, with: &mut Means<'_, '_>, head: Head, len: usize) -> bool {
        let message = &mut with.piece[..HEADER + len];
        message[..HEADER].copy_from_slice(&Message::Datagram(head).to_bytes());
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match send(&self.pair, message, flags) {
            Ok(_) => with.counts.datagrams_received += 1,
            Err(Errno::AGAIN) => {
                self.writable = false;
                return false;
            }
            // No event says when there is memory again.
            Err(Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => return false,
            // shutdown(SHUT_RD), or the end.
            Err(_) => with.counts.datagrams_dropped += 1,
        }
        true
    }
}
