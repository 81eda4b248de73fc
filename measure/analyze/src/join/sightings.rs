//! Latency of packets that carry no stamps: from one place where their number was captured to
//! another.
//!
//! A packet begins with its number at the first place and ends with the last sight of that number
//! at the other one, before the number is seen at the first place of a later run. Numbers are
//! compared as [`PacketId`] says; a number that comes again while its packet is still under way
//! cannot be told from that packet, and is counted.
use super::{JoinCounts, Joined, PACKETS_MAX, PacketId, PacketIdCaptures, RUNS_MAX, RunSpan};
use crate::packet::{Match, NoMatch, Packet};
use crate::run::{Captured, Run, RunIx};
use hopscope_event::{CapturePlace, Content, FunctionId, Stamp, StreamIx, Tsc, Value};
use std::collections::BTreeMap;
use thiserror::Error;

/// Numbers that are kept: 256 MiB.
pub const SIGHTINGS_MAX: usize = 1 << 23;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum SightingsError {
    #[error(
        "first=, last= and count= say which packets a run had, not when each of them passed two \
         places; name captures of the numbers themselves"
    )]
    Ends,
    #[error("more than {SIGHTINGS_MAX} captured sequence numbers are more than are kept in memory")]
    Numbers,
    #[error("more than {RUNS_MAX} runs are more than are kept in memory for their packets")]
    Runs,
    #[error("more than {PACKETS_MAX} packets are more than are kept in memory")]
    Packets,
    #[error("no run captured a packet's number")]
    NoneCaptured,
    /// Only here: no time passes from one place to itself.
    #[error(
        "packets' numbers were captured in one function only, and a latency lies between two; \
         capture them in a second one, before or after"
    )]
    OnePlace(FunctionId),
    #[error(
        "no packet's number was captured in both of the functions, first in the one and later in the other"
    )]
    NoneInBoth,
}

/// Where a number was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub function: FunctionId,
    /// Of what is captured at a return the time is that of the exit, else of the entry.
    pub at_return: bool,
}

/// 24 bytes: a recording may hold millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sighting {
    number: u64,
    at: Tsc,
    run: u32,
    place: u16,
}

#[derive(Debug)]
pub struct Sightings {
    id: PacketId,
    wanted: Vec<(FunctionId, u16)>,
    places: Vec<Place>,
    seen: Vec<Sighting>,
    spans: Vec<RunSpan>,
}

/// What was seen of the numbers. Each packet's `sent` and `intended` are when it passed `from`,
/// `received` when it passed `to`; it has no flow and no length.
#[derive(Debug)]
pub struct Seen {
    pub joined: Joined,
    pub from: Place,
    pub to: Place,
    /// Sights of a number beyond those that packets begin and end with: between the two, or
    /// several at one of them.
    pub between: u64,
    /// The same number at `from` again in the same run: two packets that are taken for one.
    pub same_run: u64,
    /// Numbers at `to` that had not been at `from` before.
    pub only_at_to: u64,
}

impl Sightings {
    /// # Errors
    /// [`SightingsError::Ends`].
    pub fn new(id: PacketId) -> Result<Sightings, SightingsError> {
        let PacketIdCaptures::Each(wanted) = &id.captures else {
            return Err(SightingsError::Ends);
        };
        Ok(Sightings {
            wanted: wanted.clone(),
            id,
            places: Vec::new(),
            seen: Vec::new(),
            spans: Vec::new(),
        })
    }

    /// Takes the next run, in the order of [`RunIx`].
    ///
    /// # Errors
    /// When there are too many.
    pub fn run(&mut self, run: &Run) -> Result<(), SightingsError> {
        if self.spans.len() == RUNS_MAX {
            return Err(SightingsError::Runs);
        }
        let ix = self.spans.len() as u32;
        self.spans.push(RunSpan {
            start: run.start,
            end: run.end,
            thread: run.thread,
            complete: run.complete,
            off_cpu_ticks: run.off_cpu_ticks,
        });
        for value in &run.values {
            self.value(run, ix, value);
        }
        match self.seen.len() > SIGHTINGS_MAX {
            true => Err(SightingsError::Numbers),
            false => Ok(()),
        }
    }

