//! Every function of real files, copied in thought: what unwinders would read of the copy is what they read of the original.
mod support;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, LittleEndian, Pointer, UnwindSection};
use hopscope_unwind::{Module, Piece, Refused, Tables};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::copy::Copy;
use support::personality::{Action, Answer, ask};
use support::rows::{Fde, Reader, Row, rows};
use support::{BIAS, Memory, SEGMENT, compile};

/// Where the tables lie in the segment.
const AT: u64 = 0x3000_0000;

#[derive(Debug, Default)]
struct Seen {
    converted: usize,
    refused: BTreeMap<String, usize>,
    landing: usize,
    types: usize,
    filters: usize,
    /// Landing pads in another entry's range.
    apart: usize,
    /// One entry in two pieces.
    split: usize,
    pushed: usize,
    /// Tables that name the base of their landing pads.
    based: usize,
}

/// At most `most` functions, spread evenly.
fn file(path: &Path, most: usize) -> Seen {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let section = file.section_by_name(".eh_frame").unwrap();
    let mut eh_frame = EhFrame::new(section.data().unwrap(), LittleEndian);
    eh_frame.set_address_size(8);
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let mut fdes: Vec<Fde> = Vec::new();
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        if let CieOrFde::Fde(fde) = entry {
            fdes.push(fde.parse(EhFrame::cie_from_offset).unwrap());
        }
    }
    fdes.sort_by_key(Fde::initial_address);
    let module = Module::read(&file, BIAS).unwrap();
    let memory = Memory::of_file(&file);
    let mut originals = Originals {
        memory: &memory,
        eh_frame: &eh_frame,
        bases: &bases,
        fdes: &fdes,
        module: &module,
        tables: Tables::new(),
        functions: Vec::new(),
        next: 64,
        seen: Seen::default(),
    };
    for n in (0..fdes.len()).step_by(fdes.len().div_ceil(most)) {
        originals.add(n);
    }
    originals.compare(path)
}

struct Originals<'s, 'd> {
    memory: &'s Memory<'d>,
    eh_frame: &'s EhFrame<Reader<'d>>,
    bases: &'s BaseAddresses,
    fdes: &'s [Fde<'d>],
    module: &'s Module<'d>,
    tables: Tables,
    /// Entries of each function with their copies.
    functions: Vec<Vec<(usize, Copy)>>,
    next: u64,
    seen: Seen,
}

impl Originals<'_, '_> {
    /// A function: an entry, and those that its landing pads lie in.
    fn add(&mut self, first: usize) {
        let mut members = self.pieces(first);
        loop {
            let ranges: Vec<_> = members.iter().map(|m| m.1.clone()).collect();
            let checked = self.module.check(&ranges);
            if let Err(Refused::LandingPadOutside { pad }) = checked {
                let other = self.fdes.iter().position(|f| f.contains(pad)).unwrap();
                assert!(members.iter().all(|m| m.0 != other), "{pad:#x}");
                members.push((other, range_of(&self.fdes[other])));
                self.seen.apart += 1;
                continue;
            }
            let mut copies = Vec::new();
            // The last first: landing pads lie before the calls, too.
            for range in ranges.into_iter().rev() {
                let copy = Copy::of(self.memory, range, self.next);
                self.next = copy.copy.end + 16;
                copies.insert(0, copy);
            }
            let pieces: Vec<Piece> = copies.iter().map(Copy::piece).collect();
            let before = self.tables.len();
            let added = self.tables.add(self.module, &pieces);
            assert_eq!(checked, added);
            match added {
                Ok(()) => {
                    self.seen.converted += 1;
                    let entries = members.into_iter().map(|m| m.0);
                    self.functions.push(entries.zip(copies).collect());
                }
                Err(why) => {
                    assert_eq!(self.tables.len(), before);
                    let name = match why {
                        Refused::Rule { what, .. } => what.to_string(),
                        Refused::Lsda { why, .. } => why.to_string(),
                        why => format!("{why:?}"),
                    };
                    *self.seen.refused.entry(name).or_default() += 1;
                }
            }
            return;
        }
    }

