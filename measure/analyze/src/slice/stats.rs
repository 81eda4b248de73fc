//! What is kept of all packets of a recording.
use super::{NameIx, PacketSlices, PieceFlags, Span};
use crate::Distribution;
use std::collections::BTreeMap;

/// Times of one name, corrected where they can be. Those that are "this or longer" are only counted.
#[derive(Debug, Clone, Default)]
pub struct SliceRow {
    pub times: Distribution,
    pub min: Option<u64>,
    pub raw_sum: u128,
    pub sum: u128,
    /// Shown as 0: more was to be taken out than was measured.
    pub below_zero: u64,
    /// Of which not all could be taken out.
    pub uncertain: u64,
    /// This or longer: not among the times.
    pub saturated: u64,
    /// Of packets whose sending side was not followed: not among the times.
    pub head_unseen: u64,
    mean: f64,
    squares: f64,
}

impl SliceRow {
    pub(super) fn add(&mut self, span: &Span) {
        self.uncertain += u64::from(span.flags.intersects(PieceFlags::UNCERTAIN));
        self.below_zero += u64::from(span.flags.contains(PieceFlags::BELOW_ZERO));
        if span.flags.contains(PieceFlags::SATURATED) {
            self.saturated += 1;
            return;
        }
        if span.flags.contains(PieceFlags::HEAD_UNSEEN) {
            self.head_unseen += 1;
            return;
        }
        let value = span.best();
        self.times.record(value as i64);
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.raw_sum += u128::from(span.raw);
        self.sum += u128::from(value);
        // Welford's recurrence: no difference of large sums.
        let off = value as f64 - self.mean;
        self.mean += off / self.times.len() as f64;
        self.squares += off * (value as f64 - self.mean);
    }

    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Of a sample; 0 for less than two values.
    pub fn stddev(&self) -> f64 {
        match self.times.len() {
            0 | 1 => 0.0,
            n => (self.squares / (n - 1) as f64).sqrt(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct SliceStats {
    pub packets: u64,
    /// By name, in the order in which the names were first seen.
    pub pieces: BTreeMap<NameIx, SliceRow>,
    /// By position in the recording's regions.
    pub regions: BTreeMap<u32, SliceRow>,
    pub whole: SliceRow,
    /// Packets that went past a queueing discipline, by region.
    pub bypassed: BTreeMap<NameIx, u64>,
    pub out_of_order: u64,
    pub backwards: u64,
    /// Packets that the kernel dropped, by its reason.
    pub dropped: BTreeMap<u16, u64>,
    /// Packets of which it is known what their own probes cost, and that, in ns.
    pub own_cost: (u64, u128),
    /// Sums over packets none of whose times is "this or longer": corrected pieces, corrected whole.
    pub sums: (u128, u128),
}

impl SliceStats {
    pub fn add(&mut self, packet: &PacketSlices) {
        self.packets += 1;
        self.out_of_order += u64::from(packet.out_of_order);
        self.backwards += u64::from(packet.backwards);
        if let Some(reason) = packet.dropped {
            *self.dropped.entry(reason).or_default() += 1;
        }
        if let Some(ns) = packet.own_cost_ns {
            self.own_cost.0 += 1;
            self.own_cost.1 += u128::from(ns);
        }
        for piece in &packet.pieces {
            self.pieces.entry(piece.name).or_default().add(&piece.span);
        }
        for region in &packet.regions {
            let row = self.regions.entry(region.region).or_default();
            row.add(&region.span);
        }
        for name in &packet.bypassed {
            *self.bypassed.entry(*name).or_default() += 1;
        }
        if packet.pieces.is_empty() {
            return;
        }
        self.whole.add(&packet.whole);
        if !packet.whole.flags.intersects(PieceFlags::OR_LONGER) {
            let pieces = packet.pieces.iter().map(|p| u128::from(p.span.best()));
            self.sums.0 += pieces.sum::<u128>();
            self.sums.1 += u128::from(packet.whole.best());
        }
    }
}
