//! The functions that unwinders ask for unwind tables, and what answers in their place.
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::body::unit::{Insn, JUMP_BYTES, Op, Piece, Unit};
use crate::instrument::body::unwinders::{self, FIND_OBJECT};
use crate::instrument::emit::head;
use crate::instrument::emit::lookup;
use crate::locate::Image;
use iced_x86::{Decoder, DecoderOptions, OpKind, Register};
use std::ops::Range;
use std::sync::Arc;

/// A function that unwinders ask.
#[derive(Clone)]
pub struct Asked {
    pub(super) image: Arc<Image>,
    range: Range<u64>,
    pub(super) bias: u64,
    /// Where its module is mapped.
    pub(super) module: Range<u64>,
}

/// What answers in the place of a function.
pub(super) struct Answer {
    pub code: Asm,
    pub entry: Label,
    /// Its first instructions in the file, and where they are in the hot zone.
    pub moved: Vec<(u64, u32)>,
}

/// The functions of `images` that every unwinder of their process asks: a module and the function's range in its file.
///
/// # Errors
/// Why unwinders cannot be given the tables of copies there, in words.
pub fn sites(images: &[&Image]) -> Result<Vec<(usize, Range<u64>)>, String> {
    let sites = unwinders::asked(images)?.into_iter().map(|(m, n)| {
        let function = &images[m].functions()[n];
        let range = function.svma..function.svma + function.size;
        let (unit, piece) = decoded(images[m], &range)?;
        head_of(&unit, &piece).map(|_| (m, range.clone()))
    });
    sites.collect()
}

fn decoded<'a>(image: &'a Image, range: &Range<u64>) -> Result<(Unit, Piece<'a>), String> {
    let bytes = image.bytes(range.clone()).unwrap_or_default();
    let piece = Piece {
        svma: range.start,
        bytes,
    };
    let unit =
        Unit::again(std::slice::from_ref(&piece), false, false).map_err(|why| why.to_string())?;
    let window = unit.patch_at + 1..unit.patch_at + JUMP_BYTES;
    match image.branch_targets().any_in(window) {
        true => Err(format!("something jumps into the entry of {FIND_OBJECT}")),
        false => Ok((unit, piece)),
    }
}

/// The instructions under the jump.
fn head_of<'u>(unit: &'u Unit, piece: &Piece) -> Result<&'u [Insn], String> {
    // Through a pointer of an object (`_rtld_global_ro`), not through a table of the function's own.
    let leaves = |insn: &Insn| {
        let at = (insn.svma - piece.svma) as usize;
        let jump = Decoder::new(64, &piece.bytes[at..], DecoderOptions::NONE).decode();
        jump.op0_kind() == OpKind::Memory && jump.memory_index() == Register::None
    };
    let mut computed = unit.insns().filter(|insn| insn.op == Op::IndirectJump);
    let head = unit.head_unless_computed().filter(|_| computed.all(leaves));
    let head = head.filter(|head| {
        head.iter()
            .all(|i| matches!(i.op, Op::Plain | Op::RipRelative { .. }))
    });
    head.ok_or_else(|| format!("the first instructions of {FIND_OBJECT} cannot be moved"))
}

impl Asked {
    /// `range`: of the function in its file, `module`: where the file is mapped, `bias` above its own addresses.
    pub fn new(image: Arc<Image>, range: Range<u64>, bias: u64, module: Range<u64>) -> Asked {
        Asked {
            image,
            range,
            bias,
            module,
        }
    }

    fn unit(&self) -> Result<(Unit, Piece<'_>), String> {
        decoded(&self.image, &self.range)
    }

    pub(super) fn patch_at(&self) -> Result<u64, String> {
        Ok(self.unit()?.0.patch_at.wrapping_add(self.bias))
    }

    /// What answers in its place, but for the address of the slots, which does not change its length.
    pub(super) fn emit(&self, slots_at: u64) -> Result<Answer, String> {
        let (unit, piece) = self.unit()?;
        let first = head_of(&unit, &piece)?;
        let mut asm = Asm::new();
        let entry = asm.label();
        asm.bind(Zone::Hot, entry);
        asm.bytes(Zone::Hot, &lookup::find_object(slots_at));
        let map = head::original(&mut asm, Zone::Hot, first, (&piece, self.bias));
        Ok(Answer {
            code: asm,
            entry,
            moved: map,
        })
    }
}
