//! One device's IP: what is received is handled here or classified for a transport, and what transports send gets its
//! headers.
//!
//! The engine calls, for each frame, [`Interface::receive`]; to send, it lets a transport write into the slot from
//! [`Interface::header_bytes`] on and calls [`Interface::send`]; when no transport has anything, [`Interface::transmit`]
//! writes what the interface itself has to send (ask it first: answers to neighbours are small and urgent).
use super::addresses::{Addresses, Recipient};
use super::input::IcmpError;
use super::looped::Looped;
use super::neighbors::Neighbors;
use super::outbox::Outbox;
use super::pmtu::PathMtus;
use super::rate_limit::RateLimit;
use super::reassembly::Reassembly;
use crate::config::{Config, ConfigError, Medium, Share};
use crate::frame::{RxMeta, TxFrame};
use crate::wire::ethernet::Mac;
use crate::wire::siphash::SipKey;
use crate::wire::{ethernet, ipv4, ipv6};
use crate::{Counters, Ns, SocketError};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Keys derived from the configuration's seed; TCP's begin at 16.
mod purpose {
    pub const PATH_MTUS: u8 = 0;
    pub const RATE_LIMIT: u8 = 1;
    pub const NEIGHBORS: u8 = 2;
    pub const IDENTIFICATIONS: u8 = 3;
}

#[derive(Debug)]
pub(crate) struct Interface {
    /// `None`: frames are IP packets.
    pub(super) mac: Option<Mac>,
    /// The device's.
    pub(super) mtu: u16,
    pub(super) share: Share,
    pub(super) addresses: Addresses,
    pub(super) neighbors: Neighbors,
    pub(super) outbox: Outbox,
    pub(super) looped: Looped,
    pub(super) reassembly: Reassembly,
    pub(super) path_mtus: PathMtus,
    pub(super) errors: RateLimit,
    /// Addresses that another host used, and when that was answered.
    pub(super) defended: Vec<(Ipv4Addr, Ns)>,
    /// Of the next fragmented packet.
    pub(super) identification: u32,
}

impl Interface {
    /// # Errors
    /// An address, route, prefix, MTU or share of `config` cannot be.
    pub(crate) fn new(config: &Config) -> Result<Interface, ConfigError> {
        let Share { index, of, .. } = config.share;
        if index >= of {
            return Err(ConfigError::Share { index, of });
        }
        let key = |purpose| SipKey::derived(&config.seed, purpose);
        Ok(Interface {
            mac: match config.medium {
                Medium::Ethernet { mac } => Some(Mac(mac)),
                Medium::Ip => None,
            },
            mtu: config.mtu,
            share: config.share,
            addresses: Addresses::new(config)?,
            neighbors: Neighbors::new(key(purpose::NEIGHBORS).k0),
            outbox: Outbox::default(),
            looped: Looped::default(),
            reassembly: Reassembly::default(),
            path_mtus: PathMtus::new(key(purpose::PATH_MTUS)),
            defended: Vec::new(),
            errors: RateLimit::new(key(purpose::RATE_LIMIT)),
            identification: key(purpose::IDENTIFICATIONS).k0 as u32,
        })
    }

    /// Bytes before the transport's header in a slot, without fragment headers.
    pub(crate) fn header_bytes(&self, ipv6: bool) -> usize {
        self.link_bytes()
            + if ipv6 {
                ipv6::HEADER_BYTES
            } else {
                ipv4::HEADER_BYTES
            }
    }

    pub(super) fn link_bytes(&self) -> usize {
        match self.mac {
            Some(_) => ethernet::HEADER_BYTES,
            None => 0,
        }
    }

