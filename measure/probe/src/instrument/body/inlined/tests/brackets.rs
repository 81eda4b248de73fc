//! Calls that are timed where they are made.
use super::*;

/// push rbx; then calls by a register, by two words, of a function, and by the stack pointer, which is none.
const CALLS: &[u8] = &[
    0x53, // 1000 push rbx
    0x0f, 0x1f, 0x40, 0, // 1001 nop
    0xff, 0xd0, // 1005 call rax
    0xff, 0x15, 0xf3, 0x0f, 0, 0, // 1007 call [2000]
    0xff, 0x15, 0xf5, 0x0f, 0, 0, // 100d call [2008]
    0xe8, 0xe8, 0x1f, 0, 0, // 1013 call 3000
    0xff, 0xd4, // 1018 call rsp
    0x5b, // 101a pop rbx
    0xc3, // 101b ret
];

fn frame(bytes: i32) -> FrameRules {
    FrameRules::of(vec![(0x1000..0x101c, FrameAddress::Rsp(bytes))])
}

/// The word at 2000 has a name; functions are not asked for.
fn pointers(called: Called) -> Option<(usize, bool)> {
    match called {
        Called::Function(_) | Called::Word(0x2000) => None,
        Called::Word(_) | Called::Pointer => Some((0, true)),
    }
}

fn bracketed(
    code: &[u8],
    inlined: &[Inlined],
    rules: &FrameRules,
    landings: &[(std::ops::Range<u64>, u64)],
) -> Found {
    let asked = Asked {
        inlined,
        calls: Some(&pointers),
    };
    asked_for(code, asked, rules, landings)
}

fn positions(found: &Found) -> Vec<(u64, FrameAddress)> {
    let brackets = found.crossings.brackets().iter();
    brackets.map(|b| (b.call, b.position)).collect()
}

#[test]
fn calls_through_pointers_show_the_first_word_of_the_frame() {
    let found = bracketed(CALLS, &[], &frame(16), &[]);
    let first = FrameAddress::Rsp(0);
    assert_eq!(positions(&found), [(0x1005, first), (0x100d, first)]);
    assert!(found.calls_refused.is_empty());
    let whole = found
        .crossings
        .numbered(|n| (n == 0).then_some(FunctionId(7)));
    assert_eq!(
        whole.bracket(0x100d).map(|b| b.function),
        Some(FunctionId(7))
    );
    assert_eq!(whole.bracket(0x1013), None);
    assert!(!whole.is_empty());
}

#[test]
fn within_an_inlined_function_it_is_the_next_word() {
    let deep = frame(32);
    let place = [inlined(&[(0x1005, 0x100d)], 0)];
    let found = bracketed(CALLS, &place, &deep, &[]);
    let (within, beside) = (FrameAddress::Rsp(8), FrameAddress::Rsp(16));
    assert_eq!(positions(&found), [(0x1005, within), (0x100d, beside)]);
    // Of the place behind those of inlined functions.
    assert!(found.crossings.brackets().iter().all(|b| b.function == 1));
}

#[test]
fn without_a_word_of_the_frame_it_is_refused() {
    let none = FrameRules::of(vec![
        (0x1000..0x1007, FrameAddress::Rsp(8)),
        (0x100d..0x101c, FrameAddress::Rsp(16)),
    ]);
    let found = bracketed(CALLS, &[], &none, &[]);
    assert_eq!(positions(&found), [(0x100d, FrameAddress::Rsp(0))]);
    let refused: Vec<_> = found
        .calls_refused
        .iter()
        .map(|r| (r.call, r.why))
        .collect();
    assert_eq!(refused, [(0x1005, NotTimed::SmallFrame)]);
}

#[test]
fn exceptions_end_the_call_before_what_it_is_in() {
    let deep = frame(32);
    let place = [inlined(&[(0x1005, 0x100d)], 0)];
    let found = bracketed(CALLS, &place, &deep, &[(0x1005..0x1007, 0x101a)]);
    let way = kinds(&found, Some(0x1005), Some(0x101a));
    assert_eq!(way, [(1, Exit), (0, Exit)]);
}
