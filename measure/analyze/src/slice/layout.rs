//! Which regions the pieces of a packet are of. Most packets of a recording are stamped at the same
//! points in the same order: what follows from that is found once for each order.
use super::PieceFlags;
use hopscope_event::slice::{Point, RegionEntry};
use std::collections::HashMap;
use std::rc::Rc;

/// Number of a piece's name within a [`super::Slicer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameIx(pub u32);

/// More names than this are not told apart: a file may hold any order of stamps.
const NAMES_MAX: usize = 512;
const LAYOUTS_MAX: usize = 1024;

pub(super) struct PieceLayout {
    pub name: NameIx,
    pub flags: PieceFlags,
}

/// A region between two stamps that are its own.
pub(super) struct RegionLayout {
    /// Position in the recording's regions.
    pub region: u32,
    /// Positions in the order of time.
    pub from: usize,
    pub to: usize,
}

#[derive(Default)]
pub(super) struct Layout {
    /// From each stamp to the next.
    pub pieces: Vec<PieceLayout>,
    pub regions: Vec<RegionLayout>,
    /// Regions of a queueing discipline that was not used.
    pub bypassed: Vec<NameIx>,
    /// Regions whose end was stamped before their beginning.
    pub backwards: u32,
}

/// A region as far as a packet's stamps show it.
struct Seen {
    region: usize,
    from: usize,
    to: usize,
    exact: bool,
}

pub(super) struct Layouts {
    regions: Vec<RegionEntry>,
    /// Both points of the queueing discipline have hooks: a packet without stamps of them was not
    /// in one.
    qdisc_is_watched: bool,
    /// With where on the way it was first seen.
    names: Vec<(String, Point)>,
    by_name: HashMap<String, NameIx>,
    known: HashMap<(Vec<Point>, bool), Rc<Layout>>,
}

impl Layouts {
    pub(super) fn new(regions: &[RegionEntry], qdisc_is_watched: bool) -> Layouts {
        Layouts {
            regions: regions.to_vec(),
            qdisc_is_watched,
            names: Vec::new(),
            by_name: HashMap::new(),
            known: HashMap::new(),
        }
    }

    pub(super) fn names(&self) -> &[(String, Point)] {
        &self.names
    }

    fn named(&mut self, name: String, from: Point) -> NameIx {
        if let Some(ix) = self.by_name.get(&name) {
            return *ix;
        }
        let name = match self.names.len() + 1 < NAMES_MAX {
            true => name,
            false => "(other)".to_owned(),
        };
        let next = NameIx(self.names.len() as u32);
        let ix = *self.by_name.entry(name.clone()).or_insert(next);
        if ix == next {
            self.names.push((name, from));
        }
        ix
    }

    /// `order`: the points in the order of time, each at most once.
    pub(super) fn of(&mut self, order: &[Point], bypassed: bool) -> Rc<Layout> {
        let key = (order.to_vec(), bypassed);
        if let Some(layout) = self.known.get(&key) {
            return Rc::clone(layout);
        }
        if self.known.len() >= LAYOUTS_MAX {
            self.known.clear();
        }
        let layout = Rc::new(self.make(order, bypassed));
        self.known.insert(key, Rc::clone(&layout));
        layout
    }

    fn make(&mut self, order: &[Point], bypassed: bool) -> Layout {
        let mut layout = Layout::default();
        let bypassed = bypassed || (self.qdisc_is_watched && goes_past(order));
        let mut seen = Vec::new();
        for (region, entry) in self.regions.iter().enumerate() {
            if bypassed && is_of_qdisc(entry) {
                continue;
            }
            let Some(found) = see(region, entry, order) else {
                continue;
            };
            if found.from >= found.to {
                layout.backwards += u32::from(found.exact);
                continue;
            }
            if found.exact {
                layout.regions.push(RegionLayout {
                    region: region as u32,
                    from: found.from,
                    to: found.to,
                });
            }
            seen.push(found);
        }
        if bypassed {
            let of_qdisc = self.regions.iter().filter(|r| is_of_qdisc(r));
            let names: Vec<_> = of_qdisc.map(|r| (r.name.clone(), r.from)).collect();
            let names = names.into_iter();
            layout.bypassed = names.map(|(name, from)| self.named(name, from)).collect();
        }
        for at in 1..order.len() {
            let (name, flags) = self.name_piece(&seen, order, at);
            let name = self.named(name, order[at - 1]);
            layout.pieces.push(PieceLayout { name, flags });
        }
        layout
    }

