//! A function's parts and where their copies lie.
use crate::Refused;
use std::ops::Range;

/// A contiguous part of a function and its copy. All values about the copy are offsets from the segment's base.
#[derive(Debug, Clone)]
pub struct Piece<'a> {
    /// Addresses in the file.
    pub original: Range<u64>,
    /// From the first byte of the entry probe, for the first piece, to the end.
    pub copy: Range<u64>,
    /// Every instruction's address in the file, and the offset of what stands for it, inserted code before it included. Ascending in both.
    pub map: &'a [(u64, u64)],
    /// From this offset on so many more bytes are on the stack than the original has there. Ascending; 0 ends it.
    pub pushed: &'a [(u64, i32)],
    /// Inserted code that lies elsewhere. Ascending.
    pub asides: &'a [Aside<'a>],
    /// Calls whose exceptions land elsewhere than at what stands for their landing pad. Ascending.
    pub landings: &'a [Landing],
}

/// Where exceptions land that pass a call.
#[derive(Debug, Clone)]
pub struct Landing {
    /// In the file.
    pub call: Range<u64>,
    /// Offset from the segment's base.
    pub at: u64,
}

/// Code apart from a copy, where frames are as at an instruction of the original.
#[derive(Debug, Clone)]
pub struct Aside<'a> {
    /// Offsets from the segment's base.
    pub copy: Range<u64>,
    /// Address in the file; the piece's end stands for what follows its last instruction.
    pub svma: u64,
    /// As of the piece.
    pub pushed: &'a [(u64, i32)],
}

impl Aside<'_> {
    pub fn pushed_at(&self, offset: u64) -> i32 {
        at(self.pushed, offset)
    }
}

/// What holds at `offset`.
fn at(pushed: &[(u64, i32)], offset: u64) -> i32 {
    let after = pushed.partition_point(|p| p.0 <= offset);
    after.checked_sub(1).map_or(0, |n| pushed[n].1)
}

/// Offsets are to fit 32 bits, signed, with the tables behind the copies.
pub const FARTHEST: u64 = 1 << 30;

impl Piece<'_> {
    /// What stands for the instruction at `svma`.
    pub fn instruction(&self, svma: u64) -> Option<u64> {
        let found = self.map.binary_search_by_key(&svma, |m| m.0);
        found.ok().map(|n| self.map[n].1)
    }

    /// Where what begins at `svma` begins in the copy: what was inserted before the first instruction belongs to it.
    pub fn begin(&self, svma: u64) -> Result<u64, Refused> {
        match svma == self.original.start {
            true => Ok(self.copy.start),
            false => self.instruction(svma).ok_or(Refused::Location { svma }),
        }
    }

    /// Where what ends at `svma` ends in the copy.
    pub fn end(&self, svma: u64) -> Result<u64, Refused> {
        match svma == self.original.end {
            true => Ok(self.copy.end),
            false => self.instruction(svma).ok_or(Refused::Location { svma }),
        }
    }

    /// More bytes on the stack at `offset`.
    pub fn pushed_at(&self, offset: u64) -> i32 {
        at(self.pushed, offset)
    }

    fn check(&self) -> Result<(), Refused> {
        let ascending = self.map.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1);
        let inside = |m: &(u64, u64)| self.original.contains(&m.0) && self.copy.contains(&m.1);
        if self.original.is_empty() || self.copy.is_empty() || self.copy.end > FARTHEST {
            return Err(Refused::Pieces("an empty range, or one that ends too far"));
        }
        if !ascending || !self.map.iter().all(inside) {
            return Err(Refused::Pieces("the map does not ascend inside its ranges"));
        }
        if !self.pushed.is_sorted_by_key(|p| p.0) {
            return Err(Refused::Pieces("pushes do not ascend"));
        }
        let lies = |a: &Aside| !a.copy.is_empty() && a.copy.end <= FARTHEST;
        let of_this = |a: &Aside| self.original.contains(&a.svma) || a.svma == self.original.end;
        let good = |a: &Aside| lies(a) && of_this(a) && a.pushed.is_sorted_by_key(|p| p.0);
        if !self.asides.iter().all(good) {
            return Err(Refused::Pieces("code apart of no place in it"));
        }
        let apart = |a: &Landing, b: &Landing| a.call.end <= b.call.start;
        let lands = |l: &Landing| !l.call.is_empty() && l.at <= FARTHEST;
        if !self.landings.is_sorted_by(apart) || !self.landings.iter().all(lands) {
            return Err(Refused::Pieces("landings that do not ascend"));
        }
        if !self.asides.is_sorted_by(|a, b| a.copy.end <= b.copy.start) {
            return Err(Refused::Pieces("code apart does not ascend"));
        }
        Ok(())
    }
}

pub fn check(pieces: &[Piece]) -> Result<(), Refused> {
    pieces.iter().try_for_each(Piece::check)?;
    disjoint(pieces.iter().map(|p| p.original.clone()).collect())?;
    disjoint(pieces.iter().map(|p| p.copy.clone()).collect())
}

pub fn disjoint(mut ranges: Vec<Range<u64>>) -> Result<(), Refused> {
    ranges.sort_by_key(|r| r.start);
    match ranges.is_sorted_by(|a, b| a.end <= b.start) {
        true => Ok(()),
        false => Err(Refused::Pieces("its parts overlap")),
    }
}
