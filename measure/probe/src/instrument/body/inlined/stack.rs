//! How far down the stack a function is, at least: for frames that the unwind tables describe from rbp.
use super::flow::Body;
use crate::instrument::body::unit::{Insn, Piece};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

/// A return address, and rbp: what lies above the rbp of a function that has a frame by it.
const ABOVE_RBP: i32 = 16;

const RETURN_ADDRESS: i32 = 8;

impl Body<'_> {
    /// Bytes between the frame address and the stack pointer before each instruction, at least.
    pub(super) fn depths(&self, entry: u64, pieces: &[Piece]) -> Vec<i32> {
        const UNSEEN: i32 = i32::MAX;
        let mut depths = vec![UNSEEN; self.insns.len()];
        let mut open = Vec::new();
        let reach = |depths: &mut Vec<i32>, open: &mut Vec<usize>, at: Option<usize>, depth| {
            if let Some(at) = at.filter(|at| depth < depths[*at]) {
                depths[at] = depth;
                open.push(at);
            }
        };
        reach(&mut depths, &mut open, self.number(entry), RETURN_ADDRESS);
        let mut unseen = 0;
        loop {
            let Some(at) = open.pop() else {
                // A landing pad, that unwinders alone come to: as deep as where anything is called.
                let calls = depths.iter().zip(&self.calls).filter(|(_, calls)| **calls);
                let calls = calls.map(|(depth, _)| *depth).min();
                let calls = calls.filter(|depth| *depth != UNSEEN);
                unseen += depths[unseen..]
                    .iter()
                    .take_while(|d| **d != UNSEEN)
                    .count();
                if unseen == depths.len() {
                    return depths;
                }
                reach(
                    &mut depths,
                    &mut open,
                    Some(unseen),
                    calls.unwrap_or(RETURN_ADDRESS),
                );
                continue;
            };

            let insn = self.insns[at];
            let inside = |p: &&Piece| (p.svma..p.svma + p.bytes.len() as u64).contains(&insn.svma);
            let behind = match pieces.iter().find(inside) {
                Some(piece) => behind(insn, piece, depths[at]),
                None => RETURN_ADDRESS,
            };
            for to in self.successors(at).flatten() {
                reach(&mut depths, &mut open, self.number(to), behind);
            }
        }
    }
}

/// What is on the stack behind an instruction, where `before` bytes were. What is not understood counts as nothing.
fn behind(insn: &Insn, piece: &Piece, before: i32) -> i32 {
    let at = (insn.svma - piece.svma) as usize;
    let options = DecoderOptions::NONE;
    let ins = Decoder::with_ip(64, &piece.bytes[at..], insn.svma, options).decode();
    let constant = |n: u32| i32::try_from(ins.immediate(n) as i64).ok();
    let returns = matches!(
        ins.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    );
    let depth = match ins.code() {
        // It comes back with the stack as it was.
        _ if returns => Some(before),
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if is_rsp(&ins) => {
            constant(1).and_then(|bytes| before.checked_add(bytes))
        }
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if is_rsp(&ins) => {
            constant(1).and_then(|bytes| before.checked_sub(bytes))
        }
        // Aligned, or made room for by a variable: further down.
        Code::And_rm64_imm8 | Code::And_rm64_imm32 if is_rsp(&ins) => Some(before),
        Code::Sub_r64_rm64 | Code::Sub_rm64_r64 if is_rsp(&ins) => Some(before),
        Code::Leaveq => Some(ABOVE_RBP - 8),
        Code::Lea_r64_m if is_rsp(&ins) && ins.memory_index() == Register::None => {
            let down = i32::try_from(-(ins.memory_displacement64() as i64)).ok();
            let from = match ins.memory_base() {
                Register::RBP => Some(ABOVE_RBP),
                Register::RSP => Some(before),
                _ => None,
            };
            from.zip(down)
                .and_then(|(from, down)| from.checked_add(down))
        }
        _ if is_rsp(&ins) && writes_first(ins.mnemonic()) => None,
        _ => before.checked_sub(ins.stack_pointer_increment()),
    };
    depth.unwrap_or(0).max(0)
}

fn is_rsp(ins: &Instruction) -> bool {
    ins.op0_register() == Register::RSP
}

fn writes_first(mnemonic: Mnemonic) -> bool {
    !matches!(mnemonic, Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push)
}
