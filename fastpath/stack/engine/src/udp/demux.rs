//! Which sockets a datagram is for: three look-ups, whatever the number of sockets.
use crate::wire::flow_hash;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// Our address, the peer's.
    Connected(IpAddr, u16, IpAddr, u16),
    Bound(IpAddr, u16),
    /// The wildcard address of the family.
    Any {
        ipv6: bool,
        port: u16,
    },
}

/// Where a socket is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub local: SocketAddr,
    pub peer: Option<SocketAddr>,
    /// The wildcard is of both families.
    pub both: bool,
}

/// Sockets of one key, the last bound at the end.
#[derive(Debug, Default)]
pub(super) struct Demux {
    sockets: HashMap<Key, Vec<u32>>,
    /// Sockets that are connected to port 0, which stands for every port of the peer (Linux, compute_score).
    to_any_port: usize,
}

fn keys(place: &Place) -> impl Iterator<Item = Key> {
    let (local, port) = (place.local.ip(), place.local.port());
    let any = |ipv6| Key::Any { ipv6, port };
    let keys = match place.peer {
        Some(peer) => [
            Some(Key::Connected(local, port, peer.ip(), peer.port())),
            None,
        ],
        None if !local.is_unspecified() => [Some(Key::Bound(local, port)), None],
        None if place.both => [Some(any(true)), Some(any(false))],
        None => [Some(any(local.is_ipv6())), None],
    };
    keys.into_iter().flatten()
}

impl Demux {
    pub(super) fn insert(&mut self, index: u32, place: &Place) {
        for key in keys(place) {
            self.sockets.entry(key).or_default().push(index);
        }
        self.to_any_port += usize::from(is_to_any_port(place));
    }

    pub(super) fn remove(&mut self, index: u32, place: &Place) {
        self.to_any_port -= usize::from(is_to_any_port(place));
        for key in keys(place) {
            if let Some(group) = self.sockets.get_mut(&key) {
                group.retain(|i| *i != index);
                if group.is_empty() {
                    self.sockets.remove(&key);
                }
            }
        }
    }

    /// A connected socket before one of the address before one of the wildcard (RFC 1122, 4.1.3.5; Linux, compute_score).
    /// Of several the last bound, or by hash where they share the port (`shares`).
    pub(super) fn find(
        &self,
        local: SocketAddr,
        peer: SocketAddr,
        shares: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let group = self
            .candidates(local, peer)
            .find_map(|key| self.sockets.get(&key))?;
        let last = *group.last()?;
        if !shares(last) {
            return Some(last);
        }
        // The high bits: the low ones chose the engine.
        let hash = u64::from(flow_hash(peer, local));
        group
            .get(((hash * group.len() as u64) >> 32) as usize)
            .copied()
    }

    /// All that a datagram to a group is for (RFC 1122, 4.1.3.5 leaves it open; Linux delivers to all).
    pub(super) fn all(&self, local: SocketAddr, peer: SocketAddr) -> Vec<u32> {
        let groups = self
            .candidates(local, peer)
            .filter_map(|key| self.sockets.get(&key));
        groups.flatten().copied().collect()
    }

    fn candidates(&self, local: SocketAddr, peer: SocketAddr) -> impl Iterator<Item = Key> {
        let port = local.port();
        let connected = |peer_port| Key::Connected(local.ip(), port, peer.ip(), peer_port);
        let any_port = (self.to_any_port > 0 && peer.port() != 0).then(|| connected(0));
        [
            Some(connected(peer.port())),
            any_port,
            Some(Key::Bound(local.ip(), port)),
            Some(Key::Any {
                ipv6: local.is_ipv6(),
                port,
            }),
        ]
        .into_iter()
        .flatten()
    }
}

fn is_to_any_port(place: &Place) -> bool {
    place.peer.is_some_and(|peer| peer.port() == 0)
}
