//! Functions of a file, copied in thought and converted.
use super::Memory;
use super::copy::Copy;
use super::rows::{Fde, Reader};
use gimli::{BaseAddresses, EhFrame};
use hopscope_unwind::{Module, Piece, Refused, Tables};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug, Default)]
pub struct Seen {
    pub converted: usize,
    pub refused: BTreeMap<String, usize>,
    pub landing: usize,
    pub types: usize,
    pub filters: usize,
    /// Landing pads in another entry's range.
    pub apart: usize,
    /// One entry in two pieces.
    pub split: usize,
    pub pushed: usize,
    /// Tables that name the base of their landing pads.
    pub based: usize,
    /// Inserted code that lies apart, and such where something lands.
    pub asides: usize,
    pub landing_asides: usize,
}

pub struct Originals<'s, 'd> {
    pub memory: &'s Memory<'d>,
    pub eh_frame: &'s EhFrame<Reader<'d>>,
    pub bases: &'s BaseAddresses,
    pub fdes: &'s [Fde<'d>],
    pub module: &'s Module<'d>,
    pub tables: Tables,
    /// Entries of each function with their copies.
    pub functions: Vec<Vec<(usize, Copy)>>,
    pub next: u64,
    pub seen: Seen,
}

/// Of code apart alone.
pub const CHANGED: &str = "a register that probes change";

impl Originals<'_, '_> {
    /// A function: an entry, and those that its landing pads lie in.
    pub fn add(&mut self, first: usize) {
        let mut members = self.pieces(first);
        loop {
            let ranges: Vec<_> = members.iter().map(|m| m.1.clone()).collect();
            let checked = self.module.check(&ranges);
            if let Err(Refused::LandingPadOutside { pad }) = checked {
                let other = self.fdes.iter().position(|f| f.contains(pad)).unwrap();
                assert!(members.iter().all(|m| m.0 != other), "{pad:#x}");
                members.push((other, range_of(&self.fdes[other])));
                self.seen.apart += 1;
                continue;
            }
            let mut copies = Vec::new();
            // The last first: landing pads lie before the calls, too.
            for range in ranges.into_iter().rev() {
                let copy = Copy::of(self.memory, range, self.next);
                self.next = copy.end() + 16;
                copies.insert(0, copy);
            }
            let before = self.tables.len();
            let mut added = self.converted(&copies);
            if added.as_ref().is_err_and(is_changed) {
                assert_eq!(self.tables.len(), before);
                *self.seen.refused.entry(CHANGED.into()).or_default() += 1;
                // The rest of its rules is as good as another's.
                copies.iter_mut().for_each(|copy| copy.apart.clear());
                added = self.converted(&copies);
            }
            assert_eq!(checked, added);
            match added {
                Ok(()) => {
                    self.seen.converted += 1;
                    let entries = members.into_iter().map(|m| m.0);
                    self.functions.push(entries.zip(copies).collect());
                }
                Err(why) => {
                    assert_eq!(self.tables.len(), before);
                    let name = match why {
                        Refused::Rule { what, .. } => what.to_string(),
                        Refused::Lsda { why, .. } => why.to_string(),
                        why => format!("{why:?}"),
                    };
                    *self.seen.refused.entry(name).or_default() += 1;
                }
            }
            return;
        }
    }

    fn converted(&mut self, copies: &[Copy]) -> Result<(), Refused> {
        let asides: Vec<_> = copies.iter().map(Copy::asides).collect();
        let pieces = copies.iter().zip(&asides);
        let pieces: Vec<Piece> = pieces.map(|(copy, asides)| copy.piece(asides)).collect();
        self.tables.add(self.module, &pieces)
    }

    /// An entry's range; every third time in two, cut before some instruction in the middle.
    fn pieces(&mut self, n: usize) -> Vec<(usize, Range<u64>)> {
        let range = range_of(&self.fdes[n]);
        let whole = Copy::of(self.memory, range.clone(), 0);
        let middle = whole.map[whole.map.len() / 2].0;
        if !n.is_multiple_of(3) || middle == range.start {
            return vec![(n, range)];
        }
        self.seen.split += 1;
        vec![(n, range.start..middle), (n, middle..range.end)]
    }
}

fn is_changed(why: &Refused) -> bool {
    matches!(why, Refused::Rule { what, .. } if *what == CHANGED)
}

fn range_of(fde: &Fde) -> Range<u64> {
    fde.initial_address()..fde.end_address()
}