    /// An entry's range; every third time in two, cut before some instruction in the middle.
    fn pieces(&mut self, n: usize) -> Vec<(usize, Range<u64>)> {
        let range = range_of(&self.fdes[n]);
        let whole = Copy::of(self.memory, range.clone(), 0);
        let middle = whole.map[whole.map.len() / 2].0;
        if !n.is_multiple_of(3) || middle == range.start {
            return vec![(n, range)];
        }
        self.seen.split += 1;
        vec![(n, range.start..middle), (n, middle..range.end)]
    }

    fn compare(mut self, path: &Path) -> Seen {
        let len = self.tables.len();
        let blob = std::mem::take(&mut self.tables).finish(AT).unwrap();
        assert_eq!(blob.len(), len);
        let copy = Copied::read(&blob);
        assert_eq!(
            copy.entries,
            self.functions.iter().map(Vec::len).sum::<usize>()
        );
        for function in std::mem::take(&mut self.functions) {
            for (n, made) in &function {
                let fde = &self.fdes[*n];
                let new = copy.find(made.copy.start, made.copy.end);
                assert_eq!(new.initial_address(), SEGMENT + made.copy.start);
                assert_eq!(new.end_address(), SEGMENT + made.copy.end);
                assert_eq!(new.is_signal_trampoline(), fde.is_signal_trampoline());
                let (old_routine, new_routine) = (fde.personality(), new.personality());
                assert_eq!(new_routine, old_routine.map(moved), "{path:?} {fde:?}");
                self.rows(fde, made, &copy, &new);
                self.exceptions(fde, &function, made, &copy, &new);
            }
        }
        self.seen
    }

    fn rows(&mut self, fde: &Fde, made: &Copy, copy: &Copied, new: &Fde) {
        let before = rows(self.eh_frame, self.bases, fde, |_| 0);
        let pushed = |at: u64| made.pushed_at(at - SEGMENT);
        let after = rows(&copy.eh_frame, &copy.bases, new, pushed);
        assert_eq!(
            after.first().map(|r| r.start),
            Some(SEGMENT + made.copy.start)
        );
        let (mut b, mut a) = (0, 0);
        for (svma, range) in made.instructions() {
            b = row_at(&before, b, svma);
            for offset in range {
                // Rows of the new table begin wherever the number of pushed bytes changes.
                a = row_at(&after, a, SEGMENT + offset);
                let follows = match &after[a].cfa {
                    support::rows::Cfa::Register(register, _) => *register == 7,
                    support::rows::Cfa::Expression(code) => {
                        code.iter().any(|o| o.contains("Register(7)"))
                    }
                };
                if follows {
                    let whole_row = made.pushed_at(after[a].start - SEGMENT);
                    assert_eq!(whole_row, made.pushed_at(offset), "{svma:#x}");
                    self.seen.pushed += usize::from(whole_row > 0);
                }
                let same = (&after[a].cfa, &after[a].registers, after[a].args_size);
                let expected = (&before[b].cfa, &before[b].registers, before[b].args_size);
                assert_eq!(same, expected, "{svma:#x} {offset:#x}");
            }
        }
    }

