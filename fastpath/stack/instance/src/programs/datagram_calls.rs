//! What processes of a program ask of their sockets of UDP.
use super::calls::{Answer, EDGES, errno, set_all};
use super::connection::{Means, Then};
use super::datagrams::Datagrams;
use super::joined::Joined;
use super::names::{Kind, Of, Place};
use super::wire::{Name, OptionSet, Response};
use super::{DATAGRAMS, JOINED, OF_DATAGRAMS, Programs, table};
use crate::sockets::Sockets;
use hopscope_eventloop::Token;
use hopscope_stack_engine::{SocketError, SocketId, SocketKind};
use nix::libc;
use nix::sys::stat::fstat;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Ports that the kernel chose and the engine does not have free.
const TRIES: u32 = 64;

/// A new one.
pub(super) struct Opening {
    pub ipv6: bool,
    pub local: Option<SocketAddr>,
    pub options: Vec<OptionSet>,
    pub told: table::Datagrams,
}

impl Programs {
    pub(super) fn open_datagrams(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        opening: &Opening,
        kernel: Option<OwnedFd>,
    ) -> Answer {
        let kernel = kernel.filter(Joined::is_one).ok_or(libc::EINVAL)?;
        if !self.has_room_for(2) {
            self.counts.descriptors_missing += 1;
            return Err(libc::ENFILE);
        }
        let id = sockets.engine.socket(SocketKind::Udp, opening.ipv6);
        let id = id.map_err(errno)?;
        let made = self.made_datagrams(sockets, run, id, opening, kernel);
        if made.is_err() {
            sockets.close(id);
        }
        let (name, fd) = made?;
        Ok((Response::Socket(name), Some(fd)))
    }

    fn made_datagrams(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        id: SocketId,
        opening: &Opening,
        kernel: OwnedFd,
    ) -> Result<(Name, OwnedFd), i32> {
        set_all(sockets, id, &opening.options);
        let kernel = Joined::new(kernel);
        match opening.local {
            Some(local) => sockets.engine.bind(id, local).map_err(errno)?,
            None => join_port(sockets, id, &kernel, opening.ipv6)?,
        }
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (ours, theirs) = pair.map_err(rustix::io::Errno::raw_os_error)?;
        let inode = fstat(&theirs).map_or(0, |there| there.st_ino);
        let name = self.table.take().ok_or(libc::ENFILE)?;
        let mut datagrams = Datagrams::new((id, name), opening.ipv6, opening.told, kernel, ours);
        datagrams.look_at_options(sockets);
        datagrams.tell(sockets, &self.table);
        let key = self.datagrams.insert(datagrams);
        let kind = Kind::Datagrams;
        self.names
            .insert(name, Of::Program(run), Place { kind, key }, inode);
        let _ = sockets.engine.set_token(id, OF_DATAGRAMS | key);
        let watched = match (self.datagrams.get(key), &self.poll) {
            (Some(added), Some(poll)) => poll
                .add(added.pair(), Token::new(DATAGRAMS, key), EDGES)
                .and_then(|()| poll.add(added.kernel.fd(), Token::new(JOINED, key), EDGES)),
            _ => Ok(()),
        };
        if let Err(error) = watched {
            self.forget_datagrams(key);
            return Err(error as i32);
        }
        Ok((name, theirs))
    }

    fn datagrams_of(&mut self, run: u64, name: Name) -> Result<u64, i32> {
        let place = self.names.find(run, name)?;
        match place.kind {
            Kind::Datagrams => Ok(place.key),
            Kind::Connection | Kind::Listener | Kind::Moved => Err(libc::EINVAL),
        }
    }

