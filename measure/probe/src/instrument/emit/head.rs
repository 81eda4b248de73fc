//! The beginning of a function whose entry is replaced: the same instructions elsewhere, and on in the original body.
use crate::instrument::asm::{Asm, Zone};
use crate::instrument::body::unit::{Insn, Op, Piece};

/// `from`: the piece that `head` lies in, and what its addresses in the process are above those of the file. Returns
/// each instruction with the offset of its copy, and the end of the last.
pub fn original(asm: &mut Asm, zone: Zone, head: &[Insn], from: (&Piece, u64)) -> Vec<(u64, u32)> {
    let (piece, bias) = from;
    let mut map = Vec::with_capacity(head.len() + 1);
    for insn in head {
        map.push((insn.svma, asm.position(zone)));
        let at = (insn.svma - piece.svma) as usize;
        let bytes = &piece.bytes[at..at + insn.len as usize];
        let mut outside = |target: u64| asm.label_at(target.wrapping_add(bias));
        match insn.op {
            Op::Plain => asm.bytes(zone, bytes),
            Op::RipRelative { disp_at, target } | Op::IndirectTail { disp_at, target } => {
                let (target, disp_at) = (outside(target), disp_at as usize);
                let (before, after) = (&bytes[..disp_at], &bytes[disp_at + 4..]);
                asm.rel32(zone, before, target, after);
            }
            Op::Call { target } => {
                let target = outside(target);
                asm.rel32(zone, &bytes[..bytes.len() - 4], target, &[]);
            }
            Op::Jump { target } => {
                let target = outside(target);
                asm.rel32(zone, &[0xe9], target, &[]);
            }
            Op::JumpIf { target, condition } => {
                let target = outside(target);
                asm.rel32(zone, &[0x0f, 0x80 | condition], target, &[]);
            }
            Op::ShortOnly { target } => {
                let target = outside(target);
                asm.bytes(zone, &bytes[..bytes.len() - 1]);
                asm.bytes(zone, &[2, 0xeb, 5]);
                asm.rel32(zone, &[0xe9], target, &[]);
            }
            Op::IndirectJump | Op::Ret => asm.bytes(zone, bytes),
        }
    }
    if let Some(last) = head.last() {
        map.push((last.next(), asm.position(zone)));
        if last.goes_on() {
            let target = asm.label_at(last.next().wrapping_add(bias));
            asm.rel32(zone, &[0xe9], target, &[]);
        }
    }
    map
}