    /// Of a socket here: one of ours, or of loopback.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        self.addresses.is_local(address)
    }

    /// Broadcast, multicast: what TCP does not talk to.
    pub(crate) fn is_group(&self, address: IpAddr) -> bool {
        Mac::of_multicast(address).is_some()
            || self.addresses.recipient(address) == Recipient::Group
    }

    /// The address of ours that packets to `destination` come from.
    ///
    /// # Errors
    /// NetworkUnreachable: no route, or no address of the family.
    pub(crate) fn source_for(&self, destination: IpAddr) -> Result<IpAddr, SocketError> {
        let unreachable = SocketError::NetworkUnreachable;
        if !self.is_group(destination) && !self.is_local(destination) {
            self.addresses.next_hop(destination).ok_or(unreachable)?;
        }
        self.addresses.source_for(destination).ok_or(unreachable)
    }

    /// Whether datagrams of `peer` to `local` come to this engine, and not to another one of the device.
    pub(crate) fn has_datagrams_of(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        self.share.has_datagrams(peer, local)
    }

    /// Of a packet in fragments.
    pub(crate) fn next_identification(&mut self) -> u32 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    /// The path's MTU in bytes of IP packets: the device's, or what ICMP reported in the last ten minutes.
    pub(crate) fn mtu(&self, now: Ns, destination: IpAddr) -> u16 {
        let known = self.path_mtus.get(now, destination);
        known.map_or(self.mtu, |mtu| mtu.min(self.mtu))
    }

    pub(crate) fn link_mtu(&self) -> u16 {
        self.mtu
    }

    pub(crate) fn set_link_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
    }

    /// Frames wait for a neighbour's address.
    pub(crate) fn has_waiting(&self) -> bool {
        self.neighbors.has_waiting()
    }

    /// After [`IcmpError::mtu`] was checked; returns the path's MTU from now on.
    pub(crate) fn lower_mtu(&mut self, now: Ns, error: &IcmpError) -> u16 {
        let present = self.mtu(now, error.peer);
        match error.mtu {
            Some(mtu) if mtu < present => {
                self.path_mtus.set(now, error.peer, mtu);
                mtu
            }
            _ => present,
        }
    }

    /// Whether [`Interface::transmit`] has something.
    pub(crate) fn has_frames(&self) -> bool {
        !self.outbox.is_empty() || self.neighbors.has_solicitations()
    }

    /// Writes one of the interface's own frames.
    pub(crate) fn transmit(&mut self, slot: &mut [u8], counters: &mut Counters) -> Option<TxFrame> {
        while let Some(popped) = self.outbox.pop(slot) {
            match popped {
                Ok(frame) => return Some(frame),
                Err(()) => counters.ip_out_discards += 1,
            }
        }
        while let Some(solicitation) = self.neighbors.next_solicitation() {
            let frame = self.solicit(solicitation, slot, counters);
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// Packets to addresses of ours, which are not received yet.
    pub(crate) fn looped(&self) -> usize {
        self.looped.len()
    }

    /// Nothing more is to be sent until some of them are received.
    pub(crate) fn has_looped_enough(&self) -> bool {
        self.looped.is_enough()
    }

    /// For [`Interface::receive_looped`].
    pub(crate) fn next_looped(&mut self) -> Option<(Vec<u8>, RxMeta)> {
        self.looped.pop()
    }

    pub(crate) fn poll_at(&self) -> Option<Ns> {
        let due = [self.neighbors.poll_at(), self.reassembly.poll_at()];
        due.into_iter().flatten().min()
    }

    /// Runs the timers that are due. Then [`Interface::next_unreachable`] may have something.
    pub(crate) fn advance(&mut self, now: Ns, counters: &mut Counters) {
        self.neighbors.advance(now, counters);
        self.expire_fragments(now, counters);
    }

    /// A packet of ours whose neighbour never answered, as an ICMP host unreachable would say it.
    pub(crate) fn next_unreachable(&mut self) -> Option<IcmpError> {
        while let Some(frame) = self.neighbors.failed.pop() {
            let packet = frame.bytes.get(self.link_bytes()..).unwrap_or_default();
            if let Some(error) = super::quoted::error(packet, SocketError::HostUnreachable) {
                return Some(error);
            }
        }
        None
    }

    /// Of tables and queues.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.neighbors.memory_bytes()
            + self.outbox.memory_bytes()
            + self.looped.memory_bytes()
            + self.reassembly.memory_bytes()
            + self.path_mtus.memory_bytes()
    }
}
