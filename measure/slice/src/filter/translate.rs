//! From classic to extended BPF: the block that a BPF program keeps for the filter.
//!
//! `Filter::to_ebpf` says what the block finds in which register. r0 is A, r4 is X, r5 is free.
use super::FilterError;
use super::classic::{Alu, Op, Operand, Program, Register, SLOTS, Size, Source, Test};
use super::ebpf::{self, Reg};
use super::flow::{Flow, Target};

/// Bytes of a packet, from its network header, that the kernel program copies for the filter.
pub const REACH: u32 = 256;

/// Where the 64 bytes of a filter's scratch memory are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// On the program's stack, from this offset to r10.
    Stack(i16),
    /// In the map value, from this offset to r1: `REACH` is right behind the packet.
    Value(i16),
}

const A: Reg = Reg(0);
const X: Reg = Reg(4);
const FREE: Reg = Reg(5);
const PACKET: Reg = Reg(1);
const PRESENT: Reg = Reg(2);
const LENGTH: Reg = Reg(3);
const FRAME: Reg = Reg(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    To(Target),
    /// A load went beyond the bytes that are there.
    Short,
    End,
}

const MATCH: Label = Label::To(Target::Match);
const NO_MATCH: Label = Label::To(Target::NoMatch);

struct Block<'p> {
    flow: Flow<'p>,
    scratch: Scratch,
    code: Vec<u64>,
    /// Which instructions jump where.
    jumps: Vec<(usize, Label)>,
    /// Where each operation begins.
    starts: Vec<Option<usize>>,
    /// Where the code behind the operations is.
    ends: Vec<(Label, usize)>,
}

pub(super) fn translate(
    program: &Program,
    max_insns: usize,
    scratch: Scratch,
) -> Result<Vec<u64>, FilterError> {
    let mut block = Block {
        flow: Flow::of(program.ops()),
        scratch,
        code: Vec::new(),
        jumps: Vec::new(),
        starts: vec![None; program.ops().len()],
        ends: Vec::new(),
    };
    block.begin();
    let reached: Vec<(usize, Op)> = block.flow.reached().collect();
    for (at, op) in reached {
        block.op(at, op)?;
    }
    block.end();
    block.link(max_insns)
}

