//! Random programs over random packets: three interpreters must agree, libpcap's among them.
use super::machine;
use crate::filter::classic::{Insn, Program};
use crate::filter::translate::translate;
use crate::filter::{Filter, Link, libpcap, pad};
use crate::filter::{FilterError, REACH, Scratch, Verdict};
use proptest::prelude::*;

/// One instruction that any place of a program may have; jumps and returns come from `program`.
fn insn() -> impl Strategy<Value = Insn> {
    // Mostly offsets that packets have, with the odd one just beyond the copied bytes.
    let offset = prop_oneof![6 => 0u32..60, 2 => 240u32..256, 1 => 256u32..400];
    let number = prop_oneof![4 => 0u32..40, 1 => any::<u32>()];
    let alu = prop::sample::select(vec![
        0x04u16, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0x94, 0xa4,
    ]);
    let plain = |code, k| Insn {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    prop_oneof![
        4 => (prop::sample::select(vec![0x20u16, 0x28, 0x30, 0x40, 0x48, 0x50, 0xb1]), offset)
            .prop_map(move |(code, k)| plain(code, k)),
        2 => (prop::sample::select(vec![0x00u16, 0x01]), number.clone())
            .prop_map(move |(code, k)| plain(code, k)),
        1 => prop::sample::select(vec![0x80u16, 0x81, 0x84, 0x07, 0x87]).prop_map(move |code| plain(code, 0)),
        2 => (prop::sample::select(vec![0x60u16, 0x61, 0x02, 0x03]), 0u32..16)
            .prop_map(move |(code, k)| plain(code, k)),
        2 => alu.clone().prop_map(move |code| plain(code | 8, 0)),
        2 => (alu, number).prop_map(move |(code, k)| match code {
            0x34 | 0x94 => plain(code, k.max(1)),
            // libpcap's compiler writes no longer shift, and libpcap's interpreter leaves it undefined.
            0x64 | 0x74 => plain(code, k % 32),
            _ => plain(code, k),
        }),
        4 => (prop::sample::select(vec![0x15u16, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d]), any::<(u8, u8)>(), 0u32..300)
            .prop_map(|(code, (jt, jf), k)| Insn { code, jt, jf, k }),
        1 => (0u32..255).prop_map(move |k| plain(0x05, k)),
        1 => prop::sample::select(vec![0u32, 1, 262_144]).prop_map(move |k| plain(0x06, k)),
        1 => Just(plain(0x16, 0)),
    ]
}

/// Scratch memory set first, which libpcap's interpreter wants; jumps within the program; a return at
/// the end.
fn program() -> impl Strategy<Value = Vec<Insn>> {
    (prop::collection::vec(insn(), 1..40), any::<bool>()).prop_map(|(body, accept)| {
        let zero = (0..16).map(|k| Insn {
            code: 0x02,
            jt: 0,
            jf: 0,
            k,
        });
        let mut program: Vec<Insn> = zero.chain(body).collect();
        program.push(Insn {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: accept.into(),
        });
        let len = program.len();
        for (at, insn) in program.iter_mut().enumerate() {
            let room = (len - at - 1).min(255);
            if insn.code & 7 == 5 {
                insn.jt = (usize::from(insn.jt) % room.max(1)) as u8;
                insn.jf = (usize::from(insn.jf) % room.max(1)) as u8;
            }
            if insn.code == 5 {
                insn.k %= room.max(1) as u32;
            }
        }
        program
    })
}

fn packet() -> impl Strategy<Value = (Vec<u8>, u32)> {
    (
        prop::collection::vec(any::<u8>(), 0..400),
        prop_oneof![Just(0u32), 0u32..2000],
    )
        .prop_map(|(packet, more)| {
            let len = packet.len() as u32;
            (packet, len + more)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn ours_agrees_with_libpcaps((insns, (packet, wire_len)) in (program(), packet())) {
        let filter = Filter { link: Link::Network, program: Program::new(&insns).unwrap() };
        let theirs = libpcap::interpret(&insns, &packet, wire_len) != 0;
        prop_assert_eq!(filter.matches(&packet, wire_len), theirs);
    }

    #[test]
    fn the_translation_agrees((insns, (packet, wire_len), value) in (program(), packet(), any::<bool>())) {
        let filter = Filter { link: Link::Network, program: Program::new(&insns).unwrap() };
        let scratch = if value { Scratch::Value(REACH as i16) } else { Scratch::Stack(-64) };
        let block = match translate(&filter.program, 4096, scratch) {
            Err(FilterError::TooFar { end, .. }) => {
                prop_assert!(end > REACH.into());
                return Ok(());
            }
            block => block.unwrap(),
        };
        let copied = &packet[..packet.len().min(REACH as usize)];
        let ours = filter.verdict(copied, wire_len);
        for block in [block.clone(), pad(&block, block.len() + 1).unwrap(), pad(&block, 1000).unwrap()] {
            let outcome = machine::run(&block, &packet, wire_len);
            prop_assert_eq!(outcome.matched, ours == Verdict::Match);
            prop_assert_eq!(outcome.cut_off, ours == Verdict::CutOff);
        }
    }

    #[test]
    fn any_words_are_a_program_or_refused(words in prop::collection::vec(any::<(u16, u8, u8, u32)>(), 0..30), small in any::<bool>(), (packet, wire_len) in packet()) {
        let mut insns: Vec<Insn> = words.into_iter().map(|(code, jt, jf, k)| match small {
            true => Insn { code: code & 0xbf, jt: jt & 3, jf: jf & 3, k: k & 15 },
            false => Insn { code, jt, jf, k },
        }).collect();
        insns.push(Insn { code: 6, jt: 0, jf: 0, k: 1 });
        if let Ok(program) = Program::new(&insns) {
            let filter = Filter { link: Link::Network, program };
            let _ = filter.verdict(&packet, wire_len);
            let _ = filter.to_ebpf(4096, Scratch::Stack(-64));
        }
    }

    #[test]
    fn any_text_is_a_filter_or_refused(text in "[a-z0-9 ()\\[\\]&|!=<>.:/\\\\-]{0,40}", any in any::<String>()) {
        for text in [text, any] {
            for link in [Link::Network, Link::Ethernet] {
                if let Err(error) = Filter::compile(&text, link) {
                    prop_assert!(error.at().is_none_or(|at| at <= text.len() && text.is_char_boundary(at)));
                }
            }
        }
    }
}
