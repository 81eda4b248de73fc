//! Where a function itself loads what is to be captured: then the memory was there, and the value
//! is in a register. Nothing is read a second time.
//!
//! A register is followed from the entry through copies, constant additions and the loads on the
//! way; where two ways meet, both must agree. Of the loads found, only those are taken of which no
//! call executes two.
use super::unit::{Op, Piece, Unit};
use crate::instrument::capture::{Chain, Reg, Scalar};
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use std::collections::HashMap;

/// What a register holds: the pointer after so many loads of the chain, plus a constant.
type Held = Option<(usize, i64)>;
type State = [Held; 16];

/// Loads of one value, and whether every way through the function passes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnLoads {
    pub loads: Vec<(u64, Reg)>,
    pub always: bool,
}

struct Step {
    instruction: Instruction,
    op: Op,
    next: Vec<usize>,
    leaves: bool,
}

/// The loads of what lies at the end of `chain`; `None` where there are none to be sure of.
pub fn find(unit: &Unit, pieces: &[Piece], chain: &Chain, scalar: Scalar) -> Option<OwnLoads> {
    if chain.offsets.is_empty() {
        return None;
    }
    let code = flow(unit, pieces);
    let states = follow(&code, chain);
    let mut chosen: Vec<usize> = Vec::new();
    for (n, state) in states.iter().enumerate() {
        let Some(state) = state else { continue };
        if final_load(&code[n], state, chain, scalar).is_none() {
            continue;
        }
        let after = reached(&code, &code[n].next, &[]);
        let again = after[n] || chosen.iter().any(|c| after[*c]);
        let before = chosen
            .iter()
            .any(|c| reached(&code, &code[*c].next, &[])[n]);
        if !again && !before {
            chosen.push(n);
        }
    }
    if chosen.is_empty() {
        return None;
    }
    let around = reached(&code, &[0], &chosen);
    let always = !(0..code.len()).any(|n| around[n] && code[n].leaves);
    let load = |n: &usize| {
        let reg = final_load(&code[*n], states[*n].as_ref()?, chain, scalar)?;
        Some((code[*n].instruction.ip(), reg))
    };
    Some(OwnLoads {
        loads: chosen.iter().filter_map(load).collect(),
        always,
    })
}

/// The instructions that can be told to follow one another. Where jumps go to computed places, the
/// straight way from the entry is all that is certain.
fn flow(unit: &Unit, pieces: &[Piece]) -> Vec<Step> {
    let mut code: Vec<Step> = Vec::new();
    let mut at = HashMap::new();
    for (piece, decoded) in pieces.iter().zip(&unit.pieces) {
        for insn in &decoded.insns {
            let from = (insn.svma - piece.svma) as usize;
            let bytes = &piece.bytes[from..from + usize::from(insn.len)];
            let instruction = Decoder::with_ip(64, bytes, insn.svma, DecoderOptions::NONE).decode();
            let straight = matches!(
                insn.op,
                Op::Plain | Op::RipRelative { .. } | Op::Call { .. }
            );
            if unit.has_indirect_jump && !straight {
                code.push(Step {
                    instruction,
                    op: insn.op,
                    next: Vec::new(),
                    leaves: true,
                });
                return linear(code);
            }
            at.insert(insn.svma, code.len());
            code.push(Step {
                instruction,
                op: insn.op,
                next: Vec::new(),
                leaves: false,
            });
        }
    }
    for step in &mut code {
        let after = at.get(&step.instruction.next_ip());
        let to = |target: u64| at.get(&target);
        let (next, other) = match step.op {
            Op::Ret | Op::IndirectTail { .. } | Op::IndirectJump => (None, None),
            Op::Jump { target } => (to(target), None),
            Op::JumpIf { target, .. } | Op::ShortOnly { target } => (after, to(target)),
            Op::Plain | Op::RipRelative { .. } | Op::Call { .. } => (after, None),
        };
        let conditional = matches!(step.op, Op::JumpIf { .. } | Op::ShortOnly { .. });
        step.leaves = next.is_none() || conditional && other.is_none();
        step.next = [next, other].into_iter().flatten().copied().collect();
    }
    code
}

fn linear(mut code: Vec<Step>) -> Vec<Step> {
    let last = code.len() - 1;
    for (n, c) in code.iter_mut().enumerate().take(last) {
        c.next = vec![n + 1];
    }
    code
}

/// What is reached from `from` without going on behind `stops`.
fn reached(code: &[Step], from: &[usize], stops: &[usize]) -> Vec<bool> {
    let mut seen = vec![false; code.len()];
    let mut open: Vec<usize> = from.to_vec();
    while let Some(n) = open.pop() {
        if n < code.len() && !seen[n] && !stops.contains(&n) {
            seen[n] = true;
            open.extend(&code[n].next);
        }
    }
    seen
}

