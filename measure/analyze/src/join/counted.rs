//! Packets and runs of a queue by how many packets each run took.
//!
//! Between two moments at which nothing was under way the packets that were sent are those that
//! the runs took, in order. Where the numbers agree, each packet's run is known, although several
//! were under way while it was; where they do not (packets lost on the way, others' packets), what
//! order and time say stands.
use super::spans::Spans;
use super::{RunSpan, hopeless, under_way};
use crate::packet::{Match, Packet};
use hopscope_event::{StampFlags, Tsc};

/// `order`: the runs of the only thread, by end. `taken`: packets of each run, by number, where it
/// is known. Returns for how many packets this tells the run.
pub(super) fn settle(
    packets: &mut [Packet],
    order: &[u32],
    runs: &[RunSpan],
    taken: &[Option<u32>],
    spans: &Spans,
) -> u64 {
    let mut settled = 0;
    let mut begin = (0, 0);
    let idle = Idle::new(packets);
    let ends = (1..order.len()).filter_map(|at| {
        let [before, next] = [order[at - 1], order[at]].map(|ix| runs[ix as usize]);
        Some((idle.between(packets, before, next)?, at))
    });
    let ends: Vec<_> = ends.chain([(packets.len(), order.len())]).collect();
    for end in ends {
        let of = Stretch {
            order: &order[begin.1..end.1],
            runs,
            taken,
        };
        settled += of.settle(&mut packets[begin.0..end.0], spans).unwrap_or(0);
        begin = end;
    }
    settled
}

/// Finds the moments at which nothing was under way.
struct Idle {
    /// Latest arrival of this packet and all before it.
    arrived: Vec<Tsc>,
    /// When the last packet up to this one left of which no arrival is known.
    missing: Vec<Tsc>,
}

impl Idle {
    fn new(packets: &[Packet]) -> Idle {
        let (mut arrived, mut missing) = (Tsc(0), Tsc(0));
        let each = packets.iter().map(|p| {
            match p.stamp.received {
                Some(at) => arrived = arrived.max(at),
                None => missing = p.stamp.sent,
            }
            (arrived, missing)
        });
        let (arrived, missing) = each.unzip();
        Idle { arrived, missing }
    }

    /// The first packet sent after `before`, if all packets before it had arrived when `next`
    /// began, or were lost and had been there when `before` began.
    fn between(&self, packets: &[Packet], before: RunSpan, next: RunSpan) -> Option<usize> {
        let first = packets.partition_point(|p| p.stamp.sent <= before.end);
        let Some(last) = first.checked_sub(1) else {
            return Some(0);
        };
        (self.arrived[last] < next.start && self.missing[last] < before.start).then_some(first)
    }
}

struct Stretch<'a> {
    order: &'a [u32],
    runs: &'a [RunSpan],
    taken: &'a [Option<u32>],
}

impl Stretch<'_> {
    fn settle(&self, packets: &mut [Packet], spans: &Spans) -> Option<u64> {
        let (first, last) = (packets.first()?.stamp.sent, *self.order.last()?);
        let taken = |ix: &u32| Some((*ix, self.taken[*ix as usize]?));
        let taken: Vec<(u32, u32)> = self.order.iter().map(taken).collect::<Option<_>>()?;
        // Of a lost run behind the last one the packets are here.
        let arrived = packets.iter().filter_map(|p| p.stamp.received).max();
        let end = self.runs[last as usize].end;
        if spans.losses(first, arrived.map_or(end, |at| at.max(end))) > 0 {
            return None;
        }
        let mut own: Vec<&mut Packet> = packets
            .iter_mut()
            .filter(|p| hopeless(p).is_none())
            .collect();
        let reordered = |p: &&mut Packet| p.stamp.flags.contains(StampFlags::REORDERED);
        if own.iter().any(reordered) {
            return None;
        }
        let all: u64 = taken.iter().map(|(_, n)| u64::from(*n)).sum();
        if all != own.len() as u64 {
            // All that were lost may have been lost before they came to a run.
            own.retain(|p| p.stamp.received.is_some());
        }
        if all != own.len() as u64 {
            return None;
        }
        let each = taken
            .iter()
            .flat_map(|(ix, n)| std::iter::repeat_n(*ix, *n as usize));
        let each: Vec<u32> = each.collect();
        let possible = |(packet, ix): (&&mut Packet, &u32)| {
            let run = self.runs[*ix as usize];
            let until = packet.stamp.received.unwrap_or(Tsc(u64::MAX));
            packet.stamp.sent <= run.end && until >= run.start
        };
        if !own.iter().zip(&each).all(possible) {
            return None;
        }
        let mut settled = 0;
        for (packet, ix) in own.into_iter().zip(each) {
            if under_way(packet).is_some() {
                packet.take(ix as usize, Match::Order { ambiguous_among: 1 });
                settled += 1;
            }
        }
        Some(settled)
    }
}
