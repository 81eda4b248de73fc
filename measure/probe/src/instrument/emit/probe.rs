//! The light probe: one record into the ring of the thread, or nothing.
//!
//! Costs (one core, TSC ticks): `rdtsc` takes about 21–25 and hides most of the rest. So: no
//! `pushf` (12), no `lock` (24), no `rdgsbase` (12), no `rdtscp` or `lfence` (22; unless asked for). The fast path
//! uses the fs and gs segments only as prefixes of loads.
use super::slow::Slow;
use super::switch;
use crate::instrument::asm::{Asm, Label, Zone};
pub use crate::instrument::body::liveness::Live;
use crate::instrument::capture::Reg;
use crate::locate::FrameAddress;
use hopscope_event::layout::{Context, SLOTS_AT};
use hopscope_event::record::{
    FunctionId, LAP_FIRST, LAP_STEP, Record, RecordKind, STRIDE, id_kind,
};
use std::mem::offset_of;

/// What the generated code is made for: fixed for a recording.
#[derive(Debug, Clone, Copy)]
pub struct ProbeConfig {
    pub ring_records_log2: u32,
    /// `rorx` may be used (BMI2).
    pub bmi2: bool,
    pub stores: Stores,
    /// A thread's probes can be switched off ([`super::switch`]).
    pub switchable: bool,
    /// `rdtsc` waits for the instructions before it (`lfence`; Intel SDM vol. 2, RDTSC).
    pub ordered_stamps: bool,
}

impl ProbeConfig {
    /// Reads the clock into edx:eax.
    pub fn clock(&self, asm: &mut Asm, zone: Zone) {
        if self.ordered_stamps {
            asm.bytes(zone, LFENCE);
        }
        asm.bytes(zone, RDTSC);
    }
}

/// What a probe leaves in its ring; all but records are for benches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stores {
    #[default]
    Records,
    /// Reads the clock and drops it: the least that a pair of stamps costs in this place.
    Stamps,
    /// Saves and restores as a probe does, looks nothing up: the instrumentation by itself.
    Nothing,
}

const LAHF_SETO_AL: &[u8] = &[0x9f, 0x0f, 0x90, 0xc0];
const ADD_AL_7F_SAHF: &[u8] = &[0x04, 0x7f, 0x9e];
const PUSH_RAX: &[u8] = &[0x50];
const PUSH_RCX: &[u8] = &[0x51];
const PUSH_RDX: &[u8] = &[0x52];
const POP_RAX: &[u8] = &[0x58];
const POP_RCX: &[u8] = &[0x59];
const POP_RDX: &[u8] = &[0x5a];

/// Pushes what is live; returns how far rsp went down.
pub fn save(asm: &mut Asm, zone: Zone, live: Live) -> u32 {
    if live.rax {
        asm.bytes(zone, PUSH_RAX);
    }
    if live.flags {
        asm.bytes(zone, LAHF_SETO_AL);
        asm.bytes(zone, PUSH_RAX);
    }
    if live.rcx {
        asm.bytes(zone, PUSH_RCX);
    }
    if live.rdx {
        asm.bytes(zone, PUSH_RDX);
    }
    live.pushed()
}

pub fn restore(asm: &mut Asm, zone: Zone, live: Live) {
    if live.rdx {
        asm.bytes(zone, POP_RDX);
    }
    if live.rcx {
        asm.bytes(zone, POP_RCX);
    }
    if live.flags {
        asm.bytes(zone, POP_RAX);
        // al holds OF as 0 or 1: adding 0x7f overflows exactly when it was set.
        asm.bytes(zone, ADD_AL_7F_SAHF);
    }
    if live.rax {
        asm.bytes(zone, POP_RAX);
    }
}

/// Where a record has its time from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    Clock,
    /// Of the record before it, where that is the exit of this function at the same stack position; else the clock.
    ExitOf(FunctionId),
}

