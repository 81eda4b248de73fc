//! Packets of which not all fragments came (RFC 791, 3.2; RFC 8200, 4.5). Overlaps are refused in both families (RFC 5722).
//!
//! Memory is bounded in three ways: bytes of all, packets of all, packets of one source. What is beyond a bound pushes out
//! the oldest, as a complete packet needs its place for the shortest time.
use crate::Ns;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Linux: ipfrag_high_thresh.
const MAX_BYTES: usize = 4 << 20;
const MAX_PACKETS: usize = 1024;
const MAX_PACKETS_OF_SOURCE: usize = 64;
/// 64 KiB come in 45 fragments over Ethernet, in 119 over the smallest MTU of RFC 1122.
const MAX_FRAGMENTS: usize = 128;
/// What a fragment or a packet counts besides its bytes.
const OVERHEAD_BYTES: usize = 64;

/// A fragment without its headers. IPv6 has no protocol in its key: 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub identification: u32,
    pub key_protocol: u8,
    pub protocol: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    /// In bytes.
    pub offset: u16,
    pub more: bool,
    pub bytes: &'a [u8],
}

/// A packet, or what there is of it.
#[derive(Debug)]
pub(super) struct Partial {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub identification: u32,
    key_protocol: u8,
    /// The first fragment's, as the other two.
    pub protocol: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    serial: u64,
    until: Ns,
    /// Of all fragments, once the last is there.
    total: Option<u32>,
    received: u32,
    /// By offset, disjoint.
    fragments: Vec<(u16, Vec<u8>)>,
    /// Fragments overlapped: it stays without bytes until its time is over, so that those to come are dropped, too.
    refused: bool,
}

#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Of each source, the oldest first.
    sources: HashMap<IpAddr, Vec<Partial>>,
    /// All, the oldest first, each family apart: its time-out is its own. Some are gone.
    ages: [VecDeque<(Ns, IpAddr, u64)>; 2],
    packets: usize,
    bytes: usize,
    serial: u64,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Incomplete,
    /// A fragment that was there already.
    Duplicate,
    Complete(Partial),
    /// Fragments overlap or contradict each other, or there are too many: the packet is lost.
    Refused,
}

impl Partial {
    /// The bytes after the header, as far as the fragments are adjacent.
    pub(super) fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.received as usize);
        for (offset, bytes) in &self.fragments {
            if usize::from(*offset) == payload.len() {
                payload.extend_from_slice(bytes);
            }
        }
        payload
    }

    /// The fragment at offset 0.
    pub(super) fn first(&self) -> Option<&[u8]> {
        let first = self.fragments.first().filter(|(offset, _)| *offset == 0);
        first.map(|(_, bytes)| bytes.as_slice())
    }

    fn new(fragment: &Fragment, until: Ns, serial: u64) -> Partial {
        Partial {
            source: fragment.source,
            destination: fragment.destination,
            identification: fragment.identification,
            key_protocol: fragment.key_protocol,
            protocol: fragment.protocol,
            hop_limit: fragment.hop_limit,
            traffic_class: fragment.traffic_class,
            serial,
            until,
            total: None,
            received: 0,
            fragments: Vec::new(),
            refused: false,
        }
    }

    fn is_of(&self, fragment: &Fragment) -> bool {
        self.identification == fragment.identification
            && self.key_protocol == fragment.key_protocol
            && self.destination == fragment.destination
    }

    fn memory_bytes(&self) -> usize {
        OVERHEAD_BYTES * (self.fragments.len() + 4) + self.received as usize
    }

    fn add(&mut self, fragment: &Fragment) -> Added {
        let start = u32::from(fragment.offset);
        let end = start + fragment.bytes.len() as u32;
        let at = self
            .fragments
            .partition_point(|(o, _)| *o < fragment.offset);
        let next = self.fragments.get(at);
        let is_known =
            |(o, b): &&(u16, Vec<u8>)| *o == fragment.offset && b.len() == fragment.bytes.len();
        if next.filter(is_known).is_some() {
            return Added::Known;
        }
        let before = at.checked_sub(1).and_then(|i| self.fragments.get(i));
        let overlaps = before.is_some_and(|(o, b)| u32::from(*o) + b.len() as u32 > start)
            || next.is_some_and(|(o, _)| u32::from(*o) < end);
        let contradicts = match self.total {
            Some(total) => end > total || (!fragment.more && end != total),
            None => !fragment.more && next.is_some(),
        };
        if overlaps || contradicts || self.fragments.len() == MAX_FRAGMENTS {
            return Added::Refused;
        }
        if !fragment.more {
            self.total = Some(end);
        }
        if start == 0 {
            self.protocol = fragment.protocol;
            self.hop_limit = fragment.hop_limit;
            self.traffic_class = fragment.traffic_class;
        }
        self.received += fragment.bytes.len() as u32;
        let bytes = fragment.bytes.to_vec();
        self.fragments.insert(at, (fragment.offset, bytes));
        Added::New
    }
}