    fn exceptions(
        &mut self,
        fde: &Fde,
        function: &[(usize, Copy)],
        made: &Copy,
        copy: &Copied,
        new: &Fde,
    ) {
        let lies_inside = |at: u64| {
            let base = self.bases.eh_frame.section.unwrap() + fde.offset() as u64;
            (base..base + 12 + fde.entry_len() as u64).contains(&at)
        };
        let table = fde.lsda().map(Pointer::pointer);
        let table = table.filter(|at| !lies_inside(*at) && fde.personality().is_some());
        assert_eq!(table.is_some(), new.lsda().is_some());
        let (Some(table), Some(new_table)) = (table, new.lsda()) else {
            return;
        };
        let head = copy.memory.at(new_table.pointer()).unwrap();
        self.seen.based += usize::from(head[0] != 0xff);
        let pad_of = |svma| function.iter().find_map(|(_, c)| c.pad(svma)).unwrap();
        for (svma, range) in made.instructions() {
            let mut expected = ask(self.memory, table, fde.initial_address(), svma);
            if let Answer::Land { pad, actions } = &mut expected {
                *pad = SEGMENT + pad_of(*pad);
                self.seen.landing += 1;
                for action in actions {
                    let types = match action {
                        Action::CleanUp => continue,
                        Action::Catch { address, .. } => vec![address],
                        Action::Filter(list) => {
                            self.seen.filters += 1;
                            list.iter_mut().map(|(_, address)| address).collect()
                        }
                    };
                    for address in types.into_iter().filter(|a| **a != 0) {
                        *address += BIAS;
                        self.seen.types += 1;
                    }
                }
            }
            for ip in [range.start, range.end - 1] {
                let begin = new.initial_address();
                let found = ask(&copy.memory, new_table.pointer(), begin, SEGMENT + ip);
                assert_eq!(found, expected, "{svma:#x}");
            }
        }
    }
}

/// What `finish` gave, as it lies in the process.
struct Copied<'d> {
    blob: &'d [u8],
    eh_frame: EhFrame<Reader<'d>>,
    bases: BaseAddresses,
    memory: Memory<'d>,
    entries: usize,
}

impl<'d> Copied<'d> {
    fn read(blob: &'d [u8]) -> Copied<'d> {
        let header = BaseAddresses::default().set_eh_frame_hdr(SEGMENT + AT);
        let parsed = EhFrameHdr::new(blob, LittleEndian)
            .parse(&header, 8)
            .unwrap();
        let at = parsed.eh_frame_ptr().direct().unwrap();
        let data = &blob[(at - SEGMENT - AT) as usize..];
        let mut eh_frame = EhFrame::new(data, LittleEndian);
        eh_frame.set_address_size(8);
        let bases = header.set_eh_frame(at);
        let mut found = eh_frame.entries(&bases);
        let mut entries = 0;
        // To the terminator: LSDAs follow.
        while let Some(entry) = found.next().unwrap() {
            entries += usize::from(matches!(entry, CieOrFde::Fde(_)));
        }
        Copied {
            blob,
            eh_frame,
            bases,
            memory: Memory::of(SEGMENT + AT, blob),
            entries,
        }
    }

    /// By the search table, as unwinders do: the same for every address.
    fn find(&self, start: u64, end: u64) -> Fde<'d> {
        let header = EhFrameHdr::new(self.blob, LittleEndian);
        let parsed = header.parse(&self.bases, 8).unwrap();
        let table = parsed.table().unwrap();
        let find = |offset| {
            let at = SEGMENT + offset;
            let (section, bases) = (&self.eh_frame, &self.bases);
            table.fde_for_address(section, bases, at, EhFrame::cie_from_offset)
        };
        let found = find(start).unwrap();
        for offset in [start + 1, (start + end) / 2, end - 1] {
            assert_eq!(find(offset).unwrap().offset(), found.offset());
        }
        let behind = find(end).map(|f: Fde| f.offset());
        assert_ne!(behind, Ok(found.offset()));
        found
    }
}

fn range_of(fde: &Fde) -> Range<u64> {
    fde.initial_address()..fde.end_address()
}

fn row_at(rows: &[Row], from: usize, at: u64) -> usize {
    let way = rows[from..].iter().position(|r| at < r.end);
    from + way.unwrap_or_else(|| panic!("no row for {at:#x}"))
}

