//! Random programs of classic BPF and packets for them.
use crate::filter::classic::Insn;
use proptest::prelude::*;
use proptest::sample::select;

pub(super) fn plain(code: u16, k: u32) -> Insn {
    let (jt, jf) = (0, 0);
    Insn { code, jt, jf, k }
}

/// One instruction that any place of a program may have; `program` brings jumps into it.
fn insn() -> impl Strategy<Value = Insn> {
    // Mostly offsets that packets have, with the odd one just beyond the copied bytes.
    let offset = prop_oneof![12 => 0u32..60, 2 => 240u32..256, 1 => 256u32..400];
    // So few that comparisons find equal ones; some that sums wrap with.
    let number = prop_oneof![6 => 0u32..4, 2 => 28u32..64, 1 => u32::MAX - 40.., 1 => any::<u32>()];
    let alu = select(vec![
        0x04u16, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0x94, 0xa4,
    ]);
    let load = select(vec![0x20u16, 0x28, 0x30, 0x40, 0x48, 0x50, 0xb1]);
    let branch = select(vec![0x15u16, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d]);
    let distance = || prop_oneof![2 => Just(0u8), 3 => 0u8..5, 1 => any::<u8>()];
    prop_oneof![
        4 => (load, offset).prop_map(|(code, k)| plain(code, k)),
        3 => (select(vec![0x00u16, 0x01]), number.clone()).prop_map(|(code, k)| plain(code, k)),
        3 => select(vec![0x80u16, 0x81, 0x84, 0x07, 0x87]).prop_map(|code| plain(code, 0)),
        2 => (select(vec![0x60u16, 0x61, 0x02, 0x03]), 0u32..4).prop_map(|(code, k)| plain(code, k)),
        2 => alu.clone().prop_map(|code| plain(code | 8, 0)),
        2 => (alu, number.clone()).prop_map(|(code, k)| match code {
            0x34 | 0x94 => plain(code, k.max(1)),
            _ => plain(code, k),
        }),
        6 => (branch, distance(), distance(), number)
            .prop_map(|(code, jt, jf, k)| Insn { code, jt, jf, k }),
        1 => distance().prop_map(|k| plain(0x05, k.into())),
        1 => select(vec![0u32, 1, 262_144]).prop_map(|k| plain(0x06, k)),
        1 => Just(plain(0x16, 0)),
    ]
}

/// All jumps stay within; a return at the end.
pub(super) fn program() -> impl Strategy<Value = Vec<Insn>> {
    let body = prop::collection::vec(insn(), 1..40);
    (body, any::<bool>()).prop_map(|(mut program, accept)| {
        program.push(plain(0x06, accept.into()));
        let len = program.len();
        for (at, insn) in program.iter_mut().enumerate() {
            let room = (len - at - 1).max(1);
            if insn.code & 7 == 5 {
                insn.jt = (usize::from(insn.jt) % room) as u8;
                insn.jf = (usize::from(insn.jf) % room) as u8;
            }
            if insn.code == 5 {
                insn.k %= room as u32;
            }
        }
        program
    })
}

/// The same without what libpcap's interpreter leaves undefined: slots that were not set, shifts by
/// more than a word.
pub(super) fn defined(mut program: Vec<Insn>) -> Vec<Insn> {
    for insn in &mut program {
        if matches!(insn.code, 0x64 | 0x74) {
            insn.k %= 32;
        }
    }
    (0..4)
        .map(|slot| plain(0x02, slot))
        .chain(program)
        .collect()
}

/// With its length on the wire.
pub(super) fn packet() -> impl Strategy<Value = (Vec<u8>, u32)> {
    let byte = prop_oneof![2 => 0u8..4, 1 => any::<u8>()];
    let beyond = prop_oneof![Just(0u32), 0u32..2000];
    (prop::collection::vec(byte, 0..400), beyond)
        .prop_map(|(packet, beyond)| (packet.clone(), packet.len() as u32 + beyond))
}
