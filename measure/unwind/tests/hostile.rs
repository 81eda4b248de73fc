//! Files that are made to harm who reads them: damaged where unwind tables lie, or without section headers.
#[allow(dead_code, reason = "each test uses a part")]
mod support;

use hopscope_unwind::{Module, Refused, fuzz_module};
use object::{Object, ObjectSection};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::LazyLock;
use support::compile;

static PLAIN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let flags = ["-w", "-std=c++14", "-O2"];
    std::fs::read(compile("g++", "everything.cc", "hostile", &flags)).unwrap()
});

/// What is worth damaging: ELF's headers, and the tables, by their places in the file.
fn tables() -> Vec<Range<usize>> {
    let file = object::File::parse(&**PLAIN).unwrap();
    let place = |name| {
        let (at, size) = file.section_by_name(name).unwrap().file_range().unwrap();
        at as usize..(at + size) as usize
    };
    let tables = [".eh_frame", ".gcc_except_table", ".eh_frame_hdr"].map(place);
    std::iter::once(0..64 + 13 * 56).chain(tables).collect()
}

static TABLES: LazyLock<Vec<Range<usize>>> = LazyLock::new(tables);

fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let place = (0..TABLES.len()).prop_flat_map(|n| TABLES[n].clone());
    // Lengths and LEB128 end differently with these.
    let byte = prop_oneof![any::<u8>(), Just(0xff), Just(0x80), Just(0x7f), Just(0)];
    proptest::collection::vec((place, byte), 1..12)
}

proptest! {
    #[test]
    fn damaged_tables_are_converted_or_refused(changes in changes(), cut in 0..400usize) {
        let mut bytes = PLAIN.clone();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        if cut > 300 {
            bytes.truncate(bytes.len() * (cut - 300) / 100);
        }
        fuzz_module(&bytes);
    }
}

/// ELF64: a section header's flags, address and so on follow the name; zero for their place in the header means none.
fn without_section_headers(elf: &[u8]) -> Vec<u8> {
    let mut elf = elf.to_vec();
    elf[40..48].fill(0);
    elf[60..64].fill(0);
    elf
}

#[test]
fn a_file_without_section_headers_has_the_same_tables() {
    let stripped = without_section_headers(&PLAIN);
    let (with, without) = (
        object::File::parse(&**PLAIN).unwrap(),
        object::File::parse(&*stripped).unwrap(),
    );
    assert!(without.section_by_name(".eh_frame").is_none());
    let (with, without) = (
        Module::read(&with, 0).unwrap(),
        Module::read(&without, 0).unwrap(),
    );
    let ranges: Vec<_> = with.ranges().collect();
    assert!(ranges.len() > 10);
    assert_eq!(ranges, without.ranges().collect::<Vec<_>>());
    for range in ranges {
        let one = std::slice::from_ref(&range);
        assert_eq!(with.check(one), without.check(one));
    }
    fuzz_module(&stripped);
}

/// What the last entry covers, and the file with the entry before that lengthened, or with the last itself.
fn lengthened(itself: bool, size: impl Fn(u64) -> u32) -> (Range<u64>, Vec<u8>) {
    let mut bytes = PLAIN.clone();
    let file = object::File::parse(&**PLAIN).unwrap();
    let module = Module::read(&file, 0).unwrap();
    let range = module.ranges().last().unwrap();
    assert_eq!(module.check(std::slice::from_ref(&range)), Ok(()));
    // An FDE is its length, the way to its CIE, begin and size, each of 4 bytes.
    let section = file.section_by_name(".eh_frame").unwrap();
    let (base, data) = (section.address(), section.data().unwrap());
    let word = |at: usize| i32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    let (mut at, mut before) = (0, None);
    while word(at) != 0 {
        let begin = (base + at as u64 + 8).wrapping_add_signed(word(at + 8).into());
        if word(at + 4) != 0 && (begin < range.start || itself) {
            before = before.max(Some((begin, at)));
        }
        at += 4 + word(at) as usize;
    }
    let (begin, at) = before.unwrap();
    let place = section.file_range().unwrap().0 as usize + at + 12;
    let size = size(range.start - begin);
    bytes[place..place + 4].copy_from_slice(&size.to_le_bytes());
    (range, bytes)
}

#[test]
fn what_two_entries_cover_is_refused() {
    let (range, bytes) = lengthened(false, |before| before as u32 + 1);
    let file = object::File::parse(&*bytes).unwrap();
    let module = Module::read(&file, 0).unwrap();
    let overlap = Err(Refused::Overlap { svma: range.start });
    assert_eq!(module.check(&[range]), overlap);
    fuzz_module(&bytes);
}

#[test]
fn an_entry_that_covers_all_memory_is_refused() {
    // The size is signed where begins are.
    const SIZES: [u32; 3] = [u32::MAX, i32::MAX as u32, 1 << 31];
    for (itself, size) in [false, true]
        .into_iter()
        .flat_map(|i| SIZES.map(|s| (i, s)))
    {
        let (range, bytes) = lengthened(itself, |_| size);
        let file = object::File::parse(&*bytes).unwrap();
        let refused = match Module::read(&file, 0) {
            Ok(module) => module.check(&[range]),
            Err(why) => Err(why),
        };
        assert!(refused.is_err(), "{size:#x}");
        fuzz_module(&bytes);
    }
}
