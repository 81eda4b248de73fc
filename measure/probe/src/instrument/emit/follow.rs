//! Inserted code followed instruction by instruction, also where it lies out of line: what it has pushed at each of them.
use crate::instrument::asm::{Asm, Label, Zone};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
use std::collections::BTreeMap;
use std::ops::Range;

/// The code of one function.
pub struct Code<'a> {
    asm: &'a Asm,
    /// What displacements refer to: they are not resolved yet.
    references: [Vec<(u32, Label)>; 4],
    /// What is called and does not return: it goes on by itself.
    continues: &'a [Label],
    /// Copies of the function's own instructions, and inserted code between them.
    copied: Vec<(Zone, Range<u32>)>,
}

/// Instructions by their places: where each ends, and the bytes that were pushed before it.
pub type Steps = BTreeMap<(Zone, u32), (u32, i32)>;

impl<'a> Code<'a> {
    /// `first`: number of the function's first displacement.
    pub fn new(
        asm: &'a Asm,
        first: usize,
        continues: &'a [Label],
        copied: Vec<(Zone, Range<u32>)>,
    ) -> Code<'a> {
        let mut references: [Vec<(u32, Label)>; 4] = Default::default();
        for (zone, at, label) in asm.references(first) {
            references[zone as usize].push((at, label));
        }
        Code {
            asm,
            references,
            continues,
            copied,
        }
    }

    /// From the first of `range` on, to its end, and to wherever it branches but copied instructions.
    pub fn follow(&self, zone: Zone, range: &Range<u32>) -> Steps {
        let mut steps = Steps::new();
        let mut left = vec![((zone, range.start), 0)];
        let ends = |at: (Zone, u32)| {
            let copied = || {
                let mut all = self.copied.iter();
                all.any(|(zone, range)| *zone == at.0 && range.contains(&at.1))
            };
            match at.0 == zone {
                true if range.contains(&at.1) => false,
                true if range.end == at.1 => true,
                _ => copied(),
            }
        };
        while let Some((mut at, mut pushed)) = left.pop() {
            while !ends(at) {
                if let Some((_, before)) = steps.get(&at) {
                    debug_assert_eq!(*before, pushed, "two depths at one place");
                    break;
                }
                let ins = self.decode(at);
                let next = ins.next_ip() as u32;
                steps.insert(at, (next, pushed));
                pushed += lowers(&ins);
                let reference = self.reference(at.0, &ins);
                let target = || match reference {
                    Some(label) => self.asm.place(label),
                    None => Some((at.0, ins.near_branch_target() as u32)),
                };
                match ins.flow_control() {
                    FlowControl::Next => {}
                    FlowControl::ConditionalBranch => left.extend(target().map(|t| (t, pushed))),
                    FlowControl::Call if reference.is_some_and(|l| self.continues.contains(&l)) => {
                        left.extend(target().map(|t| (t, pushed + 8)));
                        break;
                    }
                    FlowControl::Call => {}
                    FlowControl::UnconditionalBranch => {
                        left.extend(target().map(|t| (t, pushed)));
                        break;
                    }
                    _ => break,
                }
                at.1 = next;
            }
        }
        steps
    }

    fn decode(&self, (zone, at): (Zone, u32)) -> Instruction {
        let bytes = self.asm.zone_bytes(zone, at..self.asm.position(zone));
        Decoder::with_ip(64, bytes, u64::from(at), DecoderOptions::NONE).decode()
    }

    /// What an instruction's displacement, its last four bytes, refers to.
    fn reference(&self, zone: Zone, ins: &Instruction) -> Option<Label> {
        let at = (ins.next_ip() as u32)
            .checked_sub(4)
            .filter(|_| ins.len() >= 5)?;
        let known = &self.references[zone as usize];
        let found = known.binary_search_by_key(&at, |r| r.0).ok()?;
        Some(known[found].1)
    }
}