enum Added {
    New,
    Known,
    Refused,
}

impl Reassembly {
    /// `timeout` is the family's. The second value: packets that were pushed out.
    pub(super) fn add(&mut self, now: Ns, timeout: Ns, fragment: &Fragment) -> (Outcome, u64) {
        let evicted = self.make_room(fragment);
        let index = self.find_or_insert(now, timeout, fragment);
        let Some(partials) = self.sources.get_mut(&fragment.source) else {
            return (Outcome::Refused, evicted);
        };
        let partial = &mut partials[index];
        if partial.refused {
            return (Outcome::Refused, evicted);
        }
        self.bytes -= partial.memory_bytes();
        let outcome = match partial.add(fragment) {
            Added::Known => Outcome::Duplicate,
            Added::Refused => {
                partial.refused = true;
                partial.fragments = Vec::new();
                partial.received = 0;
                Outcome::Refused
            }
            Added::New if partial.total == Some(partial.received) => {
                let partial = partials.remove(index);
                self.packets -= 1;
                if partials.is_empty() {
                    self.sources.remove(&fragment.source);
                }
                return (Outcome::Complete(partial), evicted);
            }
            Added::New => Outcome::Incomplete,
        };
        self.bytes += partial.memory_bytes();
        (outcome, evicted)
    }

    fn find_or_insert(&mut self, now: Ns, timeout: Ns, fragment: &Fragment) -> usize {
        let partials = self.sources.entry(fragment.source).or_default();
        if let Some(index) = partials.iter().position(|p| p.is_of(fragment)) {
            return index;
        }
        self.serial += 1;
        let partial = Partial::new(fragment, now + timeout, self.serial);
        self.packets += 1;
        self.bytes += partial.memory_bytes();
        let age = (partial.until, partial.source, partial.serial);
        partials.push(partial);
        let index = partials.len() - 1;
        let ages = &mut self.ages[usize::from(fragment.source.is_ipv6())];
        ages.push_back(age);
        if ages.len() > 4 * MAX_PACKETS {
            let sources = &self.sources;
            ages.retain(|age| is_there(sources, age));
        }
        index
    }

    /// Pushes out old packets until the fragment and a new packet are within the bounds.
    fn make_room(&mut self, fragment: &Fragment) -> u64 {
        let mut evicted = 0;
        let of_source = self.sources.get(&fragment.source);
        let is_new = !of_source.is_some_and(|p| p.iter().any(|p| p.is_of(fragment)));
        if is_new
            && let Some(partials) = of_source
            && partials.len() >= MAX_PACKETS_OF_SOURCE
        {
            let serial = partials[0].serial;
            self.remove(fragment.source, serial);
            evicted += 1;
        }
        let bytes = fragment.bytes.len() + 8 * OVERHEAD_BYTES;
        while self.bytes + bytes > MAX_BYTES || (is_new && self.packets >= MAX_PACKETS) {
            let fronts = self.ages.iter().enumerate();
            let fronts = fronts.filter_map(|(i, ages)| ages.front().map(|age| (*age, i)));
            let Some(((_, source, serial), family)) = fronts.min_by_key(|((_, _, s), _)| *s) else {
                break;
            };
            self.ages[family].pop_front();
            evicted += u64::from(self.remove(source, serial).is_some());
        }
        evicted
    }

    fn remove(&mut self, source: IpAddr, serial: u64) -> Option<Partial> {
        let partials = self.sources.get_mut(&source)?;
        let index = partials.iter().position(|p| p.serial == serial)?;
        let partial = partials.remove(index);
        if partials.is_empty() {
            self.sources.remove(&source);
        }
        self.packets -= 1;
        self.bytes -= partial.memory_bytes();
        Some(partial)
    }

    pub(super) fn poll_at(&self) -> Option<Ns> {
        let fronts = self.ages.iter().filter_map(|ages| ages.front());
        fronts.map(|(until, ..)| *until).min()
    }

    /// A packet whose time is over and that was not refused before.
    pub(super) fn expired(&mut self, now: Ns) -> Option<Partial> {
        for family in 0..self.ages.len() {
            while let Some((until, source, serial)) = self.ages[family].front().copied()
                && until <= now
            {
                self.ages[family].pop_front();
                match self.remove(source, serial) {
                    Some(partial) if !partial.refused => return Some(partial),
                    _ => {}
                }
            }
        }
        None
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let ages: usize = self.ages.iter().map(VecDeque::capacity).sum();
        (self.bytes + ages * size_of::<(Ns, IpAddr, u64)>()) as u64
    }
}

fn is_there(sources: &HashMap<IpAddr, Vec<Partial>>, age: &(Ns, IpAddr, u64)) -> bool {
    let (_, source, serial) = age;
    let partials = sources.get(source);
    partials.is_some_and(|p| p.iter().any(|p| p.serial == *serial))
}

#[cfg(test)]
mod tests;
