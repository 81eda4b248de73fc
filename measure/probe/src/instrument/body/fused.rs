//! Calls that are made right behind the return of another one: nothing lies between but a few instructions that take no time
//! to speak of, and nobody comes there by another way.
use super::unit::{DecodedPiece, Insn, Op, Piece, Unit};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::collections::{HashMap, HashSet};

/// Instructions between the return and the call, at most.
pub const FEW: usize = 8;

/// A call, and what was called before it: addresses in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    pub call: u64,
    pub callee: u64,
    pub before: u64,
}

/// Of the direct calls of a function those that come so, of callees that `is_measured` knows. Nothing where computed jumps
/// may lead anywhere.
pub fn find(unit: &Unit, pieces: &[Piece], is_measured: impl Fn(u64) -> bool) -> Vec<Behind> {
    if unit.has_indirect_jump {
        return Vec::new();
    }
    let targets: HashSet<u64> = unit.insns().filter_map(|insn| leads_to(&insn.op)).collect();
    let mut found = Vec::new();
    for (decoded, piece) in unit.pieces.iter().zip(pieces) {
        of_piece(decoded, piece, &targets, &is_measured, &mut found);
    }
    found
}

/// The number of each call by its address.
pub fn by_call(all: &[Behind]) -> HashMap<u64, usize> {
    let numbered = all.iter().enumerate();
    numbered.map(|(n, behind)| (behind.call, n)).collect()
}

fn leads_to(op: &Op) -> Option<u64> {
    match *op {
        Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target } => Some(target),
        _ => None,
    }
}

fn of_piece(
    decoded: &DecodedPiece,
    piece: &Piece,
    targets: &HashSet<u64>,
    is_measured: impl Fn(u64) -> bool,
    found: &mut Vec<Behind>,
) {
    // What returned last, and how many instructions ago.
    let mut last: Option<(u64, usize)> = None;
    for insn in &decoded.insns {
        if targets.contains(&insn.svma) {
            last = None;
        }
        if let Op::Call { target } = insn.op {
            // e8 and its displacement: with a prefix it is another instruction.
            let measured = is_measured(target) && insn.len == 5;
            if let Some((before, _)) = last.filter(|_| measured) {
                found.push(Behind {
                    call: insn.svma,
                    callee: target,
                    before,
                });
            }
            last = measured.then_some((target, 0));
            continue;
        }
        last = last
            .map(|(before, few)| (before, few + 1))
            .filter(|(_, few)| *few <= FEW && insn.goes_on() && takes_no_time(insn, piece));
    }
}

/// It waits for nobody, calls nobody, and does its work once.
fn takes_no_time(insn: &Insn, piece: &Piece) -> bool {
    match insn.op {
        Op::Plain | Op::RipRelative { .. } => {
            let at = (insn.svma - piece.svma) as usize;
            let bytes = &piece.bytes[at..at + insn.len as usize];
            let ins = Decoder::with_ip(64, bytes, insn.svma, DecoderOptions::NONE).decode();
            is_common(ins.mnemonic()) && !ins.has_lock_prefix()
        }
        Op::JumpIf { .. } => true,
        _ => false,
    }
}

/// What compilers put between two calls; of the other thousand some wait, trap or serialize.
fn is_common(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Add, And, Cdq, Cdqe, Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle,
        Cmovne, Cmovns, Cmovs, Cmp, Cqo, Cwde, Dec, Inc, Lea, Mov, Movaps, Movd, Movdqa, Movdqu,
        Movq, Movsd, Movss, Movsx, Movsxd, Movups, Movzx, Neg, Nop, Not, Or, Pxor, Sar, Seta,
        Setae, Setb, Setbe, Sete, Setg, Setge, Setl, Setle, Setne, Sets, Shl, Shr, Sub, Test, Xor,
        Xorps,
    };
    #[rustfmt::skip]
    let common = matches!(
        mnemonic,
        Add | And | Cdq | Cdqe | Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovg | Cmovge | Cmovl | Cmovle | Cmovne
            | Cmovns | Cmovs | Cmp | Cqo | Cwde | Dec | Inc | Lea | Mov | Movaps | Movd | Movdqa | Movdqu | Movq | Movsd
            | Movss | Movsx | Movsxd | Movups | Movzx | Neg | Nop | Not | Or | Pxor | Sar | Seta | Setae
            | Setb | Setbe | Sete | Setg | Setge | Setl | Setle | Setne | Sets | Shl | Shr | Sub | Test | Xor | Xorps
    );
    common
}