fn moved(routine: Pointer) -> Pointer {
    match routine {
        Pointer::Direct(at) => Pointer::Direct(at + BIAS),
        Pointer::Indirect(at) => Pointer::Indirect(at + BIAS),
    }
}

fn library(compiler: &str, name: &str) -> PathBuf {
    let out = Command::new(compiler)
        .arg(format!("-print-file-name={name}"))
        .output();
    let path = String::from_utf8(out.unwrap().stdout).unwrap();
    std::fs::canonicalize(path.trim()).unwrap()
}

/// The linker's own, for the PLT, and the trampoline of signals: nobody copies these.
const EXPECTED: [&str; 2] = [
    "an expression with the instruction's address",
    "the stack pointer in a register's rule",
];

fn nearly_all(seen: &Seen) {
    let unexpected = seen
        .refused
        .iter()
        .find(|(why, _)| !EXPECTED.contains(&why.as_str()));
    assert_eq!(unexpected, None);
    assert!(seen.refused.values().sum::<usize>() <= 2, "{seen:?}");
    assert!(
        seen.converted > 0 && seen.pushed > 0 && seen.split > 0,
        "{seen:?}"
    );
}

fn compiled(compiler: &str, flags: &[&str]) -> Seen {
    let name = format!("{compiler}{}", flags.concat());
    let seen = file(
        &compile(compiler, "everything.cc", &name, flags),
        usize::MAX,
    );
    nearly_all(&seen);
    assert!(seen.landing > 50 && seen.types > 10, "{name} {seen:?}");
    seen
}

/// Rules that only assembly has, and an entry whose exception table is zero.
#[test]
fn assembly() {
    let flags = ["-shared", "-nostdlib"];
    let seen = file(
        &compile("gcc", "handwritten.s", "handwritten.so", &flags),
        100,
    );
    assert!(seen.refused.is_empty() && seen.converted == 6, "{seen:?}");
}

#[test]
fn the_c_library() {
    let seen = file(&library("gcc", "libc.so.6"), 1000);
    nearly_all(&seen);
}

#[test]
fn the_cpp_library() {
    let seen = file(&library("g++", "libstdc++.so.6"), 1500);
    nearly_all(&seen);
    assert!(seen.landing > 1000 && seen.types > 100, "{seen:?}");
    assert!(seen.based > 20, "{seen:?}");
}

#[test]
fn a_rust_program() {
    let seen = file(&std::env::current_exe().unwrap(), 1500);
    nearly_all(&seen);
    assert!(seen.landing > 1000, "{seen:?}");
}

#[test]
fn gcc_at_every_level_with_specifications() {
    for level in ["-O0", "-O2"] {
        let seen = compiled("g++", &["-w", "-std=c++14", level]);
        assert!(seen.filters > 0, "{seen:?}");
    }
    compiled(
        "g++",
        &["-w", "-O3", "-no-pie", "-fno-pic", "-mstackrealign"],
    );
    compiled("g++", &["-w", "-O1", "-fnon-call-exceptions", "-static"]);
}

#[test]
fn clang_at_every_level_with_specifications() {
    let found = Command::new("clang++").arg("--version").output();
    if !found.is_ok_and(|out| out.status.success()) {
        println!("SKIP: clang++ is missing");
        return;
    }
    for level in ["-O0", "-O2"] {
        let seen = compiled("clang++", &["-w", "-std=c++14", level]);
        assert!(seen.filters > 0, "{seen:?}");
    }
    compiled("clang++", &["-w", "-O3", "-no-pie", "-fno-pic"]);
    // An entry for each block. Tables of this compiler run on into those of the blocks behind, which no reader understands: those are refused.
    let flags = ["-w", "-std=c++14", "-O2", "-fbasic-block-sections=all"];
    let blocks = compile("clang++", "everything.cc", "blocks", &flags);
    let seen = file(&blocks, usize::MAX);
    assert!(seen.converted > 20 && seen.apart > 0, "{seen:?}");
}
