//! Each instruction of a segment, and where it goes on.
use super::built::Program;
use super::read::{Cfa, Row, Rows};
use hopscope_probe::live::build::Linked;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register,
};
use std::collections::{BTreeMap, HashSet};

#[derive(Debug, Default)]
pub struct Seen {
    pub functions: u64,
    /// From one instruction to the next.
    pub followed: u64,
    /// Calls of what copies call.
    pub into_routines: u64,
    /// Jumps to originals.
    pub out: u64,
    pub pushes: u64,
    /// Saved registers that pushes were compared with.
    pub saved: u64,
    /// Registers that calls keep, saved by what copies call.
    pub kept: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Seen) {
        self.functions += other.functions;
        self.followed += other.followed;
        self.into_routines += other.into_routines;
        self.out += other.out;
        self.pushes += other.pushes;
        self.saved += other.saved;
        self.kept += other.kept;
    }
}

struct Segment<'a> {
    linked: &'a Linked,
    code: BTreeMap<u64, Instruction>,
    rows: Rows,
    originals: Rows,
    never: &'a HashSet<u64>,
    seen: Seen,
}

/// DWARF's numbers.
const RSP: u16 = 7;
const DWARF: [(u16, Register); 16] = [
    (0, Register::RAX),
    (1, Register::RDX),
    (2, Register::RCX),
    (3, Register::RBX),
    (4, Register::RSI),
    (5, Register::RDI),
    (6, Register::RBP),
    (7, Register::RSP),
    (8, Register::R8),
    (9, Register::R9),
    (10, Register::R10),
    (11, Register::R11),
    (12, Register::R12),
    (13, Register::R13),
    (14, Register::R14),
    (15, Register::R15),
];
/// What is called pushes this much at most, its return address included.
const ROUTINE_PUSHES: i64 = 128;

/// Nobody gets to `never`.
pub fn check(program: &Program, linked: &Linked, never: &HashSet<u64>) -> Seen {
    let copies = linked.copies.iter().map(|(_, range)| range);
    let mut code = BTreeMap::new();
    for range in copies.chain(&linked.routines) {
        let bytes =
            &linked.code[(range.start - linked.at) as usize..(range.end - linked.at) as usize];
        let decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
        code.extend(decoder.into_iter().map(|ins| (ins.ip(), ins)));
    }
    let file = std::fs::read(&program.path).unwrap();
    let mut segment = Segment {
        rows: Rows::of_copies(linked, code.keys().copied()),
        originals: Rows::of_originals(&file),
        linked,
        code,
        never,
        seen: Seen {
            functions: linked.entries.len() as u64,
            ..Seen::default()
        },
    };
    for entry in &linked.entries {
        let row = segment.row(entry.copy_at);
        assert_eq!(row.cfa, Cfa::Register(RSP, 8), "{:#x}", entry.copy_at);
    }
    let all: Vec<Instruction> = segment.code.values().copied().collect();
    all.iter().for_each(|ins| segment.one(ins));
    segment.seen
}

