//! Probes that a thread can be told to leave out, without a stop and without a change of code: at the
//! begin of a copy the thread's context is asked, and where it says so the call goes on in the original
//! body, which has no exit probes either. It counts such calls, so that the rate of calls is known with
//! probes and without.
//!
//! The question is a comparison with a number that no other use of gs holds there by chance: what is
//! then counted lies in a context of ours.
use super::asm::{Asm, Label, Zone};
use hopscope_event::layout::{Context, OFF};
use std::mem::offset_of;

const SWITCH: [u8; 4] = (offset_of!(Context, switch) as u32).to_le_bytes();
const CALLS_OFF: [u8; 4] = (offset_of!(Context, calls_off) as u32).to_le_bytes();

/// cmp dword gs:[switch], OFF; je
const QUESTION: usize = 12 + 6;
/// mov ecx, gs:[switch]; lea ecx, [rcx - OFF]; jrcxz; jmp; jmp
const QUESTION_KEEPING_FLAGS: usize = 8 + 6 + 2 + 2 + 5;
/// inc qword gs:[calls_off]
const COUNT: usize = 9;

/// What of a thread's copies reads its context here: `(first bytes, length)`.
pub const READS: [(&[u8], usize); 3] = [
    (
        &[
            0x65, 0x81, 0x3c, 0x25, SWITCH[0], SWITCH[1], SWITCH[2], SWITCH[3],
        ],
        QUESTION,
    ),
    (
        &[
            0x65, 0x8b, 0x0c, 0x25, SWITCH[0], SWITCH[1], SWITCH[2], SWITCH[3],
        ],
        QUESTION_KEEPING_FLAGS,
    ),
    (
        &[
            0x65,
            0x48,
            0xff,
            0x04,
            0x25,
            CALLS_OFF[0],
            CALLS_OFF[1],
            CALLS_OFF[2],
            CALLS_OFF[3],
        ],
        COUNT,
    ),
];

/// Goes to `off` where the thread's probes are off. Takes the flags.
pub fn question(asm: &mut Asm, zone: Zone, off: Label) {
    asm.bytes(zone, READS[0].0);
    asm.bytes(zone, &OFF.to_le_bytes());
    asm.rel32(zone, &[0x0f, 0x84], off, &[]);
}

/// The same, taking rcx instead.
pub fn question_keeping_flags(asm: &mut Asm, zone: Zone, off: Label) {
    asm.bytes(zone, READS[1].0);
    asm.bytes(zone, &[0x8d, 0x89]);
    asm.bytes(zone, &OFF.wrapping_neg().to_le_bytes());
    // jrcxz over the jump that goes on; jmp over the one that does not
    asm.bytes(zone, &[0xe3, 2, 0xeb, 5]);
    asm.rel32(zone, &[0xe9], off, &[]);
}

/// Counts a call with its probes off. Takes the flags.
pub fn count(asm: &mut Asm, zone: Zone) {
    asm.bytes(zone, READS[2].0);
}