    /// The piece that ends at `order[at]`.
    fn name_piece(&self, seen: &[Seen], order: &[Point], at: usize) -> (String, PieceFlags) {
        let entry = |seen: &Seen| &self.regions[seen.region];
        let covering: Vec<&Seen> = seen.iter().filter(|s| s.from < at && s.to >= at).collect();
        // A region around a smaller one says nothing that the smaller one does not.
        let is_inner = |s: &&&Seen| {
            let (of, ix) = (entry(s), s.region);
            !covering.iter().any(|other| {
                let (inner, same) = (entry(other), (of.from, of.to));
                let inside = of.from <= inner.from && inner.to <= of.to;
                inside && ((inner.from, inner.to) != same || other.region < ix)
            })
        };
        let mut inner: Vec<&Seen> = covering.iter().filter(is_inner).copied().collect();
        inner.sort_by_key(|s| (entry(s).from, s.region));
        let (from, to) = (order[at - 1], order[at]);
        let mut flags = PieceFlags::NONE;
        let Some(first) = inner.first() else {
            return (format!("{from}..{to}"), flags);
        };
        let mut name = entry(first).name.clone();
        for pair in inner.windows(2) {
            let together = (pair[0].from, pair[0].to) == (pair[1].from, pair[1].to);
            let apart = entry(pair[0]).to <= entry(pair[1]).from;
            let (joint, flag) = match together && apart {
                true => ('+', PieceFlags::MERGED),
                false => ('&', PieceFlags::OVERLAP),
            };
            name.push(joint);
            name += &entry(pair[1]).name;
            flags |= flag;
        }
        // What lies between the same two points as several regions together has the name for it.
        let is_same = |s: &&&Seen| s.exact && (s.from, s.to) == (at - 1, at);
        if flags == PieceFlags::MERGED
            && let Some(same) = covering.iter().find(is_same)
        {
            return (entry(same).name.clone(), PieceFlags::NONE);
        }
        let begins = inner.iter().all(|s| s.from == at - 1);
        let ends = inner.iter().all(|s| s.to == at);
        if inner.len() == 1 || !flags.contains(PieceFlags::OVERLAP) {
            match (begins, ends) {
                (true, true) => {}
                (true, false) => name += &format!("(..{to})"),
                (false, true) => name += &format!("({from}..)"),
                (false, false) => name += &format!("({from}..{to})"),
            }
        }
        let whole = begins && ends && inner.iter().all(|s| s.exact || inner.len() > 1);
        if !whole {
            flags |= PieceFlags::PART;
        }
        (name, flags)
    }
}

fn is_of_qdisc(region: &RegionEntry) -> bool {
    region.from >= Point::TxQdiscEnqueue && region.to <= Point::TxQdiscDequeue
}

/// Whether a packet came to its driver without having been in a queueing discipline.
fn goes_past(order: &[Point]) -> bool {
    let has = |points: &[Point]| points.iter().any(|point| order.contains(point));
    has(&[Point::TxIpOut, Point::TxDevQueue])
        && has(&[Point::TxDriver, Point::TxDone])
        && !has(&[Point::TxQdiscEnqueue, Point::TxQdiscDequeue])
}

/// From the last stamp at or before the region's beginning to the first at or after its end, both
/// by the order of points; `None` when all of it lies before the first stamp or after the last.
fn see(region: usize, entry: &RegionEntry, order: &[Point]) -> Option<Seen> {
    let (least, most) = (order.iter().min()?, order.iter().max()?);
    if entry.to <= *least || entry.from >= *most {
        return None;
    }
    let begin = order.iter().filter(|p| **p <= entry.from).max();
    let end = order.iter().filter(|p| **p >= entry.to).min();
    // Beyond the stamps nothing is known of it, unless it has one of its own.
    if (begin.is_none() && end != Some(&entry.to)) || (end.is_none() && begin != Some(&entry.from))
    {
        return None;
    }
    let exact = begin == Some(&entry.from) && end == Some(&entry.to);
    let place = |point: &Point| order.iter().position(|p| p == point);
    Some(Seen {
        region,
        from: place(begin.unwrap_or(least))?,
        to: place(end.unwrap_or(most))?,
        exact,
    })
}
