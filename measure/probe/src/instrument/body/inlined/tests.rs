use super::*;
use crate::instrument::body::unit::Surroundings;

/// push rbx; then `mov eax, edi` (2 bytes each), `call` out of the unit, and so on, at known addresses.
const CODE: &[u8] = &[
    0x53, // 1000 push rbx
    0x89, 0xf8, // 1001 mov eax, edi
    0x83, 0xc0, 0x01, // 1003 add eax, 1
    0x89, 0xf1, // 1006 mov ecx, esi
    0x83, 0xc0, 0x02, // 1008 add eax, 2
    0x85, 0xc0, // 100b test eax, eax
    0x74, 0x05, // 100d je 1014
    0xe8, 0, 0, 1, 0, // 100f call
    0x89, 0xc2, // 1014 mov edx, eax
    0x5b, // 1016 pop rbx
    0xc3, // 1017 ret
];
const BEGIN: u64 = 0x1000;

fn inlined(ranges: &[(u64, u64)], depth: u32) -> Inlined {
    Inlined {
        name: "f".into(),
        entry: ranges[0].0,
        ranges: ranges.iter().map(|(begin, end)| *begin..*end).collect(),
        depth,
    }
}

fn rules() -> FrameRules {
    FrameRules::of(vec![
        (0x1000..0x1001, FrameAddress::Rsp(8)),
        (0x1001..0x1017, FrameAddress::Rsp(16)),
        (0x1017..0x1018, FrameAddress::Rsp(8)),
    ])
}

fn found(code: &[u8], chosen: &[Inlined], rules: &FrameRules) -> Found {
    landing(code, chosen, rules, &[])
}

fn asked(inlined: &[Inlined]) -> Asked<'_> {
    Asked {
        inlined,
        calls: None,
    }
}

fn landing(
    code: &[u8],
    chosen: &[Inlined],
    rules: &FrameRules,
    landings: &[(std::ops::Range<u64>, u64)],
) -> Found {
    asked_for(code, asked(chosen), rules, landings)
}

fn asked_for(
    code: &[u8],
    asked: Asked,
    rules: &FrameRules,
    landings: &[(std::ops::Range<u64>, u64)],
) -> Found {
    let pieces = [Piece {
        svma: BEGIN,
        bytes: code,
    }];
    let around = Surroundings {
        entry_stays: false,
        room: 64,
        branch_into: &|_| false,
    };
    let unit = Unit::decode(&pieces, &around).unwrap();
    find(&unit, &pieces, asked, rules, &LineRows::default(), landings)
}

fn kinds(found: &Found, from: Option<u64>, to: Option<u64>) -> Vec<(usize, RecordKind)> {
    let on = found.crossings.edges.get(&(from, to));
    on.map_or(Vec::new(), |on| {
        on.iter().map(|c| (c.function, c.kind)).collect()
    })
}

use RecordKind::{Entry, Exit};

#[test]
fn what_is_mixed_into_it_is_its_own() {
    let found = found(
        CODE,
        &[inlined(&[(0x1003, 0x1006), (0x1008, 0x100b)], 0)],
        &rules(),
    );
    let counts = Counts {
        own: 2,
        of_others: 1,
        apart: 0,
    };
    assert_eq!(found.timed, [(0, counts)]);
    assert_eq!(found.crossings.edges.len(), 2, "{found:?}");
    assert_eq!(kinds(&found, Some(0x1001), Some(0x1003)), [(0, Entry)]);
    assert_eq!(kinds(&found, Some(0x1008), Some(0x100b)), [(0, Exit)]);
}

/// The second part is behind a branch, which a gap does not go over; nothing leads there from the first.
#[test]
fn what_lies_apart_is_not_its_own() {
    let found = found(
        CODE,
        &[inlined(&[(0x1003, 0x1006), (0x1014, 0x1016)], 0)],
        &rules(),
    );
    let counts = Counts {
        own: 1,
        of_others: 0,
        apart: 1,
    };
    assert_eq!(found.timed, [(0, counts)]);
    assert_eq!(found.crossings.edges.len(), 2, "{found:?}");
}

