//! Which ways through a place are one call of it.
use super::*;
use crate::locate::SourcePlace;

fn frames() -> FrameRules {
    FrameRules::of(vec![(0x1000..0x1040, FrameAddress::Rsp(16))])
}

/// Each begins at an address, with a line (0: nobody's) and a column.
fn lines(rows: &[(u64, u64, u64)]) -> LineRows {
    let row =
        |(at, line, column): &(u64, u64, u64)| (*at, Some(SourcePlace::new(1, *line, *column)));
    LineRows::of(rows.iter().map(row).collect())
}

fn found_by(code: &[u8], chosen: &[Inlined], lines: &LineRows) -> Found {
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
    find(&unit, &pieces, asked(chosen), &frames(), lines, &[])
}

/// A loop of its own begins with a copy between registers that comes from no line.
#[test]
fn nobodys_instructions_do_not_part_its_rounds() {
    let code = [
        0x53, 0x0f, 0x1f, 0x40, 0, // 1000 push rbx; nop
        0x89, 0xf8, // 1005 mov eax, edi
        0x89, 0xc2, // 1007 mov edx, eax
        0x83, 0xc0, 0x01, // 1009 add eax, 1
        0x85, 0xc0, // 100c test eax, eax
        0x75, 0xf7, // 100e jne 1007
        0x5b, 0xc3, // 1010 pop rbx; ret
    ];
    let place = [inlined(&[(0x1009, 0x1010)], 0)];
    let rows = [
        (0x1000, 1, 1),
        (0x1007, 0, 0),
        (0x1009, 9, 1),
        (0x1010, 2, 1),
    ];
    let one = found_by(&code, &place, &lines(&rows));
    assert_eq!(kinds(&one, Some(0x1005), Some(0x1007)), [(0, Entry)]);
    assert_eq!(kinds(&one, Some(0x100e), Some(0x1010)), [(0, Exit)]);
    assert_eq!(kinds(&one, Some(0x100e), Some(0x1007)), []);
    assert_eq!(kinds(&one, Some(0x1007), Some(0x1009)), []);
    // Where the line is one of the surrounding code's, each round may be a call.
    let rows = [(0x1000, 1, 1), (0x1009, 9, 1), (0x1010, 2, 1)];
    let each = found_by(&code, &place, &lines(&rows));
    assert_eq!(kinds(&each, Some(0x100e), Some(0x1007)), [(0, Exit)]);
    assert_eq!(kinds(&each, Some(0x1007), Some(0x1009)), [(0, Entry)]);
}

/// A jump leads to two instructions of others, which jump back: amid it, or to its begin.
#[test]
fn detours_belong_to_the_call_unless_they_lead_to_the_begin() {
    let code = |back: u8| {
        [
            0x53, 0x0f, 0x1f, 0x40, 0, // 1000 push rbx; nop
            0x89, 0xf8, // 1005 mov eax, edi
            0x85, 0xc0, // 1007 test eax, eax
            0x74, 0x07, // 1009 je 1012
            0x83, 0xc0, 0x01, // 100b add eax, 1
            0x78, 0xf7, // 100e js 1007
            0x5b, 0xc3, // 1010 pop rbx; ret
            0x89, 0xc1, // 1012 mov ecx, eax
            0xeb, back, // 1014 jmp 100b, or 1005
        ]
    };
    let place = [inlined(&[(0x1005, 0x1010)], 0)];
    let same = found_by(&code(0xf5), &place, &LineRows::default());
    assert_eq!(kinds(&same, Some(0x1009), Some(0x1012)), []);
    assert_eq!(kinds(&same, Some(0x1014), Some(0x100b)), []);
    assert_eq!(same.timed[0].1.of_others, 2);
    let next = found_by(&code(0xef), &place, &LineRows::default());
    assert_eq!(kinds(&next, Some(0x1009), Some(0x1012)), [(0, Exit)]);
    assert_eq!(kinds(&next, Some(0x1014), Some(0x1005)), [(0, Entry)]);
}

