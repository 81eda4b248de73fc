//! Listening sockets, and which of them a SYN is for.
use super::options::SocketOptions;
use super::tuple::Address;
use crate::{Ns, SocketId};
use std::collections::{HashMap, VecDeque};

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: SocketId,
    pub(crate) options: SocketOptions,
    pub(crate) ipv6: bool,
    pub(crate) address: Address,
    pub(crate) port: u16,
    pub(crate) backlog: u32,
    /// Slots of connections that wait for accept.
    pub(crate) accepts: VecDeque<u32>,
    /// Requests in the SYN queue.
    pub(crate) requests: u32,
    /// When a cookie was sent: ACKs without a request are checked only shortly after.
    pub(crate) cookie_sent: Option<Ns>,
}

impl Listener {
    /// Linux sk_acceptq_is_full: one more than the backlog.
    pub(crate) fn is_full(&self) -> bool {
        self.accepts.len() as u32 > self.backlog
    }

    /// inet_csk_reqsk_queue_is_full.
    pub(crate) fn has_many_requests(&self, syn_backlog: u32) -> bool {
        self.requests > self.backlog.min(syn_backlog)
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: u32,
    address: Address,
    ipv6: bool,
    v6_only: bool,
}

impl Entry {
    /// How well it fits; more is better (Linux compute_score).
    fn score(&self, local: Address) -> Option<u8> {
        if self.address == local {
            return Some(3);
        }
        if self.address != Address::ANY {
            return None;
        }
        match (self.ipv6, local.is_v4()) {
            (false, true) | (true, false) => Some(2),
            (true, true) => (!self.v6_only).then_some(1),
            (false, false) => None,
        }
    }
}

/// By port.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    ports: HashMap<u16, Vec<Entry>>,
}

impl Listeners {
    pub(crate) fn insert(
        &mut self,
        slot: u32,
        address: Address,
        port: u16,
        ipv6: bool,
        v6_only: bool,
    ) {
        let entry = Entry {
            slot,
            address,
            ipv6,
            v6_only,
        };
        self.ports.entry(port).or_default().push(entry);
    }

    pub(crate) fn remove(&mut self, slot: u32, port: u16) {
        if let Some(entries) = self.ports.get_mut(&port) {
            entries.retain(|e| e.slot != slot);
            if entries.is_empty() {
                self.ports.remove(&port);
            }
        }
    }

    /// The best one. Of a SO_REUSEPORT group, whose sockets fit equally well, the one that `hash` chooses: the same for the same peer
    /// while the group does not change.
    pub(crate) fn find(&self, local: Address, port: u16, hash: u32) -> Option<u32> {
        let entries = self.ports.get(&port)?;
        let best = entries.iter().filter_map(|e| e.score(local)).max()?;
        let fits = |e: &&Entry| e.score(local) == Some(best);
        let group = entries.iter().filter(fits).count() as u64;
        let chosen = ((u64::from(hash) * group) >> 32) as usize;
        entries.iter().filter(fits).nth(chosen).map(|e| e.slot)
    }
}