/// What the registers hold before each instruction; `None` where nothing is known to come.
fn follow(code: &[Step], chain: &Chain) -> Vec<Option<State>> {
    let mut states: Vec<Option<State>> = vec![None; code.len()];
    let mut entry: State = [None; 16];
    entry[usize::from(chain.base.0)] = Some((0, 0));
    let mut factory = InstructionInfoFactory::new();
    let mut open = vec![0];
    if let Some(first) = states.first_mut() {
        *first = Some(entry);
    }
    while let Some(n) = open.pop() {
        let Some(before) = states[n] else { continue };
        let after = step(&code[n], before, chain, &mut factory);
        for next in &code[n].next {
            let merged = match states[*next] {
                None => after,
                Some(known) => std::array::from_fn(|r| match known[r] == after[r] {
                    true => known[r],
                    false => None,
                }),
            };
            if states[*next] != Some(merged) {
                states[*next] = Some(merged);
                open.push(*next);
            }
        }
    }
    states
}

fn number(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}

fn step(code: &Step, before: State, chain: &Chain, factory: &mut InstructionInfoFactory) -> State {
    let ins = &code.instruction;
    let mut after = before;
    if matches!(code.op, Op::Call { .. }) || ins.is_call_near_indirect() {
        // What a callee may change by the ABI.
        for r in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
            after[r] = None;
        }
        return after;
    }
    for used in factory.info(ins).used_registers() {
        let writes = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
        if let (true, Some(r)) = (writes, number(used.register())) {
            after[r] = None;
        }
    }
    if ins.code() == Code::Syscall {
        (after[1], after[11]) = (None, None);
    }
    let to = ins.op0_register();
    if !(to.is_gpr64() && ins.op_count() == 2 && ins.op0_kind() == OpKind::Register) {
        return after;
    }
    let held = match (ins.mnemonic(), ins.op1_kind()) {
        (Mnemonic::Mov, OpKind::Register) => {
            number(ins.op1_register()).and_then(|from| before[from])
        }
        (Mnemonic::Mov, OpKind::Memory) => pointer(ins, &before, chain),
        (Mnemonic::Lea, OpKind::Memory) => address(ins, &before),
        (Mnemonic::Add | Mnemonic::Sub, kind)
            if kind != OpKind::Register && kind != OpKind::Memory =>
        {
            let by = ins.immediate(1) as i64;
            let by = match ins.mnemonic() {
                Mnemonic::Sub => -by,
                _ => by,
            };
            let held = number(to).and_then(|r| before[r]);
            held.map(|(level, plus)| (level, plus.wrapping_add(by)))
        }
        _ => return after,
    };
    if let Some(r) = number(to) {
        after[r] = held;
    }
    after
}

/// The address of the memory operand, as far as it is base and displacement.
fn address(ins: &Instruction, state: &State) -> Held {
    let plain = ins.memory_index() == Register::None
        && ins.segment_prefix() == Register::None
        && ins.memory_base().is_gpr64();
    let (level, plus) = state[number(ins.memory_base()).filter(|_| plain)?]?;
    Some((level, plus.wrapping_add(ins.memory_displacement64() as i64)))
}

/// A load that takes one step of the chain, and not the last.
fn pointer(ins: &Instruction, state: &State, chain: &Chain) -> Held {
    let (level, at) = address(ins, state)?;
    let steps = level + 1 < chain.offsets.len() && at == i64::from(chain.offsets[level]);
    // The next offset is added by whoever loads through it.
    steps.then_some((level + 1, 0))
}

/// The register that has the value behind this instruction.
fn final_load(code: &Step, state: &State, chain: &Chain, scalar: Scalar) -> Option<Reg> {
    let ins = &code.instruction;
    let loads = matches!(
        ins.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd
    );
    if !loads
        || code.op != Op::Plain
        || ins.op0_kind() != OpKind::Register
        || ins.op1_kind() != OpKind::Memory
    {
        return None;
    }
    let to = ins.op0_register();
    let high = matches!(
        to,
        Register::AH | Register::BH | Register::CH | Register::DH
    );
    let reg = number(to).filter(|r| !high && *r != 4)?;
    let (level, at) = address(ins, state)?;
    let is_it = level + 1 == chain.offsets.len() && at == i64::from(*chain.offsets.last()?);
    let wide_enough = ins.memory_size().size() >= usize::from(scalar.bytes);
    (is_it && wide_enough).then_some(Reg(reg as u8))
}

#[cfg(test)]
mod tests {
    use super::super::unit::Surroundings;
    use super::*;
    use iced_x86::code_asm::*;

    const WORD: Scalar = Scalar::unsigned(4);