impl Segment<'_> {
    fn row(&self, at: u64) -> Row {
        let row = self.rows.at(at);
        row.unwrap_or_else(|| panic!("no row at {at:#x}")).clone()
    }

    fn is_in(&self, at: u64) -> bool {
        let end = self.linked.tables_at.unwrap();
        (self.linked.at..end).contains(&at)
    }

    fn is_routine(&self, at: u64) -> bool {
        self.linked.routines.iter().any(|r| r.start == at)
    }

    fn one(&mut self, ins: &Instruction) {
        let row = self.row(ins.ip());
        // Between functions and loops, where nobody comes by: the rules are those of what ends before.
        if ins.mnemonic() == Mnemonic::Nop {
            return;
        }
        let target = ins.near_branch_target();
        match ins.flow_control() {
            FlowControl::Next => self.goes_on(ins, &row, ins.next_ip(), lowers(ins)),
            FlowControl::ConditionalBranch => {
                self.goes_on(ins, &row, ins.next_ip(), Some(0));
                self.goes_on(ins, &row, target, Some(0));
            }
            FlowControl::UnconditionalBranch => self.goes_on(ins, &row, target, Some(0)),
            FlowControl::Call if self.is_routine(target) => {
                self.seen.into_routines += 1;
                self.keeps_saved(ins, &row, ROUTINE_PUSHES);
                assert_eq!(self.row(target).cfa, Cfa::Register(RSP, 8));
                self.goes_on(ins, &row, ins.next_ip(), Some(0));
            }
            // What translates computed jumps: it goes on for the function.
            FlowControl::Call if self.is_in(target) => self.goes_on(ins, &row, target, Some(8)),
            // Of a function that does not return nothing is known behind the call.
            FlowControl::Call | FlowControl::IndirectCall => {}
            // ret 136 takes the target of a computed jump from where a return address was, above the red zone.
            FlowControl::Return if ins.op_count() == 0 => {
                assert_eq!(row.cfa, Cfa::Register(RSP, 8), "{:#x} {ins}", ins.ip());
            }
            _ => {}
        }
        if ins.mnemonic() == Mnemonic::Push {
            self.keeps_saved(ins, &row, 8);
            self.says_where(ins, &row);
        }
    }

    /// The frame address is the same behind `ins`, at `next`, with so many bytes more on the stack.
    fn goes_on(&mut self, ins: &Instruction, row: &Row, next: u64, more: Option<i64>) {
        let then = if self.is_in(next) {
            assert!(
                self.code.contains_key(&next),
                "{:#x} {ins}: into nothing",
                ins.ip()
            );
            self.row(next)
        } else {
            if self.never.contains(&next) {
                return;
            }
            self.seen.out += 1;
            match self.originals.at(next) {
                Some(row) => row.clone(),
                None => return,
            }
        };
        let (Cfa::Register(register, now), Cfa::Register(other, after)) = (row.cfa, then.cfa)
        else {
            return;
        };
        if register != other {
            return;
        }
        let expected = match register {
            RSP => more.map(|more| now + more),
            _ => (!writes(ins, register)).then_some(now),
        };
        if let Some(expected) = expected {
            self.seen.followed += 1;
            assert_eq!(
                after,
                expected,
                "{:#x} {ins}, then {next:#x}: {row:x?} {then:x?}",
                ins.ip()
            );
        }
    }

    /// What a routine pushes of registers that calls keep is found again.
    fn says_where(&mut self, ins: &Instruction, row: &Row) {
        let mut routines = self.linked.routines.iter();
        let mut kept = [3, 6, 12, 13, 14, 15].into_iter();
        let kept = kept.find(|n| number(ins.op0_register()) == Some(*n));
        let (Some(kept), true) = (kept, routines.any(|r| r.contains(&ins.ip()))) else {
            return;
        };
        let Cfa::Register(RSP, distance) = row.cfa else {
            panic!("{:#x} {ins}: {row:x?}", ins.ip());
        };
        let then = self.row(ins.next_ip());
        assert!(
            then.saved.contains(&(kept, -distance - 8)),
            "{ins}: {then:x?}"
        );
        self.seen.kept += 1;
    }

    /// What is written below the stack pointer is no place of a register.
    fn keeps_saved(&mut self, ins: &Instruction, row: &Row, bytes: i64) {
        let Cfa::Register(RSP, distance) = row.cfa else {
            return;
        };
        self.seen.pushes += 1;
        for (register, offset) in &row.saved {
            self.seen.saved += 1;
            let is_written = (-distance - bytes..-distance).contains(offset);
            assert!(
                !is_written,
                "{:#x} {ins}: register {register} is there: {row:x?}",
                ins.ip()
            );
        }
    }
}

fn number(register: Register) -> Option<u16> {
    DWARF.iter().find(|(_, r)| *r == register).map(|(n, _)| *n)
}

fn writes(ins: &Instruction, register: u16) -> bool {
    let named = DWARF.iter().find(|(n, _)| *n == register).map(|(_, r)| *r);
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(ins);
    let written = |access: OpAccess| {
        !matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess | OpAccess::None
        )
    };
    let mut used = info.used_registers().iter();
    used.any(|u| Some(u.register().full_register()) == named && written(u.access()))
}

/// Bytes by which an instruction lowers the stack pointer; `None`: not known.
fn lowers(ins: &Instruction) -> Option<i64> {
    if !writes(ins, RSP) {
        return Some(0);
    }
    let of_rsp = ins.op_count() > 0 && ins.op0_register() == Register::RSP;
    match ins.mnemonic() {
        Mnemonic::Push | Mnemonic::Pop if !of_rsp => {
            Some(-i64::from(ins.stack_pointer_increment()))
        }
        Mnemonic::Lea
            if ins.memory_base() == Register::RSP && ins.memory_index() == Register::None =>
        {
            Some((ins.memory_displacement64() as i64).wrapping_neg())
        }
        Mnemonic::Sub | Mnemonic::Add if is_immediate(ins) => {
            let by = ins.immediate(1) as i64;
            Some(if ins.mnemonic() == Mnemonic::Sub {
                by
            } else {
                -by
            })
        }
        _ => None,
    }
}

fn is_immediate(ins: &Instruction) -> bool {
    use iced_x86::OpKind::{Immediate8to64, Immediate32to64};
    matches!(ins.op1_kind(), Immediate8to64 | Immediate32to64)
}
