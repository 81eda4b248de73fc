//! Latency of generated packets, from their stamps.
use crate::distribution::Distribution;
use hopscope_event::{Stamp, StampCounts, StampFlags, StreamIx};

/// Bounded statistics over the packets of one stream. Ticks.
#[derive(Debug, Clone)]
pub struct Packets {
    pub stream: StreamIx,
    pub counts: StampCounts,
    /// Rows that the generator had to drop: these packets are in no count here.
    pub unwritten: u64,
    /// From the time each packet should have left. First arrivals only.
    pub latency: Distribution,
    /// From the time each packet left.
    pub transit: Distribution,
}

impl Packets {
    pub fn new(stream: StreamIx) -> Packets {
        Packets {
            stream,
            counts: StampCounts::default(),
            unwritten: 0,
            latency: Distribution::default(),
            transit: Distribution::default(),
        }
    }

    pub fn add(&mut self, stamp: &Stamp) {
        self.counts.add(stamp);
        if stamp.flags.contains(StampFlags::DUPLICATE) {
            return;
        }
        if let (Some(latency), Some(transit)) = (stamp.latency_ticks(), stamp.transit_ticks()) {
            self.latency.record(latency);
            self.transit.record(transit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quantile;
    use hopscope_event::Tsc;

    #[test]
    fn a_packet_that_left_late_counts_from_when_it_should_have() {
        let mut packets = Packets::new(StreamIx(0));
        let late = Stamp {
            intended: Tsc(1000),
            sent: Tsc(1200),
            received: Some(Tsc(1250)),
            flags: StampFlags::LATE,
            ..Stamp::default()
        };
        let again = Stamp {
            received: Some(Tsc(9000)),
            flags: StampFlags::DUPLICATE,
            ..late
        };
        let lost = Stamp {
            received: None,
            ..late
        };
        [late, again, lost].iter().for_each(|s| packets.add(s));
        assert_eq!(packets.latency.max(), Quantile::Ticks(250));
        assert_eq!(packets.transit.max(), Quantile::Ticks(50));
        assert_eq!((packets.latency.len(), packets.counts.lost), (1, 1));
    }
}
