//! Feature bits of a network device (virtio 1.3, 5.1.3 and 6) that are offered here, and those that were negotiated.
use crate::ring::Features;
use crate::vhost::RING_PACKED;
use std::fmt;

pub(crate) const CSUM: u64 = 1 << 0;
pub(crate) const GUEST_CSUM: u64 = 1 << 1;
pub(crate) const GUEST_TSO4: u64 = 1 << 7;
pub(crate) const GUEST_TSO6: u64 = 1 << 8;
pub(crate) const HOST_TSO4: u64 = 1 << 11;
pub(crate) const HOST_TSO6: u64 = 1 << 12;
pub(crate) const MRG_RXBUF: u64 = 1 << 15;
const MQ: u64 = 1 << 22;
const INDIRECT: u64 = 1 << 28;
pub(crate) const EVENT_IDX: u64 = 1 << 29;
pub(crate) const VERSION_1: u64 = 1 << 32;

const NAMES: [(u64, &str); 12] = [
    (CSUM, "csum"),
    (GUEST_CSUM, "guest_csum"),
    (GUEST_TSO4, "guest_tso4"),
    (GUEST_TSO6, "guest_tso6"),
    (HOST_TSO4, "host_tso4"),
    (HOST_TSO6, "host_tso6"),
    (MRG_RXBUF, "mrg_rxbuf"),
    (MQ, "mq"),
    (INDIRECT, "indirect_desc"),
    (EVENT_IDX, "event_idx"),
    (VERSION_1, "version_1"),
    (RING_PACKED, "ring_packed"),
];

/// Offloads that the packet port has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortOffload {
    /// None: each frame is complete.
    None,
    /// Checksums.
    Checksums,
    /// Checksums, and segments of TCP.
    Segments,
}

/// Without `event_idx` both ends have flags alone.
pub(crate) fn offered(port: PortOffload, pairs: usize, event_idx: bool) -> u64 {
    let mut bits = VERSION_1 | INDIRECT | MRG_RXBUF | RING_PACKED;
    if event_idx {
        bits |= EVENT_IDX;
    }
    // A checksum that a driver does not want to finish is finished here.
    bits |= GUEST_CSUM;
    if port != PortOffload::None {
        bits |= CSUM;
    }
    if port == PortOffload::Segments {
        bits |= GUEST_TSO4 | GUEST_TSO6 | HOST_TSO4 | HOST_TSO6;
    }
    if pairs > 1 {
        bits |= MQ;
    }
    bits
}

/// Feature bits that both ends have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Negotiated(pub(crate) u64);

impl Negotiated {
    pub(crate) fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }

    pub(crate) fn ring(self) -> Features {
        Features {
            event_idx: self.has(EVENT_IDX),
            indirect: self.has(INDIRECT),
        }
    }

    pub(crate) fn packed(self) -> bool {
        self.has(RING_PACKED)
    }

    /// A received packet may take several chains.
    pub(crate) fn merges(self) -> bool {
        self.has(MRG_RXBUF)
    }

    /// Of the header before each packet (5.1.6): the number of chains is left out of the oldest form.
    pub(crate) fn header_len(self) -> usize {
        if self.has(VERSION_1 | MRG_RXBUF) {
            12
        } else {
            10
        }
    }

    /// The driver finishes a received packet's checksum itself.
    pub(crate) fn guest_checksums(self) -> bool {
        self.has(GUEST_CSUM)
    }

    /// TSO of received packets: of TCP over IPv4, over IPv6.
    pub(crate) fn guest_tso(self) -> (bool, bool) {
        (self.has(GUEST_TSO4), self.has(GUEST_TSO6))
    }

    /// The driver leaves checksums of transmitted packets to the device.
    pub(crate) fn host_checksums(self) -> bool {
        self.has(CSUM)
    }

    /// TSO of transmitted packets: of TCP over IPv4, over IPv6.
    pub(crate) fn host_tso(self) -> (bool, bool) {
        (self.has(HOST_TSO4), self.has(HOST_TSO6))
    }
}

impl fmt::Display for Negotiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = NAMES.iter().filter(|(bit, _)| self.has(*bit));
        let names: Vec<&str> = taken.map(|(_, name)| *name).collect();
        f.write_str(&names.join(" "))
    }
}