impl Block<'_> {
    /// Registers and slots begin as zero, as in libpcap's interpreter.
    fn begin(&mut self) {
        self.push(ebpf::alu32(ebpf::MOV, A, 0));
        self.push(ebpf::alu32(ebpf::MOV, X, 0));
        let mut read = [false; SLOTS];
        for (_, op) in self.flow.reached() {
            if let Op::Load(_, Source::Slot(slot)) = op {
                read[usize::from(slot)] = true;
            }
        }
        for slot in (0..SLOTS as u8).filter(|slot| read[usize::from(*slot)]) {
            let (base, offset) = self.slot(slot);
            self.push(ebpf::store(base, offset, A));
        }
        match self.flow.settle(0) {
            Target::Op(_) => {}
            end => self.jump(ebpf::goto(0), Label::To(end)),
        }
    }

    fn op(&mut self, at: usize, op: Op) -> Result<(), FilterError> {
        self.starts[at] = Some(self.code.len());
        match op {
            Op::Load(to, source) => self.load(register(to), source, self.flow.covered(at))?,
            Op::Store(from, slot) => {
                let (base, offset) = self.slot(slot);
                self.push(ebpf::store(base, offset, register(from)));
            }
            Op::Alu(alu, Operand::Constant(value)) => self.compute(alu, value),
            Op::Alu(alu, Operand::X) => self.compute_by_x(alu),
            Op::Negate => self.push(ebpf::alu32(ebpf::NEG, A, 0)),
            Op::AToX => self.push(ebpf::alu32_by(ebpf::MOV, X, A)),
            Op::XToA => self.push(ebpf::alu32_by(ebpf::MOV, A, X)),
            Op::Branch {
                test,
                operand,
                then,
                otherwise,
            } => {
                let (then, otherwise) = (self.flow.settle(then), self.flow.settle(otherwise));
                self.branch(at, test, operand, then, otherwise);
                return Ok(());
            }
            Op::ReturnA => {
                self.push(ebpf::alu64(ebpf::MOV, PACKET, 0));
                self.jump(ebpf::goto(0), Label::End);
                return Ok(());
            }
            // Whatever leads to one of these leads to what it stands for.
            Op::Jump(_) | Op::Return(_) => return Ok(()),
        }
        self.go_on(at, self.flow.settle(at + 1));
        Ok(())
    }

    fn go_on(&mut self, at: usize, next: Target) {
        if next != Target::Op(at + 1) {
            self.jump(ebpf::goto(0), Label::To(next));
        }
    }

    fn branch(&mut self, at: usize, test: Test, operand: Operand, then: Target, otherwise: Target) {
        let inverse = match test {
            Test::Equal => Some(ebpf::JNE),
            Test::Greater => Some(ebpf::JLE),
            Test::GreaterEqual => Some(ebpf::JLT),
            Test::AnyBit => None,
        };
        let jump = |test| match operand {
            Operand::Constant(value) => ebpf::jump32(test, A, value),
            Operand::X => ebpf::jump32_by(test, A, X),
        };
        match inverse {
            Some(inverse) if then == Target::Op(at + 1) => {
                self.jump(jump(inverse), Label::To(otherwise));
            }
            _ => {
                self.jump(jump(straight(test)), Label::To(then));
                self.go_on(at, otherwise);
            }
        }
    }

    fn load(&mut self, to: Reg, source: Source, covered: bool) -> Result<(), FilterError> {
        match source {
            Source::Constant(value) => self.push(ebpf::alu32(ebpf::MOV, to, value)),
            Source::Length => self.push(ebpf::alu32_by(ebpf::MOV, to, LENGTH)),
            Source::Slot(slot) => {
                let (base, offset) = self.slot(slot);
                self.push(ebpf::load(4, to, base, offset));
            }
            Source::Absolute(offset, size) => self.absolute(to, offset, size, covered)?,
            Source::Indirect(offset, size) => self.indirect(to, offset, size)?,
            Source::HeaderLength(offset) => {
                self.absolute(to, offset, Size::Byte, covered)?;
                self.push(ebpf::alu32(Alu::And as u8, to, 0x0f));
                self.push(ebpf::alu32(Alu::Lsh as u8, to, 2));
            }
        }
        Ok(())
    }

    fn absolute(
        &mut self,
        to: Reg,
        offset: u32,
        size: Size,
        covered: bool,
    ) -> Result<(), FilterError> {
        let end = within_reach(offset, size)?;
        if !covered {
            self.jump(ebpf::jump64(ebpf::JLT, PRESENT, end.into()), Label::Short);
        }
        // Below `REACH`, so it fits.
        self.push(ebpf::load(size as u8, to, PACKET, end - size as i16));
        self.swap(to, size);
        Ok(())
    }

    fn indirect(&mut self, to: Reg, offset: u32, size: Size) -> Result<(), FilterError> {
        let end = within_reach(offset, size)?;
        let bytes = size as i32;
        // In 64 bits: the sum must not wrap. The constant bound is for the verifier, the other one is
        // the packet's.
        self.push(ebpf::alu32_by(ebpf::MOV, FREE, X));
        self.push(ebpf::alu64(ebpf::ADD, FREE, end.into()));
        self.jump(ebpf::jump64(ebpf::JGT, FREE, REACH as i32), Label::Short);
        self.jump(ebpf::jump64_by(ebpf::JGT, FREE, PRESENT), Label::Short);
        self.push(ebpf::alu64_by(ebpf::ADD, FREE, PACKET));
        self.push(ebpf::load(size as u8, to, FREE, -bytes as i16));
        self.swap(to, size);
        Ok(())
    }

    fn swap(&mut self, to: Reg, size: Size) {
        match size {
            Size::Byte => {}
            Size::Half => self.push(ebpf::from_network(to, 16)),
            Size::Word => self.push(ebpf::from_network(to, 32)),
        }
    }

    fn compute(&mut self, alu: Alu, value: u32) {
        match alu {
            // The verifier refuses such a shift; libpcap's gives zero.
            Alu::Lsh | Alu::Rsh if value > 31 => self.push(ebpf::alu32(ebpf::MOV, A, 0)),
            _ => self.push(ebpf::alu32(alu as u8, A, value)),
        }
    }

    fn compute_by_x(&mut self, alu: Alu) {
        match alu {
            Alu::Div | Alu::Mod => self.jump(ebpf::jump32(ebpf::JEQ, X, 0), NO_MATCH),
            // Extended BPF takes the low five bits of X; libpcap's result is zero.
            Alu::Lsh | Alu::Rsh => {
                self.push(ebpf::with_distance(ebpf::jump32(ebpf::JLT, X, 32), 1));
                self.push(ebpf::alu32(ebpf::MOV, A, 0));
            }
            _ => {}
        }
        self.push(ebpf::alu32_by(alu as u8, A, X));
    }

    fn end(&mut self) {
        let wanted = |label, block: &Self| block.jumps.iter().any(|(_, to)| *to == label);
        if wanted(MATCH, self) {
            self.place(MATCH);
            self.result(1);
            self.jump(ebpf::goto(0), Label::End);
        }
        if wanted(Label::Short, self) {
            self.place(Label::Short);
            self.push(ebpf::alu64(ebpf::MOV, A, 0));
            self.push(ebpf::alu64(ebpf::MOV, PACKET, 1));
            self.jump(ebpf::jump64_by(ebpf::JGT, LENGTH, PRESENT), Label::End);
            self.push(ebpf::alu64(ebpf::MOV, PACKET, 0));
            self.jump(ebpf::goto(0), Label::End);
        }
        if wanted(NO_MATCH, self) {
            self.place(NO_MATCH);
            self.result(0);
        }
        self.place(Label::End);
    }

    fn result(&mut self, value: i32) {
        self.push(ebpf::alu64(ebpf::MOV, A, value));
        self.push(ebpf::alu64(ebpf::MOV, PACKET, 0));
    }

    fn place(&mut self, label: Label) {
        self.ends.push((label, self.code.len()));
    }

    fn link(mut self, max_insns: usize) -> Result<Vec<u64>, FilterError> {
        let too_long = FilterError::TooLong {
            needed: self.code.len(),
            room: max_insns,
        };
        if self.code.len() > max_insns {
            return Err(too_long);
        }
        for (from, to) in std::mem::take(&mut self.jumps) {
            let target = match to {
                Label::To(Target::Op(op)) => self.starts[op],
                end => self
                    .ends
                    .iter()
                    .find(|(at, _)| *at == end)
                    .map(|(_, at)| *at),
            };
            let distance = target
                .and_then(|target| i16::try_from(target - from - 1).ok())
                .ok_or(too_long.clone())?;
            self.code[from] = ebpf::with_distance(self.code[from], distance);
        }
        Ok(self.code)
    }

    fn slot(&self, slot: u8) -> (Reg, i16) {
        let (base, offset) = match self.scratch {
            Scratch::Stack(offset) => (FRAME, offset),
            Scratch::Value(offset) => (PACKET, offset),
        };
        (base, offset.saturating_add(4 * i16::from(slot)))
    }

    fn push(&mut self, insn: u64) {
        self.code.push(insn);
    }

    fn jump(&mut self, insn: u64, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.code.push(insn);
    }
}

/// Offset of the byte after the load.
fn within_reach(offset: u32, size: Size) -> Result<i16, FilterError> {
    let end = u64::from(offset) + size as u64;
    if end <= u64::from(REACH) {
        Ok(end as i16)
    } else {
        Err(FilterError::TooFar { end, reach: REACH })
    }
}

fn register(register: Register) -> Reg {
    match register {
        Register::A => A,
        Register::X => X,
    }
}

fn straight(test: Test) -> u8 {
    match test {
        Test::Equal => ebpf::JEQ,
        Test::Greater => ebpf::JGT,
        Test::GreaterEqual => ebpf::JGE,
        Test::AnyBit => ebpf::JSET,
    }
}
