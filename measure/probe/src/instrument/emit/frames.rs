//! What unwind tables of a copy are made from: where its instructions lie, and how much more is on the stack within
//! code that was inserted.
use crate::instrument::asm::{Asm, Zone};
use crate::instrument::body::unit::{DecodedPiece, Insn, Op};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
use std::ops::Range;

/// A piece of a function and its copy, in offsets of a zone.
#[derive(Debug, Clone)]
pub struct Part {
    /// Addresses in the file.
    pub original: Range<u64>,
    pub zone: Zone,
    pub copy: Range<u32>,
    /// Instructions and what stands for them, code inserted before included. Ascending.
    pub map: Vec<(u64, u32)>,
    /// From an offset on, bytes on the stack beyond those of the original.
    pub pushed: Vec<(u32, i32)>,
}

impl Part {
    /// `map`: of this piece alone.
    pub fn of(
        asm: &Asm,
        zone: Zone,
        piece: &DecodedPiece,
        copy: Range<u32>,
        map: &[(u64, Zone, u32)],
    ) -> Part {
        let mut pushed = Vec::new();
        if let Some(first) = map.first() {
            follow(asm, zone, copy.start..first.2, &mut pushed);
        }
        let ends = map.iter().skip(1).map(|m| m.2).chain([copy.end]);
        for ((insn, at), end) in piece.insns.iter().zip(map).zip(ends) {
            if inserts_before(insn, piece) {
                follow(asm, zone, at.2..end, &mut pushed);
            }
        }
        Part {
            original: piece.range.clone(),
            zone,
            copy,
            map: map.iter().map(|(svma, _, at)| (*svma, *at)).collect(),
            pushed,
        }
    }
}

/// Probes, and what translates computed jumps.
fn inserts_before(insn: &Insn, piece: &DecodedPiece) -> bool {
    match insn.op {
        Op::Ret | Op::IndirectTail { .. } | Op::IndirectJump => true,
        Op::Jump { target } => !piece.range.contains(&target),
        _ => false,
    }
}

/// Inserted code runs from its beginning to its end, or leaves for what lies out of line.
fn follow(asm: &Asm, zone: Zone, code: Range<u32>, pushed: &mut Vec<(u32, i32)>) {
    let bytes = asm.zone_bytes(zone, code.clone());
    let mut decoder = Decoder::with_ip(64, bytes, u64::from(code.start), DecoderOptions::NONE);
    let (mut ins, mut depth) = (Instruction::default(), 0);
    while decoder.can_decode() {
        decoder.decode_out(&mut ins);
        if ins.flow_control() == FlowControl::Return {
            break;
        }
        let down = lowers(&ins);
        if down != 0 {
            depth += down;
            pushed.push((ins.next_ip() as u32, depth));
        }
    }
    if depth != 0 {
        pushed.push((code.end, 0));
    }
}

/// Bytes by which an instruction lowers the stack pointer.
fn lowers(ins: &Instruction) -> i32 {
    match ins.mnemonic() {
        Mnemonic::Lea
            if ins.op0_register() == Register::RSP && ins.memory_base() == Register::RSP =>
        {
            (ins.memory_displacement64() as i64 as i32).wrapping_neg()
        }
        // What is called returns with the stack as it was.
        Mnemonic::Call => 0,
        _ => ins.stack_pointer_increment().wrapping_neg(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(code: &[u8]) -> Vec<(u32, i32)> {
        let mut asm = Asm::new();
        asm.bytes(Zone::Hot, code);
        let mut pushed = Vec::new();
        follow(&asm, Zone::Hot, 0..code.len() as u32, &mut pushed);
        pushed
    }

    #[test]
    fn what_inserted_code_pushes() {
        // push rax; push rcx; pop rcx; pop rax
        assert_eq!(
            pushed(&[0x50, 0x51, 0x59, 0x58]),
            [(1, 8), (2, 16), (3, 8), (4, 0)]
        );
        // lea rsp, [rsp - 128]; push rax: left so, for what follows behind
        let over = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0xff, 0xff, 0xff, 0x50];
        assert_eq!(pushed(&over), [(8, 128), (9, 136), (9, 0)]);
        // A call leaves the stack as it was; behind a return nothing is inserted.
        assert_eq!(pushed(&[0xe8, 0, 0, 0, 0, 0xc3, 0x50]), []);
    }
}
