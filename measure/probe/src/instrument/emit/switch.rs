//! Probes that a thread can be told to leave out, without a stop and without a change of code. At the
//! beginning of a copy the thread's context is compared with a number; where it holds that number, the
//! call goes on in the original body, which has no exit probes either. Such calls are counted, so that
//! the rate of calls is known with probes and without.
//!
//! No other data behind a gs base is likely to hold that number there: what is then counted lies in a
//! context of ours.
use crate::instrument::asm::{Asm, Label, Zone};
use hopscope_event::FunctionId;
use hopscope_event::layout::{Context, OFF, OFF_CLASSES, off_class};
use std::mem::offset_of;

/// cmp dword gs:[switch], OFF; je
const TEST_BYTES: usize = 12 + 6;
/// mov ecx, gs:[switch]; lea ecx, [rcx - OFF]; jrcxz; jmp; jmp
const TEST_KEEPING_FLAGS_BYTES: usize = 8 + 6 + 2 + 2 + 5;
/// inc qword gs:[calls_off + 8 * class]
const COUNT_BYTES: usize = 9;

/// The prefix that each of them begins with.
pub const GS: u8 = 0x65;

fn disp(offset: usize) -> [u8; 4] {
    (offset as u32).to_le_bytes()
}

/// cmp dword gs:[switch], OFF
fn test_bytes() -> Vec<u8> {
    let switch = disp(offset_of!(Context, switch));
    [&[GS, 0x81, 0x3c, 0x25], &switch[..], &OFF.to_le_bytes()].concat()
}

/// mov ecx, gs:[switch]; lea ecx, [rcx - OFF]
fn test_keeping_flags_bytes() -> Vec<u8> {
    let switch = disp(offset_of!(Context, switch));
    let off = OFF.wrapping_neg().to_le_bytes();
    [&[GS, 0x8b, 0x0c, 0x25], &switch[..], &[0x8d, 0x89], &off].concat()
}

fn count_bytes(class: usize) -> Vec<u8> {
    let at = disp(offset_of!(Context, calls_off) + 8 * class);
    [&[GS, 0x48, 0xff, 0x04, 0x25], &at[..]].concat()
}

/// What of a copy reads its thread's context here: how it begins, and its length.
pub fn reads() -> Vec<(Vec<u8>, usize)> {
    let tests = [
        (test_bytes(), TEST_BYTES),
        (test_keeping_flags_bytes(), TEST_KEEPING_FLAGS_BYTES),
    ];
    let counts = (0..OFF_CLASSES).map(|class| (count_bytes(class), COUNT_BYTES));
    tests.into_iter().chain(counts).collect()
}

/// Goes to `off` where the thread's probes are off. Takes the flags.
pub fn test(asm: &mut Asm, zone: Zone, off: Label) {
    asm.bytes(zone, &test_bytes());
    asm.rel32(zone, &[0x0f, 0x84], off, &[]);
}

/// The same, taking rcx instead.
pub fn test_keeping_flags(asm: &mut Asm, zone: Zone, off: Label) {
    asm.bytes(zone, &test_keeping_flags_bytes());
    // jrcxz over the jump that goes on; jmp over the one that does not
    asm.bytes(zone, &[0xe3, 2, 0xeb, 5]);
    asm.rel32(zone, &[0xe9], off, &[]);
}

/// Counts a call with its probes off. Takes the flags.
pub fn count(asm: &mut Asm, zone: Zone, function: FunctionId) {
    asm.bytes(zone, &count_bytes(off_class(function)));
}