    fn value(&mut self, run: &Run, ix: u32, value: &Captured) {
        let Some(call) = run.calls.get(value.call as usize) else {
            return;
        };
        if !self.wanted.contains(&(call.function, value.capture)) {
            return;
        }
        let captured = Value {
            capture: value.capture,
            element: value.element,
            content: Content::Value(value.value),
        };
        let at_return = captured.at() == Some(CapturePlace::Return);
        let place = Place {
            function: call.function,
            at_return,
        };
        let known = self.places.iter().position(|p| *p == place);
        let known = known.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        });
        self.seen.push(Sighting {
            number: self.id.number(value.value),
            at: if at_return { call.exit } else { call.entry },
            run: ix,
            place: known as u16,
        });
    }

    /// `between`: functions that the user named; else those at which most numbers were seen first
    /// and last.
    ///
    /// # Errors
    /// No two places; too many packets.
    pub fn finish(
        mut self,
        between: Option<(FunctionId, FunctionId)>,
    ) -> Result<Seen, SightingsError> {
        self.seen.sort_unstable();
        let (from, to) = match between {
            Some((from, to)) => (self.of(from)?, self.of(to)?),
            None => self.first_and_last()?,
        };
        let mut seen = Seen {
            joined: Joined {
                packets: Vec::new(),
                spans: Vec::new(),
                counts: JoinCounts::default(),
            },
            from: self.places[usize::from(from)],
            to: self.places[usize::from(to)],
            between: 0,
            same_run: 0,
            only_at_to: 0,
        };
        for same in self.seen.chunk_by(|a, b| a.number == b.number) {
            seen.packets_of(same, from, to)?;
        }
        let packets = &mut seen.joined.packets;
        if packets.iter().all(|p| p.run.is_none()) {
            return Err(SightingsError::NoneInBoth);
        }
        packets.sort_unstable_by_key(|p| (p.stamp.sent, p.stamp.seq));
        seen.joined.counts = JoinCounts::of(packets, false);
        seen.joined.spans = self.spans;
        Ok(seen)
    }

    fn of(&self, function: FunctionId) -> Result<u16, SightingsError> {
        let at = self.places.iter().position(|p| p.function == function);
        at.map(|at| at as u16).ok_or(SightingsError::NoneInBoth)
    }

    fn first_and_last(&self) -> Result<(u16, u16), SightingsError> {
        let mut pairs: BTreeMap<(u16, u16), u64> = BTreeMap::new();
        for same in self.seen.chunk_by(|a, b| a.number == b.number) {
            let ends = (same[0].place, same[same.len() - 1].place);
            *pairs.entry(ends).or_default() += u64::from(ends.0 != ends.1);
        }
        let best = pairs.into_iter().filter(|(_, n)| *n > 0);
        match (best.max_by_key(|(_, n)| *n), &self.places[..]) {
            (Some((pair, _)), _) => Ok(pair),
            (None, []) => Err(SightingsError::NoneCaptured),
            (None, [one]) => Err(SightingsError::OnePlace(one.function)),
            (None, _) => Err(SightingsError::NoneInBoth),
        }
    }
}

impl Seen {
    /// `same`: one number, in the order of time.
    fn packets_of(&mut self, same: &[Sighting], from: u16, to: u16) -> Result<(), SightingsError> {
        let mut open: Option<(Sighting, Option<Sighting>)> = None;
        for one in same {
            match (one.place, &mut open) {
                (place, Some((first, _))) if place == from && first.run == one.run => {
                    self.same_run += 1;
                }
                (place, _) if place == from => {
                    self.packet(open.replace((*one, None)))?;
                }
                (place, Some((_, last))) if place == to => {
                    self.between += u64::from(last.replace(*one).is_some());
                }
                (place, None) if place == to => self.only_at_to += 1,
                _ => self.between += 1,
            }
        }
        self.packet(open)
    }

    fn packet(
        &mut self,
        packet: Option<(Sighting, Option<Sighting>)>,
    ) -> Result<(), SightingsError> {
        let Some((first, last)) = packet else {
            return Ok(());
        };
        if self.joined.packets.len() == PACKETS_MAX {
            return Err(SightingsError::Packets);
        }
        self.joined.packets.push(Packet {
            stream: StreamIx(0),
            stamp: Stamp {
                seq: first.number,
                intended: first.at,
                sent: first.at,
                received: last.map(|last| last.at),
                ..Stamp::default()
            },
            run: last.map(|last| RunIx(last.run.into())),
            matched: match last {
                Some(_) => Match::Sequence,
                None => Match::None(NoMatch::NotSeenAgain),
            },
        });
        Ok(())
    }
}
