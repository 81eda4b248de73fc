//! Classic BPF, as libpcap writes it: decoded and checked once, so that what runs or translates it
//! need not doubt it.
//!
//! Source of the encoding: "The BSD Packet Filter" (McCanne and Jacobson, 1993) and Linux's
//! `Documentation/networking/filter.rst`.
use super::FilterError;

/// `struct bpf_insn` of libpcap, `struct sock_filter` of Linux.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Words of scratch memory.
pub const SLOTS: usize = 16;
/// Longest program that Linux takes (`BPF_MAXINSNS`).
const LONGEST: usize = 4096;
/// From here up offsets are no bytes of the packet but what the kernel knows of it (`SKF_AD_OFF`).
const METADATA: u32 = 0xffff_f000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Register {
    A,
    X,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Byte = 1,
    Half = 2,
    Word = 4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Constant(u32),
    /// Of the packet on the wire.
    Length,
    Slot(u8),
    Absolute(u32, Size),
    /// X is added to the offset.
    Indirect(u32, Size),
    /// Four times the low half of the byte: the length of an IPv4 header.
    HeaderLength(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Constant(u32),
    X,
}

/// With the bits that encode it, the same in extended BPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Mod = 0x90,
    Xor = 0xa0,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Equal = 0x10,
    Greater = 0x20,
    GreaterEqual = 0x30,
    AnyBit = 0x40,
}

/// Targets are indexes into the program, always later than the jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Load(Register, Source),
    Store(Register, u8),
    Alu(Alu, Operand),
    Negate,
    Jump(usize),
    Branch {
        test: Test,
        operand: Operand,
        then: usize,
        otherwise: usize,
    },
    Return(u32),
    ReturnA,
    AToX,
    XToA,
}

/// Ends in a return, jumps forwards only, divides by no constant zero, uses slots that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program(Vec<Op>);

impl Program {
    pub(super) fn new(insns: &[Insn]) -> Result<Self, FilterError> {
        if insns.is_empty() || insns.len() > LONGEST {
            return Err(FilterError::Length { insns: insns.len() });
        }
        let ops: Vec<Op> = insns
            .iter()
            .enumerate()
            .map(|(at, &insn)| decode(at, insn, insns.len()))
            .collect::<Result<_, _>>()?;
        match ops.last() {
            Some(Op::Return(_) | Op::ReturnA) => Ok(Self(ops)),
            _ => Err(malformed(insns.len() - 1)),
        }
    }

    pub(super) fn ops(&self) -> &[Op] {
        &self.0
    }
}

fn malformed(at: usize) -> FilterError {
    FilterError::Malformed { insn: at }
}

fn decode(at: usize, insn: Insn, len: usize) -> Result<Op, FilterError> {
    let Insn { code, k, .. } = insn;
    let slot = || match usize::try_from(k) {
        Ok(slot) if slot < SLOTS => Ok(slot as u8),
        _ => Err(malformed(at)),
    };
    let operand = match code & 0x08 {
        0 => Operand::Constant(k),
        _ => Operand::X,
    };
    Ok(match code {
        0x00 => Op::Load(Register::A, Source::Constant(k)),
        0x01 => Op::Load(Register::X, Source::Constant(k)),
        0x60 => Op::Load(Register::A, Source::Slot(slot()?)),
        0x61 => Op::Load(Register::X, Source::Slot(slot()?)),
        0x80 => Op::Load(Register::A, Source::Length),
        0x81 => Op::Load(Register::X, Source::Length),
        0x20 | 0x28 | 0x30 => Op::Load(Register::A, Source::Absolute(in_packet(k)?, size(code))),
        0x40 | 0x48 | 0x50 => Op::Load(Register::A, Source::Indirect(k, size(code))),
        0xb1 => Op::Load(Register::X, Source::HeaderLength(in_packet(k)?)),
        0x02 => Op::Store(Register::A, slot()?),
        0x03 => Op::Store(Register::X, slot()?),
        0x84 => Op::Negate,
        0x07 => Op::AToX,
        0x87 => Op::XToA,
        0x06 => Op::Return(k),
        0x16 => Op::ReturnA,
        0x05 => Op::Jump(target(at, k, len)?),
        _ if code & 0x07 == 0x04 && code <= 0xff => {
            let alu = alu(code & 0xf0).ok_or(malformed(at))?;
            if matches!(alu, Alu::Div | Alu::Mod) && operand == Operand::Constant(0) {
                return Err(malformed(at));
            }
            Op::Alu(alu, operand)
        }
        _ if code & 0x07 == 0x05 && code <= 0xff => Op::Branch {
            test: test(code & 0xf0).ok_or(malformed(at))?,
            operand,
            then: target(at, insn.jt.into(), len)?,
            otherwise: target(at, insn.jf.into(), len)?,
        },
        _ => return Err(malformed(at)),
    })
}

fn in_packet(offset: u32) -> Result<u32, FilterError> {
    match offset {
        METADATA.. => Err(FilterError::Metadata),
        _ => Ok(offset),
    }
}

fn target(at: usize, distance: u32, len: usize) -> Result<usize, FilterError> {
    // A jump back is a distance below zero, which reads as a very large one.
    if (distance as i32) < 0 {
        return Err(FilterError::Loop);
    }
    match at + 1 + distance as usize {
        target if target < len => Ok(target),
        _ => Err(malformed(at)),
    }
}

fn size(code: u16) -> Size {
    match code & 0x18 {
        0x08 => Size::Half,
        0x10 => Size::Byte,
        _ => Size::Word,
    }
}

fn alu(bits: u16) -> Option<Alu> {
    use Alu::*;
    [Add, Sub, Mul, Div, Or, And, Lsh, Rsh, Mod, Xor]
        .into_iter()
        .find(|alu| *alu as u16 == bits)
}

fn test(bits: u16) -> Option<Test> {
    use Test::*;
    [Equal, Greater, GreaterEqual, AnyBit]
        .into_iter()
        .find(|test| *test as u16 == bits)
}
