//! Packets and runs by order and time.
//!
//! Each run that was under way while the packet was is possible. When one thread has all the runs,
//! packets of a stream are taken for handled in the order in which they left (a queue): the run
//! of a packet is then none before the earliest possible of any packet before it, and none after the
//! latest possible of any packet after it. A loss of records while the packet was under way may
//! hide its run, and counts as one more that is possible.
use super::spans::Spans;
use super::{RunSpan, hopeless, none_found, under_way};
use crate::packet::{Match, NoMatch, Packet};
use hopscope_event::StampFlags;
use std::ops::Range;

/// Whether the order was used, and how many packets have their run from the number of packets
/// that runs took (`taken`, by run, where known).
pub(super) fn join(
    packets: &mut [Packet],
    runs: &[RunSpan],
    taken: &[Option<u32>],
    spans: &Spans,
) -> (bool, u64) {
    let fifo = spans.threads().len() == 1;
    for stream in packets.chunk_by_mut(|a, b| a.stream == b.stream) {
        match (fifo, spans.threads()) {
            (true, [only]) => {
                let times = |p: &Packet| under_way(p).map(|(s, r)| only.overlapping(s, r));
                let mut possible: Vec<_> = stream.iter().map(times).collect();
                in_order(stream, &mut possible);
                for (packet, possible) in stream.iter_mut().zip(possible) {
                    let of = possible.map(|places| only.runs[places].to_vec());
                    choose(packet, of, runs, spans);
                }
            }
            _ => {
                for packet in stream {
                    let of = under_way(packet).map(|(sent, received)| {
                        let threads = spans.threads().iter();
                        let runs = threads.flat_map(|t| &t.runs[t.overlapping(sent, received)]);
                        runs.copied().collect()
                    });
                    choose(packet, of, runs, spans);
                }
            }
        }
    }
    let one_stream = packets.first().map(|p| p.stream) == packets.last().map(|p| p.stream);
    let counted = match spans.threads() {
        // Of several streams nobody knows how many of each a run took.
        [only] if one_stream && !taken.is_empty() => {
            super::counted::settle(packets, &only.runs, runs, taken, spans)
        }
        _ => 0,
    };
    (fifo, counted)
}

/// Narrows what is possible by what is possible for the packets before and after.
fn in_order(stream: &[Packet], possible: &mut [Option<Range<usize>>]) {
    let mut arrived = None;
    let mut first = 0;
    let mut kept = Vec::with_capacity(stream.len());
    for (packet, range) in stream.iter().zip(possible.iter_mut()) {
        let Some(range) = range else {
            kept.push(false);
            continue;
        };
        // One that was overtaken, or overtook, says nothing of the others.
        let reordered = packet.stamp.flags.contains(StampFlags::REORDERED);
        let in_order = range.start < range.end && !reordered && packet.stamp.received >= arrived;
        kept.push(in_order);
        if in_order {
            arrived = packet.stamp.received;
            first = first.max(range.start);
            range.start = first.min(range.end);
        }
    }
    let mut end = usize::MAX;
    for (range, kept) in possible.iter_mut().zip(kept).rev() {
        if let (Some(range), true) = (range, kept) {
            end = end.min(range.end);
            range.end = end.max(range.start);
        }
    }
}

fn choose(packet: &mut Packet, possible: Option<Vec<u32>>, runs: &[RunSpan], spans: &Spans) {
    let Some(possible) = possible else {
        let why = hopeless(packet).unwrap_or(NoMatch::NeverCameBack);
        packet.matched = Match::None(why);
        return;
    };
    let Some((sent, received)) = under_way(packet) else {
        return;
    };
    let span = |ix: &u32| runs[*ix as usize];
    let after = |ix: &u32| span(ix).start >= sent;
    // A run usually takes all that is there when it begins, and sends before it ends; where a
    // queue is longer, the packet leaves soon before it arrives.
    let whole = possible
        .iter()
        .copied()
        .filter(|ix| after(ix) && span(ix).end <= received);
    let begun = possible.iter().copied().filter(after);
    let best = whole.max_by_key(|ix| span(ix).end);
    let best = best.or_else(|| begun.min_by_key(|ix| span(ix).start));
    let best = best.or_else(|| possible.iter().copied().max_by_key(|ix| span(ix).start));
    match best {
        Some(run) => {
            let hidden = spans.losses(sent, received);
            let ambiguous_among = possible.len() as u32 + hidden;
            packet.take(run as usize, Match::Order { ambiguous_among });
        }
        None => packet.matched = none_found(spans, sent, received, NoMatch::NoRunMeanwhile),
    }
}
