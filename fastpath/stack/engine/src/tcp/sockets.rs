//! The table that [`SocketId`]s name, and the queue of their events.
use super::connecting::Connecting;
use super::connection::Connection;
use super::listener::Listener;
use super::options::SocketOptions;
use super::tuple::Address;
use crate::{SocketError, SocketId};
use std::collections::VecDeque;

/// A TCP socket that does not connect or listen.
#[derive(Debug)]
pub(crate) struct Idle {
    pub(crate) ipv6: bool,
    pub(crate) options: SocketOptions,
    pub(crate) bound: Option<(Address, u16)>,
    pub(crate) error: Option<SocketError>,
    /// An attempt to connect failed, which the next connect tells.
    pub(crate) failed: bool,
}

#[derive(Debug)]
pub(crate) enum Socket {
    Idle(Box<Idle>),
    Listener(Box<Listener>),
    Connecting(Box<Connecting>),
    Connection(Box<Connection>),
    /// Of the UDP layer's table.
    Udp(u32),
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    /// Its id is valid: it was neither closed nor waits to be accepted.
    open: bool,
    has_event: bool,
    ipv6: bool,
    token: u64,
    socket: Option<Socket>,
}

#[derive(Debug)]
pub(crate) struct Sockets {
    slots: Vec<Slot>,
    free: Vec<u32>,
    events: VecDeque<u32>,
    max: u32,
}

impl Sockets {
    pub(crate) fn new(max: u32) -> Sockets {
        Sockets {
            slots: Vec::new(),
            free: Vec::new(),
            events: VecDeque::new(),
            max: max.min(1 << 30),
        }
    }

    /// Of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A slot for `socket`; `None`: all are taken. It is not open yet.
    pub(crate) fn insert(&mut self, socket: Socket, ipv6: bool) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < self.max as usize => {
                self.slots.push(Slot::default());
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let slot = self.slots.get_mut(index as usize)?;
        slot.ipv6 = ipv6;
        slot.socket = Some(socket);
        Some(index)
    }

    pub(crate) fn open(&mut self, index: u32) -> SocketId {
        let mut generation = 0;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.open = true;
            slot.token = 0;
            generation = slot.generation;
        }
        SocketId {
            slot: index,
            generation,
        }
    }

    /// The id is no longer valid; the slot stays until it is freed.
    pub(crate) fn shut(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.open = false;
            slot.generation = slot.generation.wrapping_add(1);
        }
    }

    pub(crate) fn free(&mut self, index: u32) -> Option<Socket> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.open {
            slot.open = false;
            slot.generation = slot.generation.wrapping_add(1);
        }
        let socket = slot.socket.take()?;
        self.free.push(index);
        Some(socket)
    }

    /// # Errors
    /// BadSocket.
    pub(crate) fn index(&self, id: SocketId) -> Result<u32, SocketError> {
        let slot = self.slots.get(id.slot as usize);
        slot.filter(|s| s.open && s.generation == id.generation)
            .map(|_| id.slot)
            .ok_or(SocketError::BadSocket)
    }

    /// The id of an open socket.
    pub(crate) fn id(&self, index: u32) -> Option<SocketId> {
        let slot = self.slots.get(index as usize).filter(|s| s.open)?;
        Some(SocketId {
            slot: index,
            generation: slot.generation,
        })
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Socket> {
        self.slots.get(index as usize)?.socket.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Socket> {
        self.slots.get_mut(index as usize)?.socket.as_mut()
    }

    pub(crate) fn put(&mut self, index: u32, socket: Socket) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.socket = Some(socket);
        }
    }

    pub(crate) fn connection(&self, index: u32) -> Option<&Connection> {
        match self.get(index) {
            Some(Socket::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    pub(crate) fn connection_mut(&mut self, index: u32) -> Option<&mut Connection> {
        match self.get_mut(index) {
            Some(Socket::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    pub(crate) fn listener_mut(&mut self, index: u32) -> Option<&mut Listener> {
        match self.get_mut(index) {
            Some(Socket::Listener(listener)) => Some(listener),
            _ => None,
        }
    }

    pub(crate) fn is_ipv6(&self, index: u32) -> bool {
        self.slots.get(index as usize).is_some_and(|s| s.ipv6)
    }

    pub(crate) fn token(&self, index: u32) -> u64 {
        self.slots.get(index as usize).map_or(0, |s| s.token)
    }

    pub(crate) fn set_token(&mut self, index: u32, token: u64) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.token = token;
        }
    }

    /// Something happened; merged with what was not drained.
    pub(crate) fn event(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index as usize)
            && slot.open
            && !slot.has_event
        {
            slot.has_event = true;
            self.events.push_back(index);
        }
    }

    /// The oldest event of a socket that is still open.
    pub(crate) fn next_event(&mut self) -> Option<u32> {
        while let Some(index) = self.events.pop_front() {
            if let Some(slot) = self.slots.get_mut(index as usize) {
                slot.has_event = false;
                if slot.open {
                    return Some(index);
                }
            }
        }
        None
    }

    /// All are below.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Socket)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(index, slot)| Some((index, slot.socket.as_ref()?)))
    }

    /// Of the table and what it holds, without buffers.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let of = |socket: &Socket| match socket {
            Socket::Idle(_) => size_of::<Idle>(),
            Socket::Listener(_) => size_of::<Listener>(),
            Socket::Connecting(_) => size_of::<Connecting>(),
            Socket::Connection(_) => size_of::<Connection>(),
            Socket::Udp(_) => 0,
        };
        let held: usize = self.iter().map(|(_, socket)| of(socket)).sum();
        let tables = self.slots.capacity() * size_of::<Slot>()
            + (self.free.capacity() + self.events.capacity()) * 4;
        (held + tables) as u64
    }
}