/// Loads the ring of this thread into rcx and stores one record; rax, rcx, rdx, the flags and `spare` are
/// free. `position` is the stack position that the record shall show.
pub fn record(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    (function, kind): (FunctionId, RecordKind),
    position: FrameAddress,
    spare: Option<Reg>,
) {
    let what = (id_kind(function, kind), Stamp::Clock);
    record_stamped(asm, zone, config, slow.of(kind), what, position, spare);
}

fn record_stamped(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Label,
    what: (u32, Stamp),
    position: FrameAddress,
    spare: Option<Reg>,
) {
    let done = asm.label();
    ring(asm, zone, slow, done);
    reserve(asm, zone, 1);
    store_stamped(asm, zone, config, what, position, spare);
    asm.bind(zone, done);
}

/// Loads the ring of this thread into rcx, or goes to `done` where it has none; rcx and the flags
/// are free.
pub fn ring(asm: &mut Asm, zone: Zone, slow: Label, done: Label) {
    let (cold, have_ring) = (asm.label(), asm.label());
    // mov rcx, fs:[0]: the thread's self pointer on glibc and musl
    asm.bytes(zone, &[0x64, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 0, 0]);
    // cmp rcx, gs:[owner]; jne cold
    asm.bytes(zone, &gs_load(0x3b, offset_of!(Context, owner)));
    asm.rel32(zone, &[0x0f, 0x85], cold, &[]);
    // mov rcx, gs:[ring]
    asm.bytes(zone, &gs_load(0x8b, offset_of!(Context, ring)));
    // test rcx, rcx; je done: a signal handler may have forked since the owner was compared, and this be the child
    asm.bytes(zone, &[0x48, 0x85, 0xc9]);
    asm.rel32(zone, &[0x0f, 0x84], done, &[]);
    asm.bind(zone, have_ring);
    asm.bind(Zone::Stub, cold);
    asm.rel32(Zone::Stub, &[0xe8], slow, &[]);
    asm.bytes(Zone::Stub, &[0x48, 0x85, 0xc9]); // test rcx, rcx
    asm.rel32(Zone::Stub, &[0x0f, 0x85], have_ring, &[]);
    asm.rel32(Zone::Stub, &[0xe9], done, &[]);
}

/// `op rcx, gs:[offset]`
fn gs_load(op: u8, offset: usize) -> [u8; 9] {
    let o = (offset as u32).to_le_bytes();
    [0x65, 0x48, op, 0x0c, 0x25, o[0], o[1], o[2], o[3]]
}

/// The lap is an index of `lea`, scaled by this.
const _: () = assert!(LAP_STEP == 2);

/// rcx = ring header; leaves the counter of the first of so many slots in rdx.
pub(super) fn reserve(asm: &mut Asm, zone: Zone, slots: usize) {
    asm.bytes(zone, &[0xba]); // mov edx, bytes
    asm.bytes(zone, &((slots * STRIDE) as u32).to_le_bytes());
    // xadd [rcx], rdx: one instruction, so that a signal handler cannot take the same slot
    asm.bytes(zone, &[0x48, 0x0f, 0xc1, 0x11]);
}

/// rcx = ring header, rdx = the slot's counter. The order of the stores is the protocol: the id takes the mark of whatever
/// lap is there away, and the stack, which is last, brings that of this lap.
pub(super) fn store(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    id_kind: u32,
    position: FrameAddress,
    spare: Option<Reg>,
) {
    store_stamped(asm, zone, config, (id_kind, Stamp::Clock), position, spare);
}

