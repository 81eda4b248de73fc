//! The whole recording in a bounded number of bins of time, and its slowest packets and calls: what
//! is drawn of all of it, and what decides which parts are shown call by call.
use hopscope_analyze::{Distribution, PlacedCall, Quantile};
use hopscope_event::{Stamp, StampFlags, StreamIx, Tsc};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const BINS_MAX: usize = 1024;
/// Width of a bin before it is doubled for the first time, in ticks: some 50 µs.
const FIRST_WIDTH: u64 = 1 << 17;
pub(crate) const SLOWEST: usize = 64;

/// Feed it every call and every packet of the recording once.
#[derive(Debug)]
pub struct Overview {
    pub(crate) base: Tsc,
    pub(crate) width_ticks: u64,
    pub(crate) bins: Vec<Bin>,
    /// The latest stamp of all.
    pub(crate) end: Tsc,
    /// What began before the recording did, by its own clock: in no bin.
    pub(crate) before: u64,
    pub(crate) calls: u64,
    pub(crate) packets: u64,
    slowest_packets: BinaryHeap<Reverse<Slow>>,
    slowest_calls: BinaryHeap<Reverse<Slow>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Bin {
    /// Calls that ended, by their begin.
    pub calls: u64,
    pub longest_ticks: u64,
    /// Packets by when they should have left.
    pub sent: u64,
    pub lost: u64,
    pub late: u64,
    /// By when they arrived.
    pub received: u64,
    pub latency: Option<Box<Distribution>>,
}

/// A place worth looking at; ordered by how slow it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slow {
    pub ticks: i64,
    pub begin: Tsc,
    pub end: Tsc,
    /// Of a packet: stream and sequence number.
    pub packet: Option<(StreamIx, u64)>,
}

impl Overview {
    pub fn new(base: Tsc) -> Overview {
        Overview {
            base,
            width_ticks: FIRST_WIDTH,
            bins: Vec::new(),
            end: base,
            before: 0,
            calls: 0,
            packets: 0,
            slowest_packets: BinaryHeap::new(),
            slowest_calls: BinaryHeap::new(),
        }
    }

    pub fn call(&mut self, call: &PlacedCall) {
        self.calls += 1;
        let ticks = call.ticks.max(0);
        if let Some(bin) = self.bin(call.entry) {
            bin.calls += 1;
            bin.longest_ticks = bin.longest_ticks.max(ticks as u64);
        }
        let end = call.entry + ticks as u64;
        self.end = self.end.max(end);
        if call.depth == 0 {
            keep(&mut self.slowest_calls, ticks, call.entry, end, None);
        }
    }

    pub fn packet(&mut self, stream: StreamIx, stamp: &Stamp) {
        let again = stamp.flags.contains(StampFlags::DUPLICATE);
        self.packets += u64::from(!again);
        if !again && let Some(bin) = self.bin(stamp.intended) {
            bin.sent += 1;
            bin.lost += u64::from(stamp.received.is_none());
            bin.late += u64::from(stamp.flags.contains(StampFlags::LATE));
        }
        let (Some(received), Some(latency)) = (stamp.received, stamp.latency_ticks()) else {
            return;
        };
        if let Some(bin) = self.bin(received) {
            bin.received += 1;
        }
        if again {
            return;
        }
        if let Some(bin) = self.bin(stamp.intended) {
            bin.latency.get_or_insert_default().record(latency);
        }
        let packet = Some((stream, stamp.seq));
        let begin = stamp.intended.min(stamp.sent);
        keep(&mut self.slowest_packets, latency, begin, received, packet);
    }

    fn bin(&mut self, at: Tsc) -> Option<&mut Bin> {
        self.end = self.end.max(at);
        let Ok(offset) = u64::try_from(at - self.base) else {
            self.before += 1;
            return None;
        };
        while offset / self.width_ticks >= BINS_MAX as u64 {
            self.double();
        }
        let place = (offset / self.width_ticks) as usize;
        if self.bins.len() <= place {
            self.bins.resize_with(place + 1, Bin::default);
        }
        self.bins.get_mut(place)
    }

    fn double(&mut self) {
        self.width_ticks *= 2;
        let bins = std::mem::take(&mut self.bins);
        let mut bins = bins.into_iter();
        while let Some(mut bin) = bins.next() {
            if let Some(second) = bins.next() {
                bin.add(second);
            }
            self.bins.push(bin);
        }
    }

    /// Slowest first.
    pub(crate) fn slowest(&self) -> Vec<Slow> {
        let heap = if self.slowest_packets.is_empty() {
            &self.slowest_calls
        } else {
            &self.slowest_packets
        };
        let mut slowest: Vec<Slow> = heap.iter().map(|s| s.0).collect();
        slowest.sort_by_key(|s| (Reverse(s.ticks), s.begin));
        slowest
    }

