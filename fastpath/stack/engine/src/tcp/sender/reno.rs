//! What duplicate ACKs say where the peer has no SACK: how many segments arrived, but not which (RFC 6582).

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reno {
    /// In a row.
    pub(super) duplicates: u32,
    /// Bytes that they stand for, a segment each.
    pub(super) arrived_bytes: u32,
}

impl Reno {
    /// A duplicate ACK: bytes that are newly delivered. `most`: all but the missing segment.
    pub(super) fn duplicate(&mut self, mss: u32, most: u32) -> u32 {
        self.duplicates += 1;
        let new = mss.min(most.saturating_sub(self.arrived_bytes));
        self.arrived_bytes += new;
        new
    }

    /// snd_una advanced: bytes that are newly delivered. One of the segments is the one that was missing.
    pub(super) fn advanced(&mut self, acked_bytes: u32, mss: u32) -> u32 {
        self.duplicates = 0;
        let new = acked_bytes
            .saturating_sub(self.arrived_bytes)
            .max(mss.min(acked_bytes));
        self.arrived_bytes = self
            .arrived_bytes
            .saturating_sub(acked_bytes.saturating_sub(mss));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6582_duplicates_stand_for_segments_that_a_partial_ack_covers() {
        let mut reno = Reno::default();
        assert_eq!((0..4).map(|_| reno.duplicate(100, 900)).sum::<u32>(), 400);
        // The hole and the four above it, and one more hole follows.
        assert_eq!(reno.advanced(500, 100), 100);
        assert_eq!(reno.arrived_bytes, 0);
    }

    #[test]
    fn rfc6582_more_duplicates_than_segments_are_not_counted() {
        let mut reno = Reno::default();
        assert_eq!((0..40).map(|_| reno.duplicate(100, 900)).sum::<u32>(), 900);
    }
}