fn store_stamped(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    (id_kind, stamp): (u32, Stamp),
    position: FrameAddress,
    spare: Option<Reg>,
) {
    let ring_bytes_log2 = config.ring_records_log2 + STRIDE.ilog2();
    let slot = |field: usize| (SLOTS_AT + field) as u8;
    if config.bmi2 {
        // rorx rax, rdx, log2: the lap in the low half
        asm.bytes(zone, &[0xc4, 0xe3, 0xfb, 0xf0, 0xc2, ring_bytes_log2 as u8]);
    } else {
        // mov rax, rdx; shr rax, log2
        asm.bytes(
            zone,
            &[0x48, 0x89, 0xd0, 0x48, 0xc1, 0xe8, ring_bytes_log2 as u8],
        );
    }
    // rdtsc takes rax and rdx.
    let word = spare.unwrap_or(Reg::RAX);
    stack_word(asm, zone, word, position);
    if spare.is_none() {
        asm.bytes(zone, PUSH_RAX);
    }
    // and edx, ring bytes - stride
    asm.bytes(zone, &[0x81, 0xe2]);
    asm.bytes(
        zone,
        &(((1u64 << ring_bytes_log2) - STRIDE as u64) as u32).to_le_bytes(),
    );
    asm.bytes(zone, &[0x48, 0x01, 0xd1]); // add rcx, rdx
    match stamp {
        Stamp::Clock => config.clock(asm, zone),
        Stamp::ExitOf(before) => stamp_of_exit(asm, zone, config, before, word),
    }
    // mov qword [rcx + id_kind], imm: zeros in the stack word
    asm.bytes(zone, &[0x48, 0xc7, 0x41, slot(offset_of!(Record, id_kind))]);
    asm.bytes(zone, &id_kind.to_le_bytes());
    // mov [rcx + tsc], eax; mov [rcx + tsc + 4], edx: cheaper than to put the halves together
    asm.bytes(zone, &[0x89, 0x41, slot(offset_of!(Record, tsc))]);
    asm.bytes(zone, &[0x89, 0x51, slot(offset_of!(Record, tsc) + 4)]);
    if spare.is_none() {
        asm.bytes(zone, POP_RAX);
    }
    // mov [rcx + stack], word
    let (rex, field) = register_field(word);
    asm.bytes(zone, rex);
    asm.bytes(zone, &[0x89, 0x41 | field, slot(offset_of!(Record, stack))]);
}

const _: () = assert!(SLOTS_AT >= STRIDE);

/// Displacement of a field of the record before that at rcx.
const fn before(field: usize) -> u8 {
    (SLOTS_AT - STRIDE + field) as u8
}

/// edx:eax = the time of the record before, where that is an exit of `function` with the stack word in `word`, else the clock.
/// Before the first slot of a ring lies its header, which reads as no exit.
fn stamp_of_exit(asm: &mut Asm, zone: Zone, config: &ProbeConfig, function: FunctionId, word: Reg) {
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

/// What a 32-bit register is in an instruction: a prefix, and bits of the byte behind the opcode.
fn register_field(reg: Reg) -> (&'static [u8], u8) {
    let rex: &[u8] = if reg.0 < 8 { &[] } else { &[0x44] };
    (rex, (reg.0 & 7) << 3)
}

/// lea word, [rsp + rax*2 + offset], or of rbp: the base is in the low bits of the last byte.
fn stack_word(asm: &mut Asm, zone: Zone, word: Reg, position: FrameAddress) {
    let (rex, field) = register_field(word);
    asm.bytes(zone, rex);
    let (base, offset) = match position {
        FrameAddress::Rsp(offset) => (4, offset),
        FrameAddress::Rbp(offset) => (5, offset),
    };
    let offset = offset.wrapping_add(LAP_FIRST as i32);
    match i8::try_from(offset) {
        Ok(short) => asm.bytes(zone, &[0x8d, 0x44 | field, 0x40 | base, short as u8]),
        Err(_) => {
            asm.bytes(zone, &[0x8d, 0x84 | field, 0x40 | base]);
            asm.bytes(zone, &offset.to_le_bytes());
        }
    }
}

/// What a probe at this place needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    pub function: FunctionId,
    pub kind: RecordKind,
    pub live: Live,
    /// The red zone may hold data here: step over it.
    pub red_zone: bool,
    /// The stack position that is shown.
    pub position: FrameAddress,
}

/// The stack pointer's own, of calls.
pub const RSP: FrameAddress = FrameAddress::Rsp(0);