/// The first of its instructions, where it begins as the debugging information has it, leads to none of the others, which
/// are all behind a call: three of them, or five with two more.
#[test]
fn it_begins_where_most_is_reached_from() {
    let begins = |code: &[u8], more: u64| {
        let parts = [(0x1008, 0x100b), (0x1014, 0x1018 + more)];
        let ends = 0x1018 + more;
        let rules = FrameRules::of(vec![
            (0x1000..0x1001, FrameAddress::Rsp(8)),
            (0x1001..ends, FrameAddress::Rsp(16)),
        ]);
        let found = found(code, &[inlined(&parts, 0)], &rules);
        let counts = found.timed[0].1;
        let first = kinds(&found, Some(0x1006), Some(0x1008));
        let second = kinds(&found, Some(0x100f), Some(0x1014));
        (counts.own, counts.apart, first, second)
    };
    let (entry, none) = (vec![(0, Entry)], vec![]);
    assert_eq!(begins(CODE, 0), (1, 3, entry.clone(), none.clone()));
    let nops = [&CODE[..22], &[0x90; 2][..], &CODE[22..]].concat();
    assert_eq!(begins(&nops, 2), (5, 1, none, entry));
}

/// Its branch goes past the call: both ways lead out, and what is reached by one of its own branches belongs to it.
#[test]
fn branches_lead_in_and_out() {
    let found = found(
        CODE,
        &[inlined(&[(0x100b, 0x100f), (0x1014, 0x1016)], 0)],
        &rules(),
    );
    assert_eq!(kinds(&found, Some(0x100d), Some(0x100f)), [(0, Exit)]);
    assert_eq!(kinds(&found, Some(0x100d), Some(0x1014)), []);
    assert_eq!(kinds(&found, Some(0x100f), Some(0x1014)), [(0, Entry)]);
    assert_eq!(kinds(&found, Some(0x1014), Some(0x1016)), [(0, Exit)]);
}

#[test]
fn levels_lie_below_each_other_and_above_what_is_called() {
    let outer = inlined(&[(0x1003, 0x100b)], 0);
    let inner = inlined(&[(0x1003, 0x1006)], 1);
    let both = found(CODE, &[outer, inner], &rules());
    let entered = &both.crossings.edges[&(Some(0x1001), Some(0x1003))];
    let positions: Vec<_> = entered.iter().map(|c| (c.function, c.position)).collect();
    // CFA - 16 and CFA - 24, where rsp is CFA - 16.
    let expected = [(0, FrameAddress::Rsp(0)), (1, FrameAddress::Rsp(-8))];
    assert_eq!(positions, expected);
    assert_eq!(kinds(&both, Some(0x1003), Some(0x1006)), [(1, Exit)]);
    // The call's return address lies where the second level would be shown.
    let outer = inlined(&[(0x1008, 0x1016)], 0);
    let inner = inlined(&[(0x100f, 0x1014)], 1);
    let deep = found(CODE, &[outer, inner], &rules());
    assert_eq!(deep.refused, [(1, NotTimed::SmallFrame)]);
    assert_eq!(deep.timed.len(), 1);
}

/// By its caller, at once; and left with the function.
#[test]
fn the_whole_function_may_be_one() {
    let found = found(CODE, &[inlined(&[(0x1000, 0x1018)], 0)], &rules());
    assert_eq!(kinds(&found, None, Some(0x1000)), [(0, Entry)]);
    assert_eq!(kinds(&found, Some(0x1017), None), [(0, Exit)]);
    assert_eq!(found.crossings.edges.len(), 2);
}

#[test]
fn what_cannot_be_timed_is_refused() {
    let one = inlined(&[(0x1003, 0x1008)], 0);
    let across = inlined(&[(0x1006, 0x100b)], 0);
    let overlapping = found(CODE, &[one.clone(), across], &rules());
    assert_eq!(overlapping.refused, [(1, NotTimed::Overlaps)]);
    let nowhere = found(CODE, &[inlined(&[(0x2000, 0x2008)], 0)], &rules());
    assert_eq!(nowhere.refused, [(0, NotTimed::NoCode)]);
    let unknown = found(CODE, std::slice::from_ref(&one), &FrameRules::default());
    assert_eq!(unknown.refused, [(0, NotTimed::NoFrame { svma: 0x1003 })]);
}

