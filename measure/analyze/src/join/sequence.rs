//! Packets and runs by captured sequence numbers.
use super::spans::Spans;
use super::{CAPTURED_MAX, JoinError, RunSpan, hopeless, none_found};
use crate::packet::{Match, NoMatch, Packet};
use crate::run::Run;
use hopscope_event::{FunctionId, Tsc};

/// Captured values that tell which packets a run handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketId {
    pub captures: PacketIdCaptures,
    /// Bits of the captured value: sequence numbers are compared modulo 2^bits.
    pub bits: u8,
    /// The bytes lie in network order and were captured as a little-endian number.
    pub swapped: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketIdCaptures {
    /// Each of these values is the sequence number of a packet.
    Each(Vec<(FunctionId, u16)>),
    /// Of a queue: the first packet's number, the last one's, and how many there are. Exact when
    /// there are as many as numbers from first to last; else one that is missing cannot be told.
    Ends {
        first: (FunctionId, u16),
        last: (FunctionId, u16),
        count: (FunctionId, u16),
    },
}

impl PacketId {
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - u32::from(self.bits.clamp(1, 64)))
    }

    pub(super) fn number(&self, value: u64) -> u64 {
        let unused = 64 - u32::from(self.bits.clamp(1, 64));
        match self.swapped {
            true => value.swap_bytes() >> unused,
            false => value & self.mask(),
        }
    }
}

/// Numbers from `first` to `last` that a run captured; `exact` when all of them are its.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Captured {
    first: u64,
    run: u32,
    exact: bool,
    /// Beyond the first.
    more: u32,
}

#[derive(Debug)]
pub(super) struct Captures {
    id: PacketId,
    captured: Vec<Captured>,
    of_run: Vec<u64>,
    runs: u32,
    most: u32,
}

impl Captures {
    pub(super) fn new(id: PacketId) -> Captures {
        Captures {
            id,
            captured: Vec::new(),
            of_run: Vec::new(),
            runs: 0,
            most: 0,
        }
    }

    pub(super) fn add(&mut self, run: &Run) -> Result<(), JoinError> {
        let ix = self.runs;
        self.runs += 1;
        let place = |at: u32| run.calls.get(at as usize).map(|c| c.function);
        match &self.id.captures {
            PacketIdCaptures::Each(captures) => {
                let is_one = |f: FunctionId, c: u16| captures.contains(&(f, c));
                let values = run.values.iter();
                let numbers =
                    values.filter(|v| place(v.call).is_some_and(|f| is_one(f, v.capture)));
                self.of_run.clear();
                self.of_run.extend(numbers.map(|v| self.id.number(v.value)));
                // Several functions may capture the same packet.
                self.of_run.sort_unstable();
                self.of_run.dedup();
                let captured = |first: &u64| Captured {
                    first: *first,
                    run: ix,
                    exact: true,
                    more: 0,
                };
                self.captured.extend(self.of_run.iter().map(captured));
            }
            PacketIdCaptures::Ends { first, last, count } => {
                let value = |(function, capture): (FunctionId, u16)| {
                    let is_it = |v: &&crate::Captured| {
                        v.capture == capture && place(v.call) == Some(function)
                    };
                    run.values.iter().find(is_it).map(|v| v.value)
                };
                if let (Some(first), Some(last), Some(count)) =
                    (value(*first), value(*last), value(*count))
                    && count > 0
                {
                    let (first, last) = (self.id.number(first), self.id.number(last));
                    let more = last.wrapping_sub(first) & self.id.mask();
                    let more = u32::try_from(more).unwrap_or(u32::MAX);
                    self.most = self.most.max(more);
                    self.captured.push(Captured {
                        first,
                        run: ix,
                        exact: u64::from(more) + 1 == count,
                        more,
                    });
                }
            }
        }
        match self.captured.len() > CAPTURED_MAX {
            true => Err(JoinError::Captured),
            false => Ok(()),
        }
    }

    pub(super) fn join(&mut self, packets: &mut [Packet], runs: &[RunSpan], spans: &Spans) {
        self.captured.sort_unstable();
        for packet in packets.iter_mut() {
            if let Some(why) = hopeless(packet) {
                packet.matched = Match::None(why);
                continue;
            }
            let (sent, received) = (packet.stamp.sent, packet.stamp.received);
            let until = received.unwrap_or(Tsc(u64::MAX));
            let mut possible = self.of(packet.stamp.seq).filter(|c| {
                let run = runs[c.run as usize];
                run.end >= sent && run.start <= until
            });
            match (possible.next(), possible.count() as u32) {
                (Some(one), 0) if one.exact => packet.take(one.run as usize, Match::Sequence),
                (Some(one), more) => {
                    let ambiguous_among = 1 + more;
                    packet.take(one.run as usize, Match::Order { ambiguous_among });
                }
                // A lost packet need not have come as far as the first probe.
                (None, _) => {
                    packet.matched = match received {
                        None => Match::None(NoMatch::NeverCameBack),
                        Some(received) => {
                            none_found(spans, sent, received, NoMatch::SequenceNotCaptured)
                        }
                    }
                }
            }
        }
        self.claims(packets);
    }

    /// What was captured of a sequence number, earliest runs first.
    fn of(&self, seq: u64) -> impl Iterator<Item = Captured> {
        let mask = self.id.mask();
        let seq = seq & mask;
        // A range that holds the number begins at most `most` before it, perhaps beyond zero.
        let lowest = seq.wrapping_sub(u64::from(self.most)) & mask;
        let at = |number: u64| self.captured.partition_point(|c| c.first < number);
        let after = self.captured.partition_point(|c| c.first <= seq);
        let (low, high) = match lowest <= seq {
            true => (&self.captured[at(lowest)..after], &[][..]),
            false => (&self.captured[..after], &self.captured[at(lowest)..]),
        };
        let holds = move |c: &Captured| (seq.wrapping_sub(c.first) & mask) <= u64::from(c.more);
        let mut found: Vec<_> = low.iter().chain(high).copied().filter(holds).collect();
        found.sort_by_key(|c| c.run);
        found.into_iter()
    }

    /// Several packets that claim the same number in the same run (of several streams, or 2^bits
    /// apart) cannot be told from each other.
    fn claims(&self, packets: &mut [Packet]) {
        let mask = self.id.mask();
        let mut claims: Vec<_> = packets.iter().enumerate().collect();
        claims.retain(|(_, p)| p.matched == Match::Sequence);
        let key = |p: &Packet| (p.run, p.stamp.seq & mask);
        claims.sort_by_key(|(_, p)| key(p));
        let same = claims.chunk_by(|(_, a), (_, b)| key(a) == key(b));
        let doubtful: Vec<usize> = same
            .filter(|claims| claims.len() > 1)
            .flat_map(|claims| claims.iter().map(|(at, _)| *at))
            .collect();
        for at in doubtful {
            packets[at].run = None;
            packets[at].matched = Match::None(NoMatch::SequenceAmbiguous);
        }
    }
}
