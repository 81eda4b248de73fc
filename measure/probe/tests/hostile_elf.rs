//! ELF files that are made to harm who reads them.
use hopscope_probe::instrument::body::fuzz::fuzz_image;
use hopscope_probe::locate::{Image, NameSource};
use object::{Object, ObjectSection};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("hostile_elf")
        .join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn built(out: &Path, flags: &[&str]) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/locate/nf.c");
    let flags = ["-O2", "-g", "-shared", "-fPIC", "-nostdlib"]
        .iter()
        .chain(flags);
    run(Command::new("gcc")
        .args(flags)
        .arg("-o")
        .args([out, &source]));
    std::fs::read(out).unwrap()
}

static WITH_DEBUG: LazyLock<Vec<u8>> =
    LazyLock::new(|| built(&folder("debug").join("nf.so"), &["-gz=none"]));
static COMPRESSED: LazyLock<Vec<u8>> =
    LazyLock::new(|| built(&folder("compressed").join("nf.so"), &["-gz=zlib"]));

/// ELF64: e_shoff at 40, a section header has 64 bytes; in it the flags lie at 8, offset 24, size 32.
fn set_section(elf: &mut [u8], name: &str, at: usize, values: &[u64]) {
    let index = object::File::parse(&*elf)
        .unwrap()
        .section_by_name(name)
        .unwrap()
        .index()
        .0;
    let table = u64::from_le_bytes(elf[40..48].try_into().unwrap()) as usize;
    for (n, value) in values.iter().enumerate() {
        let field = table + index * 64 + at + n * 8;
        elf[field..field + 8].copy_from_slice(&value.to_le_bytes());
    }
}

fn refused(elf: Vec<u8>) -> String {
    let parsed = Image::parse(Path::new("hostile"), elf, (0, 0));
    parsed.map(|_| ()).unwrap_err().to_string()
}

/// The program with a debug link to `nf.debug`, and the debug file under `debug`.
fn linked(folder: &Path, debug: &str) -> PathBuf {
    let (program, whole) = (folder.join("nf.so"), folder.join("nf.debug"));
    built(&program, &["-Wl,--build-id=none"]);
    std::fs::rename(&program, &whole).unwrap();
    run(Command::new("objcopy").current_dir(folder).args([
        "--strip-all",
        "--add-gnu-debuglink=nf.debug",
        "nf.debug",
        "nf.so",
    ]));
    std::fs::rename(whole, folder.join(debug)).unwrap();
    program
}

fn uses_its_debug_file(program: &Path) -> bool {
    let image = Image::open(program).unwrap();
    let from_it = |f: &hopscope_probe::locate::Function| f.source == NameSource::DebugFile;
    assert_eq!(
        image.functions().iter().any(from_it),
        image.lines().is_some()
    );
    image.lines().is_some()
}

#[test]
fn debug_links_lead_to_ordinary_files_beside_the_program_only() {
    let beside = folder("beside");
    assert!(uses_its_debug_file(&linked(&beside, "nf.debug")));

    let outside = folder("outside");
    let program = linked(&outside, "elsewhere");
    assert!(!uses_its_debug_file(&program));
    std::os::unix::fs::symlink("elsewhere", outside.join("nf.debug")).unwrap();
    assert!(
        !uses_its_debug_file(&program),
        "a link, though to the right file"
    );

    std::fs::remove_file(outside.join("nf.debug")).unwrap();
    run(Command::new("mkfifo").arg(outside.join("nf.debug")));
    assert!(
        !uses_its_debug_file(&program),
        "a pipe that nobody writes to"
    );
}

#[test]
fn a_debug_file_that_is_exchanged_is_not_read() {
    let folder = folder("exchanged");
    let image = Image::open(&linked(&folder, "nf.debug")).unwrap();
    assert!(image.lines().is_some() && image.debug().is_some());
    std::fs::write(folder.join("nf.debug"), &*WITH_DEBUG).unwrap();
    assert!(image.lines().is_none() && image.debug().is_none());
}

#[test]
fn names_that_share_their_bytes_are_no_memory() {
    const NAMES: usize = 2000;
    let mut elf = WITH_DEBUG.clone();
    let mut strings = vec![b'a'; 1 << 20];
    (strings[0], strings[(1 << 20) - 1]) = (0, 0);
    // Elf64_Sym: st_name 1, a function with a size in the first section of code.
    let text = object::File::parse(&*elf).unwrap();
    let text = text.section_by_name(".text").unwrap();
    let (at, section) = (text.address(), text.index().0 as u16);
    let mut symbol = [1u32.to_le_bytes(), [0x12, 0, section as u8, 0]].concat();
    symbol.extend([at, 16].map(u64::to_le_bytes).concat());
    let symbols = [vec![0; 24], symbol.repeat(NAMES)].concat();
    for (name, table) in [(".strtab", strings), (".symtab", symbols)] {
        let place = [elf.len() as u64, table.len() as u64];
        set_section(&mut elf, name, 24, &place);
        elf.extend(table);
    }
    let why = refused(elf);
    assert!(why.contains("names have more than"), "{why}");
}

#[test]
fn sections_of_code_that_lie_upon_each_other_are_refused() {
    let mut elf = WITH_DEBUG.clone();
    elf.resize(1 << 20, 0xcc);
    for name in [".debug_info", ".debug_line", ".comment"] {
        set_section(&mut elf, name, 8, &[4, 0x1000, 0, 1 << 19]);
    }
    let why = refused(elf);
    assert!(why.contains("sections of code have"), "{why}");
}

#[test]
fn a_section_that_names_a_huge_size_is_not_used() {
    let whole = Image::parse(Path::new("nf"), COMPRESSED.clone(), (0, 0)).unwrap();
    assert!(whole.lines().is_some() && whole.debug().is_some());
    let mut elf = COMPRESSED.clone();
    let file = object::File::parse(&**COMPRESSED).unwrap();
    let info = file.section_by_name(".debug_info").unwrap();
    let at = info.file_range().unwrap().0 as usize;
    // Elf64_Chdr: ch_size at 8.
    elf[at + 8..at + 16].copy_from_slice(&(1u64 << 45).to_le_bytes());
    let image = Image::parse(Path::new("nf"), elf, (0, 0)).unwrap();
    assert!(!image.functions().is_empty());
    assert!(image.lines().is_none() && image.debug().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_debug_information_is_no_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..30),
        compressed in any::<bool>(),
    ) {
        let whole = if compressed { &COMPRESSED } else { &WITH_DEBUG };
        let mut bytes = (**whole).clone();
        // What lies behind the code: debugging information, tables, section headers.
        let from = bytes.len() / 2;
        for (at, value) in changes {
            let at = from + at.index(bytes.len() - from);
            bytes[at] = value;
        }
        fuzz_image(&bytes);
    }
}
