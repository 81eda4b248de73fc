//! Random programs over random packets: three interpreters must agree, libpcap's among them.
use super::{machine, programs};
use crate::filter::classic::{Insn, Program};
use crate::filter::translate::translate;
use crate::filter::{Filter, FilterError, Link, REACH, Scratch, Verdict, libpcap, pad};
use proptest::prelude::*;

pub(super) fn filter(insns: &[Insn]) -> Filter {
    Filter {
        link: Link::Network,
        program: Program::new(insns).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn ours_agrees_with_libpcaps((insns, (packet, wire_len)) in (programs::program(), programs::packet())) {
        let insns = programs::defined(insns);
        let filter = filter(&insns);
        let theirs = libpcap::interpret(&insns, &packet, wire_len) != 0;
        prop_assert_eq!(filter.matches(&packet, wire_len), theirs);
    }

    #[test]
    fn the_translation_agrees((insns, (packet, wire_len), value) in (programs::program(), programs::packet(), any::<bool>())) {
        let filter = filter(&insns);
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
    fn any_words_are_a_program_or_refused(words in prop::collection::vec(any::<(u16, u8, u8, u32)>(), 0..30), small in any::<bool>(), (packet, wire_len) in programs::packet()) {
        let mut insns: Vec<Insn> = words.into_iter().map(|(code, jt, jf, k)| if small {
Insn { code: code & 0xbf, jt: jt & 3, jf: jf & 3, k: k & 15 }
} else {
Insn { code, jt, jf, k }
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

#[test]
fn what_is_no_program_is_refused() {
    let ret = programs::plain(0x06, 1);
    let malformed = |insns: &[Insn], insn| {
        assert_eq!(
            Program::new(insns),
            Err(FilterError::Malformed { insn }),
            "{insns:?}"
        );
    };
    let after = |insn| [ret, insn, ret];
    // Division by a constant zero, a slot that there is not, unknown operations, jumps that leave.
    malformed(&after(programs::plain(0x34, 0)), 1);
    malformed(&after(programs::plain(0x94, 0)), 1);
    malformed(&after(programs::plain(0x02, 16)), 1);
    malformed(&after(programs::plain(0x61, 16)), 1);
    malformed(&after(programs::plain(0xff, 0)), 1);
    malformed(&after(programs::plain(0x106, 0)), 1);
    malformed(&after(programs::plain(0x05, 1)), 1);
    let (jt, jf) = (1, 0);
    malformed(
        &after(Insn {
            jt,
            ..programs::plain(0x15, 0)
        }),
        1,
    );
    malformed(
        &after(Insn {
            jt: jf,
            jf: jt,
            ..programs::plain(0x15, 0)
        }),
        1,
    );
    malformed(&[ret, programs::plain(0x07, 0)], 1);
    assert_eq!(
        Program::new(&after(programs::plain(0x05, u32::MAX))),
        Err(FilterError::Loop)
    );
    for insns in [0, 4097] {
        assert_eq!(
            Program::new(&vec![ret; insns]),
            Err(FilterError::Length { insns })
        );
    }
}