/// Two rounds of an unrolled loop: the same instructions of the same lines, and between them what is before the first.
#[test]
fn copies_of_a_place_are_calls_of_their_own() {
    let code = [
        0x53, // 1000 push rbx
        0x89, 0xf1, // 1001 mov ecx, esi
        0x83, 0xc0, 0x01, // 1003 add eax, 1
        0xc1, 0xe0, 0x02, // 1006 shl eax, 2
        0x89, 0xf1, // 1009 mov ecx, esi
        0x83, 0xc0, 0x01, // 100b add eax, 1
        0xc1, 0xe0, 0x02, // 100e shl eax, 2
        0x5b, 0xc3, // 1011 pop rbx; ret
    ];
    let place = [inlined(&[(0x1003, 0x1009), (0x100b, 0x1011)], 0)];
    let first = [
        (0x1000, 1, 1),
        (0x1001, 3, 1),
        (0x1003, 9, 1),
        (0x1006, 9, 2),
    ];
    let rows = |between| {
        let second = [between, (0x100b, 9, 1), (0x100e, 9, 2), (0x1011, 4, 1)];
        lines(&[first, second].concat())
    };
    let two = found_by(&code, &place, &rows((0x1009, 3, 1)));
    assert_eq!(kinds(&two, Some(0x1006), Some(0x1009)), [(0, Exit)]);
    assert_eq!(kinds(&two, Some(0x1009), Some(0x100b)), [(0, Entry)]);
    assert_eq!(two.crossings.edges.len(), 4, "{two:?}");
    assert!(!two.doubts[0].1.joins);
    // What is between was not copied: a loop of its own may have been unrolled.
    let unsure = found_by(&code, &place, &rows((0x1009, 5, 1)));
    assert_eq!(unsure.crossings.edges.len(), 2, "{unsure:?}");
    assert!(unsure.doubts[0].1.joins);
}

/// Two places of a function end with the same instructions, which are the second one's.
#[test]
fn common_ends_are_the_same_call() {
    let code = [
        0x53, // 1000 push rbx
        0x74, 0x05, // 1001 je 1008
        0x83, 0xc0, 0x01, // 1003 add eax, 1
        0xeb, 0x03, // 1006 jmp 100b
        0x83, 0xc0, 0x01, // 1008 add eax, 1
        0xc1, 0xe0, 0x02, // 100b shl eax, 2
        0x5b, 0xc3, // 100e pop rbx; ret
    ];
    let first = inlined(&[(0x1003, 0x1008)], 0);
    let second = inlined(&[(0x1008, 0x100e)], 0);
    let one = found_by(
        &code,
        &[first.clone(), second.clone()],
        &LineRows::default(),
    );
    assert_eq!(kinds(&one, Some(0x1001), Some(0x1003)), [(0, Entry)]);
    assert_eq!(kinds(&one, Some(0x1006), Some(0x100b)), []);
    assert_eq!(kinds(&one, Some(0x100b), Some(0x100e)), [(1, Exit)]);
    assert!(
        one.doubts
            .iter()
            .all(|(_, doubt)| *doubt == Doubt::default())
    );
    let other = Inlined {
        name: "g".into(),
        ..second
    };
    let two = found_by(&code, &[first, other], &LineRows::default());
    let passed = [(0, Exit), (1, Entry)];
    assert_eq!(kinds(&two, Some(0x1006), Some(0x100b)), passed);
    assert!(two.doubts[1].1.splits);
}

/// A constant that the compiler put behind its last jump, and only others come to.
#[test]
fn what_was_moved_behind_its_end_is_no_call() {
    let code = [
        0x53, // 1000 push rbx
        0x74, 0x07, // 1001 je 100a
        0x83, 0xc0, 0x01, // 1003 add eax, 1
        0x74, 0x04, // 1006 je 100c
        0xeb, 0x02, // 1008 jmp 100c
        0x89, 0xc1, // 100a mov ecx, eax
        0x5b, 0xc3, // 100c pop rbx; ret
    ];
    let found = found_by(
        &code,
        &[inlined(&[(0x1003, 0x100c)], 0)],
        &LineRows::default(),
    );
    assert_eq!(kinds(&found, Some(0x1001), Some(0x100a)), []);
    assert_eq!(found.timed[0].1.apart, 1);
}