    /// Changes one, whose row is told. What it has sent before goes as it was.
    fn change(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        name: Name,
        change: impl FnOnce(&mut Sockets<'_>, &mut Datagrams) -> Result<(), i32>,
    ) -> Answer {
        let key = self.datagrams_of(run, name)?;
        self.serve_datagrams(sockets, key);
        let datagrams = self.datagrams.get(key).ok_or(libc::ENOTCONN)?;
        change(sockets, datagrams)?;
        datagrams.tell(sockets, &self.table);
        // The kernel's may be its own again.
        datagrams.kernel.ready = true;
        self.serve_datagrams(sockets, key);
        Ok((Response::Done, None))
    }

    pub(super) fn bind_datagrams(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        name: Name,
        (local, everywhere): (Option<SocketAddr>, bool),
    ) -> Answer {
        self.change(sockets, run, name, |sockets, datagrams| {
            match local {
                Some(local) => sockets.engine.bind(datagrams.id, local).map_err(errno)?,
                None => join_port(sockets, datagrams.id, &datagrams.kernel, datagrams.ipv6)?,
            }
            datagrams.told.everywhere = everywhere;
            Ok(())
        })
    }

    pub(super) fn connect_datagrams(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        name: Name,
        (peer, by_kernel): (Option<SocketAddr>, bool),
    ) -> Answer {
        self.change(sockets, run, name, |sockets, datagrams| {
            if !by_kernel {
                let connected = sockets.engine.connect(sockets.now, datagrams.id, peer);
                connected.map_err(errno)?;
            }
            if peer.is_none() || datagrams.told.by_kernel && !by_kernel {
                datagrams.kernel.disconnect();
            }
            datagrams.told.by_kernel = by_kernel;
            Ok(())
        })
    }

    pub(super) fn want_of_datagrams(
        &mut self,
        sockets: &mut Sockets<'_>,
        run: u64,
        name: Name,
        wants: u8,
    ) -> Answer {
        self.change(sockets, run, name, |_, datagrams| {
            datagrams.told.wants = wants;
            Ok(())
        })
    }

    /// An option of a socket was set, of whichever kind.
    pub(super) fn option_was_set(&mut self, sockets: &mut Sockets<'_>, run: u64, name: Name) {
        // One of another kind has nothing to look at.
        let _ = self.change(sockets, run, name, |sockets, datagrams| {
            datagrams.look_at_options(sockets);
            Ok(())
        });
    }

    pub(super) fn kernel_of_datagrams(&mut self, run: u64, name: Name) -> Answer {
        let key = self.datagrams_of(run, name)?;
        let datagrams = self.datagrams.get(key).ok_or(libc::ENOTCONN)?;
        let fd = datagrams.kernel.fd().try_clone();
        let fd = fd.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        Ok((Response::Done, Some(fd)))
    }

    pub(super) fn serve_datagrams(&mut self, sockets: &mut Sockets<'_>, key: u64) {
        let Some(datagrams) = self.datagrams.get(key) else {
            return;
        };
        let then = datagrams.turn(&mut Means {
            sockets,
            table: &self.table,
            piece: &mut self.piece,
            counts: &mut self.counts,
        });
        match then {
            Then::Waits => {}
            Then::Again => self.again.push_back(OF_DATAGRAMS | key),
            Then::Over => {
                sockets.close(datagrams.id);
                self.forget_datagrams(key);
            }
        }
    }

    fn forget_datagrams(&mut self, key: u64) {
        if let Some(datagrams) = self.datagrams.remove(key) {
            if let Some(poll) = &self.poll {
                // Others may have the kernel's socket, too.
                let _ = poll.remove(datagrams.kernel.fd());
            }
            self.forget_name(datagrams.name);
        }
    }
}

/// The kernel's port, in the engine, too.
fn join_port(
    sockets: &mut Sockets<'_>,
    id: SocketId,
    kernel: &Joined,
    ipv6: bool,
) -> Result<(), i32> {
    for _ in 0..TRIES {
        let port = kernel.take_port(ipv6);
        let (port, is_new) = port.map_err(rustix::io::Errno::raw_os_error)?;
        match sockets.engine.take_port(id, port) {
            Err(SocketError::AddressInUse) if is_new => kernel.disconnect(),
            taken => return taken.map_err(errno),
        }
    }
    Err(libc::EADDRINUSE)
}