/// Of a routine that copies call, from an instruction on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    pub at: u32,
    /// Bytes pushed.
    pub pushed: u32,
    /// How many with the caller's rbx, while that is there: the only register of these that calls keep.
    pub rbx: Option<u32>,
}

const PUSH_RBX: &[u8] = &[0x53];

/// Where what such a routine has pushed changes. Its own displacements are resolved.
pub fn called(asm: &Asm, zone: Zone, range: &Range<u32>) -> Vec<Called> {
    let steps = Code::new(asm, asm.fixups(), &[], Vec::new()).follow(zone, range);
    let pushes_rbx = |at: u32, next: u32| asm.zone_bytes(zone, at..next) == PUSH_RBX;
    let mut all = steps.iter();
    let with_rbx = all.find(|((_, at), (next, _))| pushes_rbx(*at, *next));
    let with_rbx = with_rbx.map(|(_, (_, before))| *before as u32 + 8);
    let mut rows: Vec<Called> = Vec::new();
    for ((_, at), (_, pushed)) in &steps {
        let pushed = *pushed as u32;
        let rbx = with_rbx.filter(|with| *with <= pushed);
        if rows.last().is_none_or(|last| last.pushed != pushed) {
            rows.push(Called {
                at: *at,
                pushed,
                rbx,
            });
        }
    }
    rows
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
        let steps = Code::new(&asm, 0, &[], Vec::new()).follow(Zone::Hot, &(0..code.len() as u32));
        steps.into_iter().map(|((_, at), (_, n))| (at, n)).collect()
    }

    #[test]
    fn what_inserted_code_pushes() {
        // push rax; push rcx; pop rcx; pop rax
        assert_eq!(
            pushed(&[0x50, 0x51, 0x59, 0x58]),
            [(0, 0), (1, 8), (2, 16), (3, 8)]
        );
        // lea rsp, [rsp - 128]; push rax; nop
        let over = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0xff, 0xff, 0xff, 0x50, 0x90];
        assert_eq!(pushed(&over), [(0, 0), (8, 128), (9, 136)]);
        // A call leaves the stack as it was; behind a return nothing is inserted.
        assert_eq!(pushed(&[0xe8, 0, 0, 0, 0, 0xc3, 0x50]), [(0, 0), (5, 0)]);
        // je +3; push rax; jmp +1; push rcx; pop rax: either way one word.
        let either = [0x74, 3, 0x50, 0xeb, 1, 0x51, 0x58];
        assert_eq!(pushed(&either), [(0, 0), (2, 0), (3, 8), (5, 0), (6, 8)]);
    }

    /// jmp out of line; there push rax; call what continues; and back behind the jump.
    #[test]
    fn out_of_line_and_back() {
        let mut asm = Asm::new();
        let (out, back, continues) = (asm.label(), asm.label(), asm.label());
        asm.rel32(Zone::Hot, &[0x0f, 0x84], out, &[]);
        asm.bind(Zone::Hot, back);
        asm.bytes(Zone::Hot, &[0x90]);
        asm.bind(Zone::Stub, out);
        asm.bytes(Zone::Stub, &[0x50]);
        asm.rel32(Zone::Stub, &[0xe8], continues, &[]);
        asm.bind(Zone::Cold, continues);
        asm.bytes(Zone::Cold, &[0x58, 0x58]);
        asm.rel32(Zone::Cold, &[0xe9], back, &[]);
        let continues = [continues];
        let copied = vec![(Zone::Hot, 0..7)];
        let steps = Code::new(&asm, 0, &continues, copied).follow(Zone::Hot, &(0..6));
        let steps: Vec<_> = steps.into_iter().map(|(at, (_, n))| (at, n)).collect();
        let (hot, cold, stub) = (Zone::Hot, Zone::Cold, Zone::Stub);
        assert_eq!(
            steps,
            [
                ((hot, 0), 0),
                ((cold, 0), 16),
                ((cold, 1), 8),
                ((cold, 2), 0),
                ((stub, 0), 0),
                ((stub, 1), 8)
            ]
        );
    }
}
