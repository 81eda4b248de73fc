//! The tables of all UDP sockets.
use super::datagrams::Datagrams;
use super::demux::{Demux, Place};
use super::options::UdpOptions;
use super::queued::Queued;
use super::socket::Socket;
use crate::buffer::Pool;
use crate::config::SocketBuffers;
use crate::ip::Interface;
use crate::wire::siphash::SipKey;
use crate::{Config, Counters, Ns, SocketError, SocketId};
use std::collections::HashMap;

/// What the layer borrows from the engine for one call.
pub(crate) struct Lower<'a> {
    pub now: Ns,
    pub ip: &'a mut Interface,
    pub counters: &'a mut Counters,
    pub pool: &'a mut Pool,
}

#[derive(Debug)]
pub(crate) struct Udp {
    pub(super) sockets: Vec<Option<Box<Socket>>>,
    free: Vec<u32>,
    pub(super) demux: Demux,
    /// All sockets of a local port, connected ones, too.
    pub(super) ports: HashMap<u16, Vec<u32>>,
    /// In the order of the calls, whoever made them.
    pub(super) outgoing: Datagrams<Queued>,
    /// Sockets whose readiness may be new.
    pub(super) changed: Vec<u32>,
    pub(super) ephemeral_ports: (u16, u16),
    pub(super) checksum_offload: bool,
    pub(super) buffers: SocketBuffers,
    pub(super) key: SipKey,
    /// Ephemeral ports that were looked for.
    pub(super) tries: u64,
    serial: u64,
}

impl Udp {
    pub(crate) fn new(config: &Config) -> Udp {
        Udp {
            sockets: Vec::new(),
            free: Vec::new(),
            demux: Demux::default(),
            ports: HashMap::new(),
            outgoing: Datagrams::default(),
            changed: Vec::new(),
            ephemeral_ports: config.ephemeral_ports,
            checksum_offload: config.offload.checksum,
            buffers: config.buffers,
            key: SipKey::derived(&config.seed, 8),
            tries: 0,
            serial: 0,
        }
    }

    /// The index by which all calls name the socket; `id` is what its frames carry.
    pub(crate) fn open(&mut self, id: SocketId, ipv6: bool) -> u32 {
        self.serial += 1;
        let options = UdpOptions::new(&self.buffers);
        let socket = Some(Box::new(Socket::new(id, self.serial, ipv6, options)));
        match self.free.pop() {
            Some(index) => {
                self.sockets[index as usize] = socket;
                index
            }
            None => {
                self.sockets.push(socket);
                (self.sockets.len() - 1) as u32
            }
        }
    }

    /// What it has sent goes out; what it has not read is gone.
    pub(crate) fn close(&mut self, index: u32, pool: &mut Pool) {
        self.unbind(index);
        let place = self.sockets.get_mut(index as usize);
        if let Some(mut socket) = place.and_then(Option::take) {
            socket.received.clear(pool);
            self.free.push(index);
        }
    }

    /// # Errors
    /// BadSocket.
    pub(super) fn get(&self, index: u32) -> Result<&Socket, SocketError> {
        let socket = self.sockets.get(index as usize).and_then(|s| s.as_deref());
        socket.ok_or(SocketError::BadSocket)
    }

    /// # Errors
    /// BadSocket.
    pub(super) fn get_mut(&mut self, index: u32) -> Result<&mut Socket, SocketError> {
        let socket = self.sockets.get_mut(index as usize);
        socket
            .and_then(|s| s.as_deref_mut())
            .ok_or(SocketError::BadSocket)
    }

    pub(super) fn place(socket: &Socket) -> Place {
        Place {
            local: socket.local,
            peer: socket.peer,
            both: socket.ipv6 && !socket.options.v6_only,
        }
    }

    /// Takes the socket off its port.
    pub(super) fn unbind(&mut self, index: u32) {
        let Ok(socket) = self.get(index) else { return };
        let (place, port) = (Udp::place(socket), socket.local.port());
        if port == 0 {
            return;
        }
        self.demux.remove(index, &place);
        if let Some(sockets) = self.ports.get_mut(&port) {
            sockets.retain(|i| *i != index);
            if sockets.is_empty() {
                self.ports.remove(&port);
            }
        }
    }

    /// A socket whose readiness may be new since the last call.
    pub(crate) fn next_changed(&mut self) -> Option<SocketId> {
        while let Some(index) = self.changed.pop() {
            if let Ok(socket) = self.get(index) {
                return Some(socket.id);
            }
        }
        None
    }

    pub(super) fn change(&mut self, index: u32) {
        if self.changed.last() != Some(&index) {
            self.changed.push(index);
        }
    }

    pub(crate) fn id(&self, index: u32) -> Option<SocketId> {
        self.get(index).ok().map(|socket| socket.id)
    }

    /// Each socket's index.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let sockets = (0u32..).zip(&self.sockets);
        sockets.filter_map(|(index, socket)| socket.as_ref().map(|_| index))
    }

    /// Of tables, without buffers.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let sockets = self.sockets.len() - self.free.len();
        let tables = self.sockets.capacity() * size_of::<Option<Box<Socket>>>();
        (sockets * size_of::<Socket>() + tables + self.free.capacity() * 4) as u64
    }
}
