//! Instructions of extended BPF, as far as a translated filter needs them.
//!
//! Source: RFC 9669. One instruction is one little-endian word: opcode 8 bits, destination 4,
//! source 4, offset 16, immediate 32.

/// Registers by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reg(pub u8);

pub(super) fn encode(opcode: u8, dst: Reg, src: Reg, offset: i16, immediate: i32) -> u64 {
    u64::from(opcode)
        | u64::from(dst.0) << 8
        | u64::from(src.0) << 12
        | u64::from(offset as u16) << 16
        | u64::from(immediate as u32) << 32
}

const NONE: Reg = Reg(0);
const ALU32: u8 = 0x04;
const ALU64: u8 = 0x07;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const BY_REGISTER: u8 = 0x08;

pub(super) const ADD: u8 = 0x00;
pub(super) const MOV: u8 = 0xb0;
pub(super) const NEG: u8 = 0x80;

pub(super) const JA: u8 = 0x00;
pub(super) const JEQ: u8 = 0x10;
pub(super) const JGT: u8 = 0x20;
pub(super) const JGE: u8 = 0x30;
pub(super) const JSET: u8 = 0x40;
pub(super) const JNE: u8 = 0x50;
pub(super) const JLT: u8 = 0xa0;
pub(super) const JLE: u8 = 0xb0;

/// 32-bit arithmetic; the upper half of `dst` becomes zero.
pub(super) fn alu32(op: u8, dst: Reg, immediate: u32) -> u64 {
    encode(ALU32 | op, dst, NONE, 0, immediate as i32)
}

pub(super) fn alu32_by(op: u8, dst: Reg, src: Reg) -> u64 {
    encode(ALU32 | BY_REGISTER | op, dst, src, 0, 0)
}

pub(super) fn alu64(op: u8, dst: Reg, immediate: i32) -> u64 {
    encode(ALU64 | op, dst, NONE, 0, immediate)
}

pub(super) fn alu64_by(op: u8, dst: Reg, src: Reg) -> u64 {
    encode(ALU64 | BY_REGISTER | op, dst, src, 0, 0)
}

/// Network order to the machine's, `bits` wide; the rest of `dst` becomes zero.
pub(super) fn from_network(dst: Reg, bits: i32) -> u64 {
    encode(ALU32 | BY_REGISTER | 0xd0, dst, NONE, 0, bits)
}

/// Of `bytes` 1, 2 or 4, in the machine's order.
pub(super) fn load(bytes: u8, dst: Reg, base: Reg, offset: i16) -> u64 {
    let size = match bytes {
        1 => 0x10,
        2 => 0x08,
        _ => 0x00,
    };
    encode(0x61 | size, dst, base, offset, 0)
}

/// Of four bytes.
pub(super) fn store(base: Reg, offset: i16, src: Reg) -> u64 {
    encode(0x63, base, src, offset, 0)
}

/// A jump without its distance.
pub(super) fn jump64(test: u8, dst: Reg, immediate: i32) -> u64 {
    encode(JMP | test, dst, NONE, 0, immediate)
}

pub(super) fn jump64_by(test: u8, dst: Reg, src: Reg) -> u64 {
    encode(JMP | BY_REGISTER | test, dst, src, 0, 0)
}

pub(super) fn jump32(test: u8, dst: Reg, immediate: u32) -> u64 {
    encode(JMP32 | test, dst, NONE, 0, immediate as i32)
}

pub(super) fn jump32_by(test: u8, dst: Reg, src: Reg) -> u64 {
    encode(JMP32 | BY_REGISTER | test, dst, src, 0, 0)
}

pub(super) fn with_distance(jump: u64, distance: i16) -> u64 {
    jump & !0xffff_0000 | u64::from(distance as u16) << 16
}

pub(super) fn goto(distance: i16) -> u64 {
    with_distance(jump64(JA, NONE, 0), distance)
}
