//! Packets and the runs that handled them.
//!
//! A run handled a packet only if it was under way while the packet was: it ended after the packet
//! left and began before the packet arrived. All that is known beyond that is what runs captured
//! of the packets' sequence numbers, or the order of both.
mod counted;
mod order;
mod own;
mod sequence;
mod sightings;
mod spans;

pub use own::{OwnWork, own_work};
pub use sequence::{PacketId, PacketIdCaptures};
pub use sightings::{Place, Seen, Sightings, SightingsError};

use crate::packet::{Match, NoMatch, Packet};
use crate::run::{Run, RunIx};
use hopscope_event::{FunctionId, Stamp, StampFlags, StreamIx, ThreadIx, Tsc};
use sequence::Captures;
use spans::Spans;
use thiserror::Error;

/// 300 MiB.
pub const PACKETS_MAX: usize = 1 << 22;
/// 256 MiB.
pub const RUNS_MAX: usize = 1 << 23;
/// Sequence numbers that runs captured: 256 MiB.
pub const CAPTURED_MAX: usize = 1 << 24;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum JoinError {
    #[error("more than {PACKETS_MAX} packets are more than are kept in memory")]
    Packets,
    #[error("more than {RUNS_MAX} runs are more than are kept in memory for their packets")]
    Runs,
    #[error("more than {CAPTURED_MAX} captured sequence numbers are more than are kept in memory")]
    Captured,
}

/// When a run took place, and on which thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSpan {
    pub start: Tsc,
    pub end: Tsc,
    pub thread: ThreadIx,
    pub complete: bool,
    /// Known time off its processor; 0 without context-switch records.
    pub off_cpu_ticks: u64,
}

/// Records of a thread are missing between two stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    pub thread: ThreadIx,
    pub from: Tsc,
    pub to: Tsc,
}

#[derive(Debug)]
pub struct Joiner {
    packets: Vec<Packet>,
    spans: Vec<RunSpan>,
    captures: Option<Captures>,
    /// Where the number of packets of a run was captured, and what it was, by run.
    counts: Option<(FunctionId, u16)>,
    taken: Vec<Option<u32>>,
}

/// Packets in the order in which they left, stream by stream, with their runs.
#[derive(Debug)]
pub struct Joined {
    pub packets: Vec<Packet>,
    /// By [`RunIx`].
    pub spans: Vec<RunSpan>,
    pub counts: JoinCounts,
}

/// Outcomes of the packets; `packets` is the sum of the others down to `without`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinCounts {
    pub packets: u64,
    pub by_sequence: u64,
    /// By order and time, with a single run possible.
    pub by_order: u64,
    /// Of these, so many by the number of packets that runs captured: several runs were under way
    /// while the packet was, or one.
    pub by_count: u64,
    /// By order and time, with several runs possible; one of them was taken.
    pub ambiguous: u64,
    /// The most runs that were possible for one packet.
    pub ambiguous_among_max: u32,
    /// Without a run, in the order of [`NoMatch::ALL`].
    pub without: [u64; NoMatch::ALL.len()],
    /// Packets were taken for handled in the order in which they left.
    pub fifo_assumed: bool,
}

impl JoinCounts {
    fn of(packets: &[Packet], fifo_assumed: bool) -> JoinCounts {
        let mut counts = JoinCounts {
            packets: packets.len() as u64,
            fifo_assumed,
            ..JoinCounts::default()
        };
        for packet in packets {
            match packet.matched {
                Match::Sequence => counts.by_sequence += 1,
                Match::Order { ambiguous_among: 1 } => counts.by_order += 1,
                Match::Order { ambiguous_among } => {
                    counts.ambiguous += 1;
                    counts.ambiguous_among_max = counts.ambiguous_among_max.max(ambiguous_among);
                }
                Match::None(why) => {
                    if let Some(at) = NoMatch::ALL.iter().position(|w| *w == why) {
                        counts.without[at] += 1;
                    }
                }
            }
        }
        counts
    }
}

