//! What the path says: its MTU (RFC 1191, RFC 8201).
use super::state::Connection;
use crate::Ns;
use crate::tcp::seq::Seq;

impl Connection {
    /// Whether an ICMP error may be about a segment of ours (RFC 5927, 4.1).
    pub(crate) fn is_in_flight(&self, seq: Seq) -> bool {
        seq.from(self.sender.snd_una()) && seq.until(self.sender.snd_nxt())
    }

    /// Segments were dropped for their size: smaller ones go out at once.
    pub(crate) fn lower_mtu(&mut self, now: Ns, mtu: u16) {
        if mtu < self.mtu {
            self.set_mtu(now, mtu);
        }
    }

    /// Where it is lower, larger segments are taken for dropped: those that had left the device before come twice.
    pub(crate) fn set_mtu(&mut self, now: Ns, mtu: u16) {
        let lowered = mtu < self.mtu;
        self.mtu = mtu;
        self.sync_mss(now, lowered);
    }
}
