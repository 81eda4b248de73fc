//! Runs a program over a packet's bytes, as libpcap's own interpreter does.
use super::classic::{Alu, Op, Operand, Program, Register, SLOTS, Size, Source, Test};
use std::ops::Range;

/// Why a program ended before its return; libpcap's interpreter takes both as no match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A load beyond the bytes that are there.
    Short,
    /// A load of bytes that are not known.
    Gap,
    DivisionByZero,
}

/// What the program returns. Bytes of `packet` in `gaps` are not known.
pub(super) fn run(
    program: &Program,
    packet: &[u8],
    gaps: &[Range<usize>],
    wire_len: u32,
) -> Result<u32, Fault> {
    Machine {
        packet,
        gaps,
        wire_len,
        a: 0,
        x: 0,
        slots: [0; SLOTS],
    }
    .run(program.ops())
}

struct Machine<'p> {
    packet: &'p [u8],
    gaps: &'p [Range<usize>],
    wire_len: u32,
    a: u32,
    x: u32,
    slots: [u32; SLOTS],
}

impl Machine<'_> {
    /// Indexes are in bounds and every way ends in a return: `Program` has made sure.
    fn run(&mut self, ops: &[Op]) -> Result<u32, Fault> {
        let mut at = 0;
        loop {
            let op = ops[at];
            at += 1;
            match op {
                Op::Load(register, source) => {
                    let value = self.load(source)?;
                    match register {
                        Register::A => self.a = value,
                        Register::X => self.x = value,
                    }
                }
                Op::Store(Register::A, slot) => self.slots[usize::from(slot)] = self.a,
                Op::Store(Register::X, slot) => self.slots[usize::from(slot)] = self.x,
                Op::Alu(alu, operand) => self.a = compute(alu, self.a, self.operand(operand))?,
                Op::Negate => self.a = self.a.wrapping_neg(),
                Op::Jump(target) => at = target,
                Op::Branch {
                    test,
                    operand,
                    then,
                    otherwise,
                } => {
                    at = if holds(test, self.a, self.operand(operand)) {
                        then
                    } else {
                        otherwise
                    }
                }
                Op::Return(value) => return Ok(value),
                Op::ReturnA => return Ok(self.a),
                Op::AToX => self.x = self.a,
                Op::XToA => self.a = self.x,
            }
        }
    }

    fn operand(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Constant(value) => value,
            Operand::X => self.x,
        }
    }

    fn load(&self, source: Source) -> Result<u32, Fault> {
        match source {
            Source::Constant(value) => Ok(value),
            Source::Length => Ok(self.wire_len),
            Source::Slot(slot) => Ok(self.slots[usize::from(slot)]),
            Source::Absolute(at, size) => self.bytes(at.into(), size),
            // No wrap: what lies beyond 32 bits lies beyond the packet.
            Source::Indirect(at, size) => self.bytes(u64::from(at) + u64::from(self.x), size),
            Source::HeaderLength(at) => Ok((self.bytes(at.into(), Size::Byte)? & 0x0f) << 2),
        }
    }

    fn bytes(&self, at: u64, size: Size) -> Result<u32, Fault> {
        let at = usize::try_from(at).map_err(|_| Fault::Short)?;
        let bytes = self.packet.get(at..).and_then(|b| b.get(..size as usize));
        let bytes = bytes.ok_or(Fault::Short)?;
        let end = at + bytes.len();
        if self.gaps.iter().any(|gap| gap.start < end && at < gap.end) {
            return Err(Fault::Gap);
        }
        let join = |value, byte: &u8| value << 8 | u32::from(*byte);
        Ok(bytes.iter().fold(0, join))
    }
}

fn compute(alu: Alu, a: u32, b: u32) -> Result<u32, Fault> {
    Ok(match alu {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::Mul => a.wrapping_mul(b),
        Alu::Div => a.checked_div(b).ok_or(Fault::DivisionByZero)?,
        Alu::Mod => a.checked_rem(b).ok_or(Fault::DivisionByZero)?,
        Alu::Or => a | b,
        Alu::And => a & b,
        Alu::Xor => a ^ b,
        Alu::Lsh => a.checked_shl(b).unwrap_or(0),
        Alu::Rsh => a.checked_shr(b).unwrap_or(0),
    })
}

fn holds(test: Test, a: u32, b: u32) -> bool {
    match test {
        Test::Equal => a == b,
        Test::Greater => a > b,
        Test::GreaterEqual => a >= b,
        Test::AnyBit => a & b != 0,
    }
}
