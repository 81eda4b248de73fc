//! Link-layer addresses of neighbours, for ARP and NDISC (RFC 4861, 7.2, 7.3; constants of its section 10).
mod entry;
mod evidence;
mod table;

pub(crate) use evidence::Evidence;
pub(crate) use table::Hop;

use super::outbox::Frame;
use crate::wire::ethernet::Mac;
use crate::{Counters, Ns};
use entry::State;
use std::collections::VecDeque;
use std::net::IpAddr;
use table::Table;

const REACHABLE_TIME: Ns = Ns::from_ms(30_000);
/// A confirmation writes nothing while reachability lasts longer than this: below the shortest REACHABLE_TIME.
const CONFIRM_LEFT: Ns = Ns::from_ms(10_000);
const RETRANS_TIMER: Ns = Ns::from_ms(1_000);
const DELAY_FIRST_PROBE_TIME: Ns = Ns::from_ms(5_000);
const MAX_SOLICITS: u8 = 3;
/// Of all neighbours together; a frame beyond it is dropped.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// A request to be sent: to everybody, or to the one address that is to be confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Solicitation {
    pub target: IpAddr,
    pub unicast: Option<Mac>,
}

#[derive(Debug)]
pub(crate) struct Neighbors {
    table: Table,
    /// At most one for each entry and timer.
    solicitations: VecDeque<Solicitation>,
    /// Frames whose neighbour answered, and those whose neighbour never did.
    pub resolved: Vec<Frame>,
    pub failed: Vec<Frame>,
    waiting_bytes: usize,
    next_due: Option<Ns>,
    /// Of REACHABLE_TIME's randomness.
    random: u64,
}

impl Neighbors {
    pub(crate) fn new(random: u64) -> Neighbors {
        Neighbors {
            table: Table::default(),
            solicitations: VecDeque::new(),
            resolved: Vec::new(),
            failed: Vec::new(),
            waiting_bytes: 0,
            next_due: None,
            random: random | 1,
        }
    }

    /// The address behind `hop`, if it is known still. The fast path of a connection: no look-up.
    pub(crate) fn cached(&mut self, now: Ns, hop: Hop) -> Option<Mac> {
        let index = self.table.index_of(hop)?;
        self.mac(now, index)
    }

    /// The address of `neighbor`; without one it is solicited, and the caller lets the frame [`Neighbors::wait`].
    pub(crate) fn resolve(
        &mut self,
        now: Ns,
        neighbor: IpAddr,
        hop: &mut Hop,
        counters: &mut Counters,
    ) -> Option<Mac> {
        if let Some(index) = self.table.find(neighbor) {
            *hop = self.table.hop(index);
            return self.mac(now, index);
        }
        let waiting = &mut self.waiting_bytes;
        let index = self.table.insert_used(neighbor, counters, |entry| {
            *waiting -= entry.waiting_bytes;
        })?;
        *hop = self.table.hop(index);
        self.solicit(now, index);
        None
    }

    fn mac(&mut self, now: Ns, index: usize) -> Option<Mac> {
        let entry = self.table.entries.get_mut(index)?;
        entry.used = true;
        match entry.state {
            State::Free | State::Incomplete => return None,
            State::Reachable { until } if now < until => {}
            State::Reachable { .. } | State::Stale => {
                let due = now + DELAY_FIRST_PROBE_TIME;
                entry.enter(State::Delay, Some(due));
                self.due_at(due);
            }
            State::Delay | State::Probe => {}
        }
        self.table.entries.get(index).map(|e| e.mac)
    }

    /// Keeps a frame until `hop`'s neighbour answers.
    pub(crate) fn wait(&mut self, hop: Hop, frame: Frame, counters: &mut Counters) {
        let entry = self.table.index_of(hop);
        let entry = entry.and_then(|i| self.table.entries.get_mut(i));
        let room = self.waiting_bytes + frame.bytes.len() <= MAX_WAITING_BYTES;
        match entry {
            Some(entry) if room && entry.state == State::Incomplete => {
                self.waiting_bytes -= entry.waiting_bytes;
                counters.neighbor_queue_drop += entry.wait(frame) as u64;
                self.waiting_bytes += entry.waiting_bytes;
            }
            _ => counters.neighbor_queue_drop += 1,
        }
    }

    /// RFC 4861, 7.3.1: the peer behind `hop` acknowledged something new. Called for each such ACK.
    pub(crate) fn confirm(&mut self, now: Ns, hop: Hop) {
        let Some(index) = self.table.index_of(hop) else {
            return;
        };
        match self.table.entries[index].state {
            State::Reachable { until } if now + CONFIRM_LEFT < until => {}
            State::Free | State::Incomplete => {}
            _ => {
                let until = self.reachable_until(now);
                self.table.entries[index].enter(State::Reachable { until }, None);
            }
        }
    }

    /// RFC 4861, 6.3.2: uniform between a half and one and a half of the base.
    fn reachable_until(&mut self, now: Ns) -> Ns {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let base = REACHABLE_TIME.0;
        now + Ns(base / 2 + self.random % base)
    }

    fn solicit(&mut self, now: Ns, index: usize) {
        let Some(entry) = self.table.entries.get_mut(index) else {
            return;
        };
        let due = now + RETRANS_TIMER;
        entry.probes += 1;
        entry.due = Some(due);
        let solicitation = Solicitation {
            target: entry.address,
            unicast: (entry.state == State::Probe).then_some(entry.mac),
        };
        self.due_at(due);
        // An owner that does not transmit for seconds would let it grow.
        if self.solicitations.len() < table::MAX_ENTRIES {
            self.solicitations.push_back(solicitation);
        }
    }

    pub(crate) fn next_solicitation(&mut self) -> Option<Solicitation> {
        self.solicitations.pop_front()
    }

    pub(crate) fn has_solicitations(&self) -> bool {
        !self.solicitations.is_empty()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting_bytes > 0
    }

    pub(crate) fn poll_at(&self) -> Option<Ns> {
        self.next_due
    }

    fn due_at(&mut self, due: Ns) {
        self.next_due = Some(self.next_due.map_or(due, |d| d.min(due)));
    }

    /// A scan of the table, at most once for each timer.
    pub(crate) fn advance(&mut self, now: Ns, counters: &mut Counters) {
        if self.next_due.is_none_or(|due| due > now) {
            return;
        }
        self.next_due = None;
        for index in 0..self.table.entries.len() {
            match self.table.entries[index].due {
                Some(due) if due <= now => self.timer(now, index, counters),
                Some(due) => self.due_at(due),
                None => {}
            }
        }
    }

    fn timer(&mut self, now: Ns, index: usize, counters: &mut Counters) {
        let entry = &mut self.table.entries[index];
        match entry.state {
            State::Delay => {
                entry.enter(State::Probe, None);
                self.solicit(now, index);
            }
            State::Incomplete | State::Probe if entry.probes < MAX_SOLICITS => {
                self.solicit(now, index);
            }
            State::Incomplete | State::Probe => {
                counters.neighbor_failed += 1;
                self.waiting_bytes -= entry.waiting_bytes;
                self.failed.extend(entry.take_waiting());
                self.table.remove(index);
            }
            State::Free | State::Reachable { .. } | State::Stale => entry.due = None,
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes() + self.waiting_bytes as u64
    }
}

#[cfg(test)]
mod tests;
