//! One entry, as far as it covers a piece: decoded.
use super::segments::find;
use super::{Cie, Fde, Module};
use crate::cfi::{self, Decoder, Program};
use crate::expression::RIP;
use crate::lsda::{self, Lsda};
use crate::{Refused, pointer};
use gimli::{EhFrameOffset, UnwindSection};
use std::ops::Range;

/// What the copies of one CIE's entries share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Common {
    pub data_align: i64,
    /// Encoding and value: absolute, the routine's address or that of the slot that holds it.
    pub personality: Option<(u8, u64)>,
    pub is_signal_frame: bool,
    pub has_lsda: bool,
}

/// An unwind entry, as far as it covers a piece.
#[derive(Debug)]
pub struct Part<'d> {
    /// Index of the piece.
    pub piece: usize,
    pub range: Range<u64>,
    pub common: Common,
    pub initial: Program<'d>,
    pub program: Program<'d>,
    pub lsda: Option<Lsda<'d>>,
}

/// What an entry may have for each byte of its function, and apart from that: decoded instructions need memory.
const MOST_OF_FDE: (u64, u64) = (16, 1 << 10);

impl<'d> Module<'d> {
    pub(super) fn part(
        &self,
        piece: usize,
        range: Range<u64>,
        at: EhFrameOffset,
    ) -> Result<Part<'d>, Refused> {
        let unreadable = |e: gimli::Error| Refused::EhFrame {
            at: range.start,
            why: e.to_string(),
        };
        let (section, bases) = (&self.section, &self.bases);
        let fde = section
            .fde_from_offset(bases, at, |_, _, at| self.cie(at))
            .map_err(unreadable)?;
        let most = fde.len().saturating_mul(MOST_OF_FDE.0);
        let most = most.saturating_add(MOST_OF_FDE.1);
        let is_there = find(&self.segments, fde.initial_address())
            .is_some_and(|s| fde.len() <= s.data.len() as u64);
        if !is_there || fde.entry_len() as u64 > most {
            return Err(Refused::EhFrame {
                at: range.start,
                why: "an entry that is too long, or of a function that is not in the file".into(),
            });
        }
        let cie = fde.cie();
        if cie.return_address_register().0 != RIP {
            return Err(Refused::ReturnRegister {
                svma: range.start,
                register: cie.return_address_register().0,
            });
        }
        let mut decoder = Decoder::new(
            section,
            cie.code_alignment_factor(),
            cie.data_alignment_factor(),
        );
        let start = fde.initial_address();
        let initial = decoder.decode(cie.instructions(section, bases), start)?;
        let plain = |s: &(u64, cfi::Op)| s.0 == start && !matches!(s.1, cfi::Op::Remember);
        if !initial.steps.iter().all(plain) {
            return Err(Refused::Rule {
                svma: start,
                what: "initial instructions that are unusual",
            });
        }
        let program = decoder.decode(fde.instructions(section, bases), start)?;
        let personality = self.personality(cie)?;
        let lsda = match (personality, self.lsda_address(&fde)?) {
            (Some(_), Some(address)) => Some(self.lsda(address, &fde, &range)?),
            // Without a routine nobody reads it.
            _ => None,
        };
        Ok(Part {
            piece,
            range,
            common: Common {
                data_align: cie.data_alignment_factor(),
                personality,
                is_signal_frame: cie.is_signal_trampoline(),
                has_lsda: lsda.is_some(),
            },
            initial,
            program,
            lsda,
        })
    }

    fn personality(&self, cie: &Cie<'d>) -> Result<Option<(u8, u64)>, Refused> {
        let Some((encoding, at)) = cie.personality_with_encoding() else {
            return Ok(None);
        };
        pointer::check(encoding.0, "personality", self.absolute_is_final)?;
        let indirect = encoding.0 & pointer::INDIRECT;
        let svma = at.pointer();
        // Zero, relative to its own place: there is none.
        if svma == 0 || self.lies_in(svma, cie.offset(), cie.entry_len()) {
            let encoding = encoding.0;
            let what = "personality, which is zero";
            return Err(Refused::PointerEncoding { what, encoding });
        }
        Ok(Some((
            pointer::ABSOLUTE | indirect,
            svma.wrapping_add(self.bias),
        )))
    }

    fn lsda_address(&self, fde: &Fde<'d>) -> Result<Option<u64>, Refused> {
        let (Some(encoding), Some(at)) = (fde.cie().lsda_encoding(), fde.lsda()) else {
            return Ok(None);
        };
        pointer::check(encoding.0, "exception table", self.absolute_is_final)?;
        let gimli::Pointer::Direct(svma) = at else {
            let (what, encoding) = ("exception table", encoding.0);
            return Err(Refused::PointerEncoding { what, encoding });
        };
        // Zero means none, and gimli has added the field's own address.
        let none = svma == 0 || self.lies_in(svma, fde.offset(), fde.entry_len());
        Ok((!none).then_some(svma))
    }

    /// Whether an address is inside this entry of `.eh_frame`.
    fn lies_in(&self, svma: u64, offset: usize, len: usize) -> bool {
        let base = self.bases.eh_frame.section.unwrap_or(0);
        let inside = svma.wrapping_sub(base).wrapping_sub(offset as u64);
        // The length does not count its own field: 4 bytes, or 12 that begin with this (LSB, "Common Information Entry"). One
        // byte more, and the exception table that follows the last entry is taken for none.
        let is_long = self
            .data
            .get(offset..)
            .is_some_and(|d| d.starts_with(&[0xff; 4]));
        inside < len as u64 + if is_long { 12 } else { 4 }
    }

    fn lsda(&self, svma: u64, fde: &Fde<'d>, range: &Range<u64>) -> Result<Lsda<'d>, Refused> {
        let why = "it is not in the file";
        let bytes = find(&self.segments, svma).ok_or(Refused::Lsda { svma, why })?;
        let function = fde.initial_address()..fde.end_address();
        let mut lsda = lsda::read(bytes, svma, &function, self.bias)?;
        lsda.cut(range);
        Ok(lsda)
    }
}
