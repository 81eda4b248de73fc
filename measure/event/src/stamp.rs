//! The fate of one generated packet: scheduled, sent and arrival time.
//! Stamps are on the clock of the probes, so that a packet and the function runs that handled it
//! can be laid side by side.
use crate::Tsc;
use alloc::string::String;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StreamIx(pub u32);

/// A sender and the receiver that its packets are matched at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEntry {
    pub ix: StreamIx,
    /// Where packets leave and arrive, as the user named it: `af_packet:veth0`.
    pub sender: String,
    pub receiver: String,
    /// What was sent, for people: `64 B UDP over IPv4, 1000 flows, Poisson, 100,000/s`.
    pub traffic: String,
}

crate::flags! {
    /// What was out of order with a packet. Values are part of the file format.
    pub struct StampFlags(u8);
    LATE = 0 "late" "Sent while the generator was behind its schedule: latency from the scheduled time says as much of the generator as of what is measured.",
    DUPLICATE = 1 "duplicate" "A further arrival of a packet that had arrived before; `received` is of this one.",
    REORDERED = 2 "reordered" "A packet with a higher sequence number of the same flow arrived before it.",
    CORRUPTED = 3 "corrupted" "Arrived with another payload than was sent; sequence number and flow were readable.",
}

impl StampFlags {
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// `None` when there are bits without a meaning.
    pub const fn from_bits(bits: u8) -> Option<StampFlags> {
        match bits {
            0..=15 => Some(StampFlags(bits)),
            _ => None,
        }
    }
}

/// One packet, or one further arrival of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Counted from 0 over the whole stream.
    pub seq: u64,
    /// Index of the flow within the stream.
    pub flow: u32,
    /// Of the Ethernet frame, without FCS, in bytes.
    pub len: u32,
    /// When the schedule wanted it to leave: what an open loop counts latency from.
    pub intended: Tsc,
    /// When it was given to the port.
    pub sent: Tsc,
    /// `None`: it did not arrive before the receiver gave up waiting.
    pub received: Option<Tsc>,
    pub flags: StampFlags,
}

impl Stamp {
    /// From the intended time to arrival, in ticks; `None` of a lost packet.
    pub fn latency_ticks(&self) -> Option<i64> {
        self.received.map(|received| received - self.intended)
    }

    /// From leaving to arrival, in ticks: without what the generator itself was late.
    pub fn transit_ticks(&self) -> Option<i64> {
        self.received.map(|received| received - self.sent)
    }
}

/// Counts over stamps. `sent` and `lost` are packets, `duplicate` further arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StampCounts {
    pub sent: u64,
    pub received: u64,
    pub lost: u64,
    pub late: u64,
    pub duplicate: u64,
    pub reordered: u64,
    pub corrupted: u64,
}

impl StampCounts {
    pub fn add(&mut self, stamp: &Stamp) {
        let has = |flag| u64::from(stamp.flags.contains(flag));
        self.duplicate += has(StampFlags::DUPLICATE);
        self.corrupted += has(StampFlags::CORRUPTED);
        if stamp.flags.contains(StampFlags::DUPLICATE) {
            return;
        }
        self.sent += 1;
        self.received += u64::from(stamp.received.is_some());
        self.lost += u64::from(stamp.received.is_none());
        self.late += has(StampFlags::LATE);
        self.reordered += has(StampFlags::REORDERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn flags_have_names() {
        assert_eq!(StampFlags::NONE.to_string(), "-");
        let flags = StampFlags::LATE | StampFlags::CORRUPTED;
        assert_eq!(flags.to_string(), "late+corrupted");
        assert_eq!(StampFlags::from_bits(flags.bits()), Some(flags));
        assert_eq!(StampFlags::from_bits(16), None);
    }

    #[test]
    fn every_packet_is_counted_once_and_every_arrival_somewhere() {
        let first = Stamp {
            received: Some(Tsc(7)),
            ..Stamp::default()
        };
        let again = Stamp {
            flags: StampFlags::DUPLICATE | StampFlags::REORDERED,
            ..first
        };
        let lost = Stamp {
            seq: 1,
            flags: StampFlags::LATE,
            ..Stamp::default()
        };
        let mut counts = StampCounts::default();
        [first, again, lost].iter().for_each(|s| counts.add(s));
        let expected = StampCounts {
            sent: 2,
            received: 1,
            lost: 1,
            late: 1,
            duplicate: 1,
            reordered: 0,
            corrupted: 0,
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn latency_counts_from_the_intended_time() {
        let stamp = Stamp {
            intended: Tsc(100),
            sent: Tsc(130),
            received: Some(Tsc(150)),
            ..Stamp::default()
        };
        assert_eq!(
            (stamp.latency_ticks(), stamp.transit_ticks()),
            (Some(50), Some(20))
        );
        let lost = Stamp {
            received: None,
            ..stamp
        };
        assert_eq!((lost.latency_ticks(), lost.transit_ticks()), (None, None));
    }
}