/// The same position once rsp went `down`.
pub fn below(position: FrameAddress, down: u32) -> FrameAddress {
    match position {
        FrameAddress::Rsp(offset) => FrameAddress::Rsp(offset.wrapping_add(down as i32)),
        of_rbp @ FrameAddress::Rbp(_) => of_rbp,
    }
}

/// A whole inline probe: save, record, restore.
pub fn probe(asm: &mut Asm, zone: Zone, config: &ProbeConfig, slow: Slow, site: Site) {
    if config.stores == Stores::Stamps {
        return stamp(asm, zone, config, site);
    }
    if site.red_zone {
        asm.bytes(zone, LEA_RSP_DOWN);
    }
    let pushed = save(asm, zone, site.live);
    if config.stores == Stores::Records {
        let depth = pushed + if site.red_zone { 128 } else { 0 };
        let what = (site.function, site.kind);
        let position = below(site.position, depth);
        record(asm, zone, config, slow, what, position, site.live.spare);
    }
    restore(asm, zone, site.live);
    if site.red_zone {
        asm.bytes(zone, LEA_RSP_UP);
    }
}

/// An entry probe for calls that come right behind the exit of another function.
pub(super) fn fused_entry(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    site: Site,
    before: FunctionId,
) {
    if site.red_zone {
        asm.bytes(zone, LEA_RSP_DOWN);
    }
    let depth = save(asm, zone, site.live) + if site.red_zone { 128 } else { 0 };
    let position = below(site.position, depth);
    let what = (id_kind(site.function, site.kind), Stamp::ExitOf(before));
    let slow = slow.of(site.kind);
    record_stamped(asm, zone, config, slow, what, position, site.live.spare);
    restore(asm, zone, site.live);
    if site.red_zone {
        asm.bytes(zone, LEA_RSP_UP);
    }
}

/// An entry probe; where the thread's probes are off, what is emitted next into the stub zone is what
/// goes on.
pub fn switched(asm: &mut Asm, config: &ProbeConfig, slow: Slow, site: Site) {
    let (hot, cold) = (Zone::Hot, Zone::Stub);
    let off = asm.label();
    if !site.live.flags {
        switch::test(asm, hot, off);
        probe(asm, hot, config, slow, site);
        asm.bind(cold, off);
        return switch::count(asm, cold, site.function);
    }
    if site.red_zone {
        asm.bytes(hot, LEA_RSP_DOWN);
    }
    let depth = save(asm, hot, site.live) + if site.red_zone { 128 } else { 0 };
    switch::test_keeping_flags(asm, hot, off);
    let what = (site.function, site.kind);
    let position = below(site.position, depth);
    record(asm, hot, config, slow, what, position, site.live.spare);
    asm.bind(cold, off);
    switch::count(asm, cold, site.function);
    for zone in [hot, cold] {
        restore(asm, zone, site.live);
        if site.red_zone {
            asm.bytes(zone, LEA_RSP_UP);
        }
    }
}

/// Only `rdtsc`, which leaves rcx and the flags alone.
fn stamp(asm: &mut Asm, zone: Zone, config: &ProbeConfig, site: Site) {
    let live = Live {
        rcx: false,
        flags: false,
        ..site.live
    };
    if site.red_zone {
        asm.bytes(zone, LEA_RSP_DOWN);
    }
    save(asm, zone, live);
    config.clock(asm, zone);
    restore(asm, zone, live);
    if site.red_zone {
        asm.bytes(zone, LEA_RSP_UP);
    }
}

/// Bytes below the stack pointer that signal handlers and probes leave alone (System V ABI, 3.2.2).
pub const RED_ZONE: u32 = 128;

const LFENCE: &[u8] = &[0x0f, 0xae, 0xe8];
const RDTSC: &[u8] = &[0x0f, 0x31];
/// lea rsp, [rsp - 128]: leaves the flags alone
pub const LEA_RSP_DOWN: &[u8] = &[0x48, 0x8d, 0x64, 0x24, 0x80];
/// lea rsp, [rsp + 128]
pub const LEA_RSP_UP: &[u8] = &[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
