//! One stamp for two records: the entry of a call that is made right behind the exit of another one has that exit's time.
//!
//! `rdtsc` is half of what a probe costs. What lies between such an exit and such an entry is the return, at most
//! [`FEW`](crate::instrument::body::fused) instructions of the caller and the call: less than a probe takes.
//!
//! The caller's copy calls by a word, which leads here, or to the function's own entry. Whether the record before is what it
//! should be is looked at each time: the same ring, function, kind, lap and stack position. Else the clock is read.
use super::probe::{self, ProbeConfig, Site, register_field};
use super::slow::Slow;
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::capture::Reg;
use hopscope_event::FunctionId;
use hopscope_event::layout::SLOTS_AT;
use hopscope_event::record::{Record, RecordKind, STRIDE, id_kind};
use std::mem::offset_of;

/// A way into a copy behind its entry probe, with a probe of its own.
pub fn way_in(
    asm: &mut Asm,
    config: &ProbeConfig,
    slow: Slow,
    site: Site,
    (way, before, behind_probe): (Label, FunctionId, Label),
) {
    asm.bind(Zone::Cold, way);
    probe::fused_entry(asm, Zone::Cold, config, slow, site, before);
    asm.rel32(Zone::Cold, &[0xe9], behind_probe, &[]);
}

const _: () = assert!(SLOTS_AT >= STRIDE);

/// Displacement of a field of the record before that at rcx.
const fn before(field: usize) -> u8 {
    (SLOTS_AT - STRIDE + field) as u8
}

/// edx:eax = the time of the record before, where that is an exit of `function` with the stack word in `word`, else the clock.
/// Before the first slot of a ring lies its header, which reads as no exit.
pub(super) fn stamp(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    function: FunctionId,
    word: Reg,
) {
    let (clock, stamped) = (asm.label(), asm.label());
    // cmp [rcx + stack], word; jne clock
    let (rex, field) = register_field(word);
    asm.bytes(zone, rex);
    asm.bytes(
        zone,
        &[0x39, 0x41 | field, before(offset_of!(Record, stack))],
    );
    asm.rel32(zone, &[0x0f, 0x85], clock, &[]);
    // cmp dword [rcx + id_kind], imm; jne clock
    asm.bytes(zone, &[0x81, 0x79, before(offset_of!(Record, id_kind))]);
    asm.bytes(zone, &id_kind(function, RecordKind::Exit).to_le_bytes());
    asm.rel32(zone, &[0x0f, 0x85], clock, &[]);
    // mov eax, [rcx + tsc]; mov edx, [rcx + tsc + 4]: each as it was stored
    asm.bytes(zone, &[0x8b, 0x41, before(offset_of!(Record, tsc))]);
    asm.bytes(zone, &[0x8b, 0x51, before(offset_of!(Record, tsc) + 4)]);
    asm.bind(zone, stamped);
    asm.bind(Zone::Stub, clock);
    config.clock(asm, Zone::Stub);
    asm.rel32(Zone::Stub, &[0xe9], stamped, &[]);
}