    fn find_in(
        offsets: &[i32],
        write: impl Fn(&mut CodeAssembler) -> Result<(), iced_x86::IcedError>,
    ) -> Option<OwnLoads> {
        let mut c = CodeAssembler::new(64).unwrap();
        write(&mut c).unwrap();
        let bytes = c.assemble(0x1000).unwrap();
        let pieces = [Piece {
            svma: 0x1000,
            bytes: &bytes,
        }];
        let around = Surroundings {
            entry_stays: false,
            room: 64,
            branch_into: &|_| false,
        };
        let unit = Unit::decode(&pieces, &around).unwrap();
        let chain = Chain {
            base: Reg::RDI,
            offsets: offsets.to_vec(),
        };
        find(&unit, &pieces, &chain, WORD)
    }

    fn one(found: Option<OwnLoads>) -> (u64, Reg, bool) {
        let found = found.expect("a load");
        assert_eq!(found.loads.len(), 1, "{found:?}");
        (found.loads[0].0, found.loads[0].1, found.always)
    }

    #[test]
    fn through_the_register_itself_and_its_copies() {
        let direct = find_in(&[8], |c| {
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.add(eax, esi)?;
            c.ret()
        });
        assert_eq!(one(direct), (0x1000, Reg::RAX, true));
        let copied = find_in(&[8], |c| {
            c.lea(rbx, rdi + 4)?;
            c.call(0x3000)?;
            c.movsxd(rdx, dword_ptr(rbx + 4))?;
            c.ret()
        });
        assert_eq!(one(copied), (0x1009, Reg::RDX, true));
        let through = find_in(&[16, 8], |c| {
            c.mov(rdx, qword_ptr(rdi + 16))?;
            c.mov(rcx, qword_ptr(rdx + 8))?;
            c.ret()
        });
        assert_eq!(one(through), (0x1004, Reg::RCX, true));
    }

    #[test]
    fn not_through_what_has_changed() {
        let changed = find_in(&[8], |c| {
            c.mov(rdi, rsi)?;
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.ret()
        });
        assert_eq!(changed, None);
        let called = find_in(&[8], |c| {
            c.call(0x3000)?;
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.ret()
        });
        assert_eq!(called, None);
        let half = find_in(&[8], |c| {
            c.mov(edi, edi)?;
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.ret()
        });
        assert_eq!(half, None);
        let narrow = find_in(&[8], |c| {
            c.movzx(eax, word_ptr(rdi + 8))?;
            c.add(rax, 4)?;
            c.ret()
        });
        assert_eq!(narrow, None);
        let indexed = find_in(&[8], |c| {
            c.mov(eax, dword_ptr(rdi + rsi * 4 + 8))?;
            c.ret()
        });
        assert_eq!(indexed, None);
    }

    #[test]
    fn where_ways_meet_both_must_agree() {
        let joined = find_in(&[8], |c| {
            let mut over = c.create_label();
            c.test(rsi, rsi)?;
            c.je(over)?;
            c.mov(rdi, rsi)?;
            c.set_label(&mut over)?;
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.ret()
        });
        assert_eq!(joined, None);
    }

    /// Never twice in a call: not in a loop, and of two in a row the first.
    #[test]
    fn no_call_records_it_twice() {
        let in_a_loop = find_in(&[8], |c| {
            let mut again = c.create_label();
            c.set_label(&mut again)?;
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.dec(esi)?;
            c.jne(again)?;
            c.ret()
        });
        assert_eq!(in_a_loop, None);
        let twice = find_in(&[8], |c| {
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.mov(ecx, dword_ptr(rdi + 8))?;
            c.ret()
        });
        assert_eq!(one(twice), (0x1000, Reg::RAX, true));
        let either = find_in(&[8], |c| {
            let mut other = c.create_label();
            c.test(esi, esi)?;
            c.je(other)?;
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.ret()?;
            c.set_label(&mut other)?;
            c.mov(ecx, dword_ptr(rdi + 8))?;
            c.ret()
        });
        let either = either.expect("two loads");
        assert_eq!((either.loads.len(), either.always), (2, true));
    }

    #[test]
    fn a_way_without_it_is_said() {
        let some = find_in(&[8], |c| {
            let mut out = c.create_label();
            c.test(esi, esi)?;
            c.je(out)?;
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.set_label(&mut out)?;
            c.ret()
        });
        assert_eq!(one(some), (0x1004, Reg::RAX, false));
        let computed = find_in(&[8], |c| {
            c.mov(eax, dword_ptr(rdi + 8))?;
            c.jmp(rdx)?;
            c.mov(ecx, dword_ptr(rdi + 8))?;
            c.ret()
        });
        assert_eq!(one(computed), (0x1000, Reg::RAX, true));
    }
}