impl Joiner {
    /// `id` says which captured values are sequence numbers; without, order and time must do.
    pub fn new(id: Option<PacketId>) -> Joiner {
        Joiner {
            packets: Vec::new(),
            spans: Vec::new(),
            captures: id.map(Captures::new),
            counts: None,
            taken: Vec::new(),
        }
    }

    /// Where runs captured how many packets they took.
    pub fn counted_by(self, counts: Option<(FunctionId, u16)>) -> Joiner {
        Joiner { counts, ..self }
    }

    /// # Errors
    /// When there are too many.
    pub fn packet(&mut self, stream: StreamIx, stamp: Stamp) -> Result<(), JoinError> {
        if self.packets.len() == PACKETS_MAX {
            return Err(JoinError::Packets);
        }
        self.packets.push(Packet {
            stream,
            stamp,
            run: None,
            matched: Match::None(NoMatch::NoRunMeanwhile),
        });
        Ok(())
    }

    /// Takes the next run, in the order of [`RunIx`].
    ///
    /// # Errors
    /// When there are too many.
    pub fn run(&mut self, run: &Run) -> Result<(), JoinError> {
        if self.spans.len() == RUNS_MAX {
            return Err(JoinError::Runs);
        }
        self.spans.push(RunSpan {
            start: run.start,
            end: run.end,
            thread: run.thread,
            complete: run.complete,
            off_cpu_ticks: run.off_cpu_ticks,
        });
        if let Some(counts) = self.counts {
            self.taken.push(captured_count(run, counts));
        }
        match &mut self.captures {
            Some(captures) => captures.add(run),
            None => Ok(()),
        }
    }

    /// `losses`: where records are missing.
    pub fn finish(mut self, losses: &[Loss]) -> Joined {
        let key = |p: &Packet| (p.stream, p.stamp.sent, p.stamp.seq);
        self.packets.sort_unstable_by_key(key);
        let spans = Spans::new(&self.spans, losses);
        let (fifo_assumed, by_count) = match self.captures {
            Some(mut captures) => {
                captures.join(&mut self.packets, &self.spans, &spans);
                (false, 0)
            }
            None => order::join(&mut self.packets, &self.spans, &self.taken, &spans),
        };
        Joined {
            counts: JoinCounts {
                by_count,
                ..JoinCounts::of(&self.packets, fifo_assumed)
            },
            packets: self.packets,
            spans: self.spans,
        }
    }
}

/// The first such value in a run: how many packets it took.
pub(crate) fn captured_count(run: &Run, (function, number): (FunctionId, u16)) -> Option<u32> {
    let its = |c: &&crate::run::Captured| {
        let call = run.calls.get(c.call as usize);
        c.capture == number && call.is_some_and(|call| call.function == function)
    };
    let value = run.values.iter().find(its)?.value;
    u32::try_from(value).ok()
}

/// Why the packet cannot have a run, if so.
fn hopeless(packet: &Packet) -> Option<NoMatch> {
    packet
        .stamp
        .flags
        .contains(StampFlags::DUPLICATE)
        .then_some(NoMatch::Duplicate)
}

/// When the packet left and arrived, if it did.
fn under_way(packet: &Packet) -> Option<(Tsc, Tsc)> {
    match hopeless(packet) {
        Some(_) => None,
        None => Some((packet.stamp.sent, packet.stamp.received?)),
    }
}

/// Why no run was found for a packet that was under way in this span.
fn none_found(spans: &Spans, sent: Tsc, received: Tsc, otherwise: NoMatch) -> Match {
    Match::None(match spans.ends() {
        _ if spans.losses(sent, received) > 0 => NoMatch::RecordsLost,
        None => NoMatch::OutsideRecording,
        Some((first, last)) if received < first || sent > last => NoMatch::OutsideRecording,
        Some(_) => otherwise,
    })
}

impl Packet {
    fn take(&mut self, run: usize, matched: Match) {
        self.run = Some(RunIx(run as u64));
        self.matched = matched;
    }
}