/// jmp rax at the end: anywhere but to the entry, which is a call.
#[test]
fn computed_jumps_lead_in_and_out() {
    let jumps = [&CODE[..CODE.len() - 1], &[0xff, 0xe0]].concat();
    let rules = FrameRules::of(vec![(0x1000..0x1019, FrameAddress::Rsp(16))]);
    let into = found(&jumps, &[inlined(&[(0x1014, 0x1016)], 0)], &rules);
    assert_eq!(kinds(&into, Some(0x1017), Some(0x1014)), [(0, Entry)]);
    assert_eq!(kinds(&into, Some(0x1017), Some(0x100f)), []);
    assert_eq!(kinds(&into, Some(0x1017), Some(0x1000)), []);
    let out = found(&jumps, &[inlined(&[(0x1016, 0x1019)], 0)], &rules);
    assert_eq!(kinds(&out, Some(0x1017), Some(0x1014)), [(0, Exit)]);
    assert_eq!(kinds(&out, Some(0x1017), None), [(0, Exit)]);
}

/// push rbp; mov rbp, rsp; push rbx; sub rsp, 24; mov eax, edi; call; add rsp, 24; pop rbx; pop rbp; ret
#[test]
fn frames_by_rbp_have_the_room_that_was_made() {
    let code = [
        0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 24, 0x89, 0xf8, 0xe8, 0, 0, 1, 0, 0x48,
        0x83, 0xc4, 24, 0x5b, 0x5d, 0xc3,
    ];
    let rules = FrameRules::of(vec![(0x1000..0x1017, FrameAddress::Rbp(16))]);
    // Return address, rbp, rbx, 24 bytes: room for five levels.
    let levels: Vec<Inlined> = (0..6)
        .map(|depth| inlined(&[(0x1009, 0x1010)], depth))
        .collect();
    let found = found(&code, &levels, &rules);
    assert_eq!(found.refused, [(5, NotTimed::SmallFrame)]);
    let on = &found.crossings.edges[&(Some(0x1005), Some(0x1009))];
    assert_eq!(on[4].position, FrameAddress::Rbp(16 - 8 - 40));
}

/// The one around the last is not among them: what lies beside it is not taken for that.
#[test]
fn what_is_around_may_be_left_out() {
    let beside = inlined(&[(0x1003, 0x1006)], 1);
    let alone = inlined(&[(0x1008, 0x100b)], 2);
    let found = found(CODE, &[beside, alone], &rules());
    assert_eq!(found.timed.len(), 2);
    assert_eq!(kinds(&found, Some(0x1006), Some(0x1008)), [(1, Entry)]);
    let on = &found.crossings.edges[&(Some(0x1006), Some(0x1008))];
    assert_eq!(on[0].position, FrameAddress::Rsp(0));
}

/// push rbp; mov rbp, rsp; push rbx; push rbx; call; nop, ret; and a landing pad: call; jmp back
#[test]
fn landing_pads_are_as_deep_as_calls() {
    let code = [
        0x55, 0x48, 0x89, 0xe5, 0x53, 0x53, 0xe8, 0, 0, 1, 0, 0xc9, 0xc3, 0xe8, 0, 0, 1, 0, 0xeb,
        0xf7,
    ];
    let rules = FrameRules::of(vec![(0x1000..0x1014, FrameAddress::Rbp(16))]);
    let place = [inlined(&[(0x100d, 0x1012)], 0)];
    let within = found(&code, &place, &rules);
    assert_eq!(within.refused, []);
    // An exception that passes the first call enters it, one that passes its own does not.
    let landings = [(0x1006..0x100b, 0x100d), (0x100d..0x1012, 0x100d)];
    let landed = landing(&code, &place, &rules, &landings);
    assert_eq!(kinds(&landed, Some(0x1006), Some(0x100d)), [(0, Entry)]);
    assert_eq!(kinds(&landed, Some(0x100d), Some(0x100d)), []);
    assert_eq!(
        landed.crossings.landings,
        [(0x1006, 0x100d), (0x100d, 0x100d)]
    );
    // And one that passes this call leaves it.
    let landed = landing(&code, &place, &rules, &[(0x100d..0x1012, 0x100b)]);
    assert_eq!(kinds(&landed, Some(0x100d), Some(0x100b)), [(0, Exit)]);
}

mod brackets;
mod calls;
