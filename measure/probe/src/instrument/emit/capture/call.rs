//! Around a call: an entry, with the address that it leads to where nothing else says it, and an exit behind it.
use super::super::probe::{self, LEA_RSP_DOWN, Live, ProbeConfig, RED_ZONE, Site};
use super::super::slow::Slow;
use super::emitter::{code, field};
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::body::inlined::Bracket;
use crate::instrument::capture::Reg;
use hopscope_event::callee;
use hopscope_event::record::{LAP_FIRST, LAP_STEP, Record, RecordKind, STRIDE, id_kind};
use hopscope_event::value::place;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Bytes of a register on the stack.
const WORD: u32 = 8;

/// Reads the operand of a call.
pub(in crate::instrument::emit) struct Target<'a> {
    /// Pushes it where rsp is 128 lower ([`crate::instrument::body::push`]).
    pub push: &'a [u8],
    /// Where it lies, of one that is addressed from rip: offset of the displacement in `push`.
    pub from_rip: Option<(usize, Label)>,
}

/// The entry of a call through a pointer. Arguments are in registers and on the stack; all of the function's is kept.
pub(in crate::instrument::emit) fn entry(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    bracket: &Bracket,
    target: &Target,
) {
    let done = asm.label();
    // First of all: if this faults, the call would have, and nothing was reserved.
    asm.bytes(zone, LEA_RSP_DOWN);
    match target.from_rip {
        None => asm.bytes(zone, target.push),
        Some((at, label)) => {
            asm.rel32(zone, &target.push[..at], label, &target.push[at + 4..]);
        }
    }
    let saved = probe::save(asm, zone, Live::ALL) + WORD;
    code(asm, zone, |c| c.push(r8));
    probe::ring(asm, zone, slow.of(RecordKind::Entry), done);
    probe::reserve(asm, zone, 2);
    // The entry's own slot is stored last.
    value(asm, zone, config, bracket, saved as i32);
    let depth = saved + WORD + RED_ZONE;
    let position = probe::below(bracket.position, depth);
    let entry = id_kind(bracket.function, RecordKind::Entry);
    probe::store(asm, zone, config, entry, position, Some(Reg::R8));
    asm.bind(zone, done);
    code(asm, zone, |c| c.pop(r8));
    probe::restore(asm, zone, Live::ALL);
    let up = (RED_ZONE + WORD) as i32;
    code(asm, zone, |c| c.lea(rsp, rsp + up));
}

/// Stores the address, which lies at `target` from rsp, in the slot behind the one that rdx counts; rcx = ring header. Leaves these
/// two alone; rax and r8 are free. An address needs no bit 63: it is that below.
fn value(asm: &mut Asm, zone: Zone, config: &ProbeConfig, bracket: &Bracket, target: i32) {
    let log2 = config.ring_records_log2 + STRIDE.ilog2();
    let mask = (1u64 << log2) - STRIDE as u64;
    let word = (place(callee::CAPTURE, 0) + LAP_FIRST) as i32;
    let value = id_kind(bracket.function, RecordKind::Value);
    code(asm, zone, |c| {
        c.lea(r8, rdx + STRIDE as i32)?;
        c.mov(rax, r8)?;
        c.shr(rax, log2)?;
        c.and(r8d, mask as u32 as i32)?;
        c.add(r8, rcx)?;
        // Zeros in the stack word.
        c.mov(
            qword_ptr(r8 + field(offset_of!(Record, id_kind))),
            value as i32,
        )?;
        c.lea(eax, rax * LAP_STEP + word)?;
        c.push(rax)?;
        c.mov(rax, qword_ptr(rsp + target + WORD as i32))?;
        c.lea(rax, rax + rax + 1)?;
        c.mov(qword_ptr(r8 + field(offset_of!(Record, tsc))), rax)?;
        c.pop(rax)?;
        c.mov(dword_ptr(r8 + field(offset_of!(Record, stack))), eax)
    });
}

/// The exit, or the entry of a call whose callee is known: arguments, what the callee returns, and flags are kept.
pub(in crate::instrument::emit) fn probe(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    (bracket, kind): (&Bracket, RecordKind),
) {
    let site = Site {
        function: bracket.function,
        kind,
        live: Live::ALL,
        red_zone: true,
        position: bracket.position,
    };
    probe::probe(asm, zone, config, slow, site);
}
