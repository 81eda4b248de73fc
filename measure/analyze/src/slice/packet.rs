//! One packet: its pieces, its regions and the whole of it.
use super::PieceFlags;
use super::correct::Constants;
use super::layout::{Layouts, NameIx};
use hopscope_event::slice::{Point, SliceEntry, SliceFlags, SliceRecord, StampWord};

/// A time between two stamps, in ns, or in events when the recording is of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// As the stamps read.
    pub raw: u64,
    /// What the probes are known to have cost in it; `None`: not calibrated.
    pub correction: Option<u64>,
    pub flags: PieceFlags,
}

impl Span {
    /// `None`: not calibrated.
    pub fn corrected(&self) -> Option<u64> {
        Some(self.raw.saturating_sub(self.correction?))
    }

    /// Corrected where that can be.
    pub fn best(&self) -> u64 {
        self.corrected().unwrap_or(self.raw)
    }
}

/// From one stamp to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub name: NameIx,
    pub from: Point,
    pub to: Point,
    pub span: Span,
}

/// A region whose both points were stamped, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionTime {
    /// Position in the recording's regions.
    pub region: u32,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketSlices {
    /// In the order of time; the sum of their raw times is that of the whole.
    pub pieces: Vec<Piece>,
    pub regions: Vec<RegionTime>,
    /// Regions of a queueing discipline that the packet went past.
    pub bypassed: Vec<NameIx>,
    /// From the first to the last stamp.
    pub whole: Span,
    /// What the probes of its own way cost, in ns; `None`: not known.
    pub own_cost_ns: Option<u64>,
    /// The kernel's reason, of a packet that it dropped.
    pub dropped: Option<u16>,
    /// Stamps that are earlier than one of a point before theirs.
    pub out_of_order: u32,
    /// Regions that ended before they began: without a time.
    pub backwards: u32,
}

/// Makes [`PacketSlices`] of the records of one recording.
pub struct Slicer {
    layouts: Layouts,
    constants: Constants,
    regions: Vec<String>,
}

impl Slicer {
    pub fn new(entry: &SliceEntry) -> Slicer {
        let has_hook = |point: Point| {
            let mut hooks = entry.hooks.iter();
            hooks.any(|hook| hook.point == point && hook.missing.is_none())
                && entry.points.contains(&point)
        };
        let watched = has_hook(Point::TxQdiscEnqueue) && has_hook(Point::TxQdiscDequeue);
        Slicer {
            layouts: Layouts::new(&entry.regions, watched),
            constants: Constants::of(entry),
            regions: entry.regions.iter().map(|r| r.name.clone()).collect(),
        }
    }

    pub fn name(&self, ix: NameIx) -> &str {
        self.named(ix).map_or("?", |(name, _)| name)
    }

    /// Where the first piece of that name began: names in this order are in that of the way.
    pub fn place(&self, ix: NameIx) -> Option<Point> {
        self.named(ix).map(|(_, from)| *from)
    }

    fn named(&self, ix: NameIx) -> Option<&(String, Point)> {
        self.layouts.names().get(ix.0 as usize)
    }

    pub fn region(&self, ix: u32) -> &str {
        self.regions.get(ix as usize).map_or("?", String::as_str)
    }

    pub fn slice(&mut self, record: &SliceRecord) -> PacketSlices {
        let by_point: Vec<(Point, StampWord)> = record.taken().collect();
        let mut stamps = by_point.clone();
        stamps.sort_by_key(|(point, word)| (word.delta(), *point));
        let order: Vec<Point> = stamps.iter().map(|(point, _)| *point).collect();
        let bypassed = record.flags.contains(SliceFlags::QDISC_BYPASSED);
        let layout = self.layouts.of(&order, bypassed);
        let span = |from: usize, to: usize| self.span(&stamps[from..=to]);
        let pieces = layout.pieces.iter().enumerate().map(|(at, piece)| {
            let mut span = span(at, at + 1);
            span.flags |= piece.flags;
            Piece {
                name: piece.name,
                from: order[at],
                to: order[at + 1],
                span,
            }
        });
        let regions = layout.regions.iter().map(|region| RegionTime {
            region: region.region,
            span: span(region.from, region.to),
        });
        let mut whole = match stamps.len() {
            0 => Span::default(),
            len => span(0, len - 1),
        };
        if record.flags.contains(SliceFlags::TX_UNSEEN) {
            whole.flags |= PieceFlags::HEAD_UNSEEN;
        }
        PacketSlices {
            pieces: pieces.collect(),
            regions: regions.collect(),
            bypassed: layout.bypassed.clone(),
            whole,
            own_cost_ns: self.constants.of_own(order.iter().copied()),
            dropped: record
                .flags
                .contains(SliceFlags::DROPPED)
                .then_some(record.drop_reason),
            out_of_order: out_of_order(&by_point),
            backwards: layout.backwards,
        }
    }

    fn span(&self, stamps: &[(Point, StampWord)]) -> Span {
        let (Some((_, first)), Some((_, last))) = (stamps.first(), stamps.last()) else {
            return Span::default();
        };
        let raw = u64::from(last.delta()) - u64::from(first.delta());
        if stamps.len() < 2 {
            return Span {
                raw,
                correction: Some(0),
                flags: PieceFlags::NONE,
            };
        }
        let (correction, mut flags) = self.constants.correction(stamps);
        if correction.is_some_and(|c| c > raw) {
            flags |= PieceFlags::BELOW_ZERO;
        }
        if last.is_saturated() {
            flags |= PieceFlags::SATURATED;
        }
        Span {
            raw,
            correction,
            flags,
        }
    }
}

fn out_of_order(by_point: &[(Point, StampWord)]) -> u32 {
    let mut latest = 0;
    let earlier = by_point.iter().filter(|(_, word)| {
        let is_earlier = word.delta() < latest;
        latest = latest.max(word.delta());
        is_earlier
    });
    earlier.count() as u32
}