    pub(crate) fn ticks(&self) -> u64 {
        (self.end - self.base).max(0) as u64
    }

    /// At most `most` bins, for a chart that has no room for more, and their width in ticks.
    pub(crate) fn coarser(&self, most: usize) -> (Vec<Bin>, u64) {
        let step = self.bins.len().div_ceil(most).max(1);
        let add = |mut sum: Bin, bin: &Bin| {
            sum.add(bin.clone());
            sum
        };
        let parts = self.bins.chunks(step);
        let bins = parts
            .map(|part| part.iter().fold(Bin::default(), add))
            .collect();
        (bins, self.width_ticks * step as u64)
    }
}

fn keep(
    heap: &mut BinaryHeap<Reverse<Slow>>,
    ticks: i64,
    begin: Tsc,
    end: Tsc,
    packet: Option<(StreamIx, u64)>,
) {
    if heap.len() == SLOWEST {
        if heap.peek().is_some_and(|least| least.0.ticks >= ticks) {
            return;
        }
        heap.pop();
    }
    heap.push(Reverse(Slow {
        ticks,
        begin,
        end,
        packet,
    }));
}

impl Bin {
    fn add(&mut self, other: Bin) {
        self.calls += other.calls;
        self.longest_ticks = self.longest_ticks.max(other.longest_ticks);
        self.sent += other.sent;
        self.lost += other.lost;
        self.late += other.late;
        self.received += other.received;
        match (&mut self.latency, other.latency) {
            (Some(mine), Some(theirs)) => mine.add(&theirs),
            (none, theirs) => *none = none.take().or(theirs),
        }
    }

    /// In ticks; `None` when no packet of this bin arrived.
    pub(crate) fn quantile(&self, parts: u64) -> Option<u64> {
        let latency = self.latency.as_ref()?;
        let quantile = match parts {
            1000 => latency.max(),
            _ => latency.quantile(parts),
        };
        match quantile {
            Quantile::Ticks(ticks) => Some(ticks),
            Quantile::Negative => Some(0),
            Quantile::Empty => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::{FunctionId, ThreadIx};

    fn packet(seq: u64, at: u64, latency: u64) -> Stamp {
        Stamp {
            seq,
            intended: Tsc(at),
            sent: Tsc(at),
            received: Some(Tsc(at + latency)),
            ..Stamp::default()
        }
    }

    #[test]
    fn nothing_is_lost_when_bins_become_wider() {
        let mut overview = Overview::new(Tsc(1_000));
        for seq in 0..5_000u64 {
            let stamp = packet(seq, 1_000 + seq * 1_000_000, 500 + seq % 7);
            overview.packet(StreamIx(0), &stamp);
        }
        overview.packet(StreamIx(0), &packet(9_999, 10, 100));
        let sent: u64 = overview.bins.iter().map(|b| b.sent).sum();
        let timed: u64 = overview
            .bins
            .iter()
            .filter_map(|b| b.latency.as_ref())
            .map(|d| d.len())
            .sum();
        assert!(overview.bins.len() <= BINS_MAX);
        assert_eq!((sent, timed, overview.packets), (5_000, 5_000, 5_001));
        // Both stamps of the early packet, and its latency, lie before the base.
        assert_eq!(overview.before, 3);
    }

    #[test]
    fn the_slowest_are_kept_in_order() {
        let mut overview = Overview::new(Tsc(0));
        for seq in 0..1_000 {
            overview.packet(StreamIx(0), &packet(seq, seq * 10, (seq * 37) % 1_000));
        }
        let slowest = overview.slowest();
        assert_eq!(slowest.len(), SLOWEST);
        let ticks: Vec<i64> = slowest.iter().map(|s| s.ticks).collect();
        assert_eq!(
            ticks,
            (1_000 - SLOWEST as i64..1_000).rev().collect::<Vec<_>>()
        );
    }

    #[test]
    fn without_packets_the_slowest_outermost_calls_count() {
        let mut overview = Overview::new(Tsc(0));
        for (depth, ticks) in [(0, 10), (1, 99), (0, 20)] {
            overview.call(&PlacedCall {
                thread: ThreadIx(0),
                function: FunctionId(1),
                depth,
                entry: Tsc(5),
                ticks,
                callee_ticks: 0,
                callees: 0.into(),
                descendants: 0.into(),
                fused: false,
                tail: false,
            });
        }
        let slowest: Vec<i64> = overview.slowest().iter().map(|s| s.ticks).collect();
        assert_eq!(slowest, [20, 10]);
        assert_eq!(overview.bins[0].longest_ticks, 99);
    }
}
