//! Every function of real files, copied in thought: what unwinders would read of the copy is what they read of the original.
mod support;

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use hopscope_unwind::{Module, Tables};
use object::{Object, ObjectSection};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::originals::{CHANGED, Originals, Seen};
use support::rows::Fde;
use support::{BIAS, Memory, compile};

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
    let known = |why: &str| why == CHANGED || EXPECTED.contains(&why);
    let unexpected = seen.refused.iter().find(|(why, _)| !known(why));
    assert_eq!(unexpected, None);
    let refused = seen.refused.iter().filter(|(why, _)| *why != CHANGED);
    assert!(refused.map(|r| r.1).sum::<usize>() <= 2, "{seen:?}");
    let changed = seen.refused.get(CHANGED).copied().unwrap_or(0);
    assert!(changed <= 3 + seen.converted / 500, "{seen:?}");
    assert!(seen.asides > seen.converted, "{seen:?}");
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
    // rax holds the frame's address, r11 a register: where probes are among such rules, they are refused.
    let refused = seen.refused.into_iter().collect::<Vec<_>>();
    assert_eq!(refused, [(CHANGED.to_string(), 2)]);
    assert_eq!(seen.converted, 6);
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
