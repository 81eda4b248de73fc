//! What received messages tell of a neighbour's link-layer address.
use super::entry::State;
use super::{Neighbors, RETRANS_TIMER};
use crate::wire::ethernet::Mac;
use crate::{Counters, Ns};
use std::net::IpAddr;

/// A second address for a neighbour is not believed before so much time since the first (Linux, locktime): of two that
/// answer for one address the first counts, and a forged answer cannot push out the real one at once.
const LOCK_TIME: Ns = RETRANS_TIMER;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// It wants to send to us: an ARP request for our address, a solicitation.
    Wants,
    /// It answers, or announces itself.
    Answers {
        /// The message says that we solicited it; it counts only where we did.
        solicited: bool,
        /// RFC 4861, 4.4, the override flag. ARP has none: set.
        overrides: bool,
    },
}

impl Neighbors {
    /// RFC 826; RFC 4861, 7.2.3 and 7.2.5.
    pub(crate) fn learn(
        &mut self,
        now: Ns,
        address: IpAddr,
        mac: Mac,
        evidence: Evidence,
        counters: &mut Counters,
    ) {
        let Some(index) = self.table.find(address) else {
            // An answer to nothing makes no entry.
            if evidence == Evidence::Wants
                && let Some(index) = self.table.insert_learned(address, counters)
            {
                let entry = &mut self.table.entries[index];
                (entry.mac, entry.updated) = (mac, now);
                entry.enter(State::Stale, None);
            }
            return;
        };
        let until = self.reachable_until(now);
        let entry = &mut self.table.entries[index];
        let asked = matches!(entry.state, State::Incomplete | State::Probe);
        let (solicited, overrides) = match evidence {
            Evidence::Wants => (false, true),
            Evidence::Answers {
                solicited,
                overrides,
            } => (solicited && asked, overrides),
        };
        let changed = entry.has_mac() && entry.mac != mac;
        if changed && (!overrides || now < entry.updated + LOCK_TIME) {
            counters.neighbor_conflicts += 1;
            if let State::Reachable { .. } = entry.state {
                entry.enter(State::Stale, None);
            }
            return;
        }
        if changed || !entry.has_mac() {
            entry.updated = now;
        }
        entry.mac = mac;
        match entry.state {
            _ if solicited => entry.enter(State::Reachable { until }, None),
            State::Incomplete => entry.enter(State::Stale, None),
            _ if changed => entry.enter(State::Stale, None),
            _ => {}
        }
        self.waiting_bytes -= entry.waiting_bytes;
        for mut frame in entry.take_waiting() {
            if let Some(destination) = frame.bytes.first_chunk_mut::<6>() {
                *destination = mac.0;
            }
            self.resolved.push(frame);
        }
    }

    /// An advertisement without an address (RFC 4861, 4.4): it is there still.
    pub(crate) fn confirm_solicited(&mut self, now: Ns, address: IpAddr) {
        let until = self.reachable_until(now);
        if let Some(index) = self.table.find(address)
            && let entry = &mut self.table.entries[index]
            && entry.state == State::Probe
        {
            entry.enter(State::Reachable { until }, None);
        }
    }
}
