//! One direction: frames between their arrival and their release.
use super::tail::Tails;
use super::{Fate, Impairments};
use crate::{Frame, Offload, Outgoing, PacketIo, PortError};
use hopscope_event::{Ns, Tsc, TscFrequency};
use std::collections::VecDeque;

/// Frames that a direction holds; later ones are lost and counted.
const MOST_HELD: usize = 65_536;
const BURST: usize = 64;

/// received + duplicated = dropped + overrun + not_sendable + released + held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneCounts {
    pub received: u64,
    /// `drop_tail` among them.
    pub dropped: u64,
    pub duplicated: u64,
    pub reordered: u64,
    /// Of the reordered: released because nothing came behind them in time.
    pub reorder_timed_out: u64,
    pub corrupted: u64,
    pub delayed: u64,
    /// Lost because too many were held.
    pub overrun: u64,
    /// Longer than the other port takes, or with work left that it cannot hand on.
    pub not_sendable: u64,
    pub released: u64,
    /// Not released yet.
    pub held: u64,
}

struct Held {
    due: Tsc,
    bytes: Vec<u8>,
    offload: Offload,
}

/// A frame that others must overtake.
struct Parked {
    frame: Held,
    overtaken_by: u32,
    at_latest: Tsc,
}

pub(super) struct Lane {
    seed: u64,
    impairments: Impairments,
    frequency: TscFrequency,
    /// In the order of release.
    queue: VecDeque<Held>,
    parked: Vec<Parked>,
    /// Buffers of released frames.
    spare: Vec<Vec<u8>>,
    fates: Option<Vec<Fate>>,
    tails: Tails,
    pub(super) ended: bool,
    counts: LaneCounts,
}

impl Lane {
    pub(super) fn new(
        seed: u64,
        impairments: Impairments,
        frequency: TscFrequency,
        log: bool,
    ) -> Lane {
        Lane {
            seed,
            impairments,
            frequency,
            queue: VecDeque::new(),
            parked: Vec::new(),
            spare: Vec::new(),
            fates: log.then(Vec::new),
            tails: Tails::default(),
            ended: false,
            counts: LaneCounts::default(),
        }
    }

    pub(super) fn counts(&self) -> LaneCounts {
        LaneCounts {
            held: (self.queue.len() + self.parked.len()) as u64,
            ..self.counts
        }
    }

    pub(super) fn fates(&self) -> Option<&[Fate]> {
        self.fates.as_deref()
    }

    /// Takes in what has arrived.
    pub(super) fn take(&mut self, from: &mut dyn PacketIo) -> Result<(), PortError> {
        if self.ended {
            return Ok(());
        }
        match from.receive(BURST, &mut |frame| self.arrive(frame)) {
            Ok(_) => Ok(()),
            Err(PortError::Ended { .. }) => {
                self.ended = true;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn arrive(&mut self, frame: Frame<'_>) {
        let fate = Fate::of(self.seed, self.counts.received, &self.impairments);
        self.counts.received += 1;
        if let Some(fates) = &mut self.fates {
            fates.push(fate);
        }
        let tail_dropped = fate.tail_dropped && self.tails.is_new(frame.bytes);
        if fate.dropped || tail_dropped {
            self.counts.dropped += 1;
            return;
        }
        if self.queue.len() + self.parked.len() + 2 > MOST_HELD {
            self.counts.overrun += 1;
            return;
        }
        let due = frame.received + self.frequency.ticks(fate.delay);
        self.counts.delayed += u64::from(fate.delay.0 > 0);
        let mut held = self.held(frame, due);
        if let (Some(bit), false) = (fate.corrupted, held.bytes.is_empty()) {
            let bit = bit % (held.bytes.len() as u64 * 8);
            held.bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            self.counts.corrupted += 1;
        }
        if fate.duplicated {
            self.counts.duplicated += 1;
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clone_from(&held.bytes);
            let twin = Held { bytes, ..held };
            // The twin stays in line when the frame itself is held back.
            self.line_up(twin);
        }
        if fate.reordered {
            self.counts.reordered += 1;
            let at_latest = due + self.frequency.ticks(self.impairments.reorder_wait);
            self.parked.push(Parked {
                frame: held,
                overtaken_by: 0,
                at_latest,
            });
            return;
        }
        self.line_up(held);
        self.overtake();
    }

    fn held(&mut self, frame: Frame<'_>, due: Tsc) -> Held {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame.bytes);
        Held {
            due,
            bytes,
            offload: frame.offload,
        }
    }

    /// Behind all others, whatever is due first: the front holds the rest back.
    fn line_up(&mut self, frame: Held) {
        self.queue.push_back(frame);
    }

    /// One more frame has gone past the parked ones: those that have seen enough follow it.
    fn overtake(&mut self) {
        for parked in &mut self.parked {
            parked.overtaken_by += 1;
        }
        let enough = self.impairments.reorder_by.max(1);
        while let Some(at) = self.parked.iter().position(|p| p.overtaken_by >= enough) {
            let frame = self.parked.remove(at).frame;
            self.line_up(frame);
        }
    }

    /// When the next frame is due, if one is held.
    pub(super) fn next_due(&self) -> Option<Tsc> {
        let parked = self.parked.iter().map(|p| p.at_latest);
        let queued = self.queue.front().map(|held| held.due);
        parked
            .chain(queued)
            .reduce(|a, b| if a - b < 0 { a } else { b })
    }

    /// Passes on what is due; what the port has no room for stays.
    pub(super) fn release(&mut self, now: Tsc, to: &mut dyn PacketIo) -> Result<(), PortError> {
        while let Some(at) = self.parked.iter().position(|p| now - p.at_latest >= 0) {
            let frame = self.parked.remove(at).frame;
            self.counts.reorder_timed_out += 1;
            self.line_up(frame);
        }
        let can = to.capabilities();
        let mut released = false;
        while let Some(frame) = self.queue.front().filter(|held| now - held.due >= 0) {
            let whole = frame.offload == Offload::default() || can.offload;
            if !whole || frame.bytes.is_empty() || frame.bytes.len() > can.max_frame_len {
                self.counts.not_sendable += 1;
                self.spare
                    .extend(self.queue.pop_front().map(|held| held.bytes));
                continue;
            }
            let sent = to.send(1, &mut |slot| {
                slot[..frame.bytes.len()].copy_from_slice(&frame.bytes);
                Outgoing {
                    len: frame.bytes.len(),
                    offload: frame.offload,
                }
            })?;
            if sent == 0 {
                break;
            }
            released = true;
            self.counts.released += 1;
            self.spare
                .extend(self.queue.pop_front().map(|held| held.bytes));
        }
        if released {
            to.flush()?;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.parked.is_empty()
    }
}

/// For `poll`, whose unit is milliseconds.
pub(super) fn whole_ms(ns: Ns) -> u16 {
    (ns.0 / 1_000_000).min(u64::from(u16::MAX)) as u16
}
