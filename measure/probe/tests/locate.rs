//! Functions of real files, as compilers, strip and objcopy leave them.
use hopscope_probe::instrument::body::fuzz::fuzz_image;
use hopscope_probe::instrument::body::verdict::{ProcessTraits, accept};
use hopscope_probe::listing::Listing;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::locate::{Function, Image, LocateError, NameSource, mapped_modules};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::LazyLock;

/// A folder of its own for each test: they run side by side.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("locate")
        .join(test);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(program: &str, arguments: &[&str], paths: &[&Path]) {
    let done = Command::new(program)
        .args(arguments)
        .args(paths)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {said}");
}

fn compile(out: &Path, compiler: &str, source: &str, flags: &[&str]) -> Image {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/locate")
        .join(source);
    let arguments: Vec<&str> = flags.iter().copied().chain(["-o"]).collect();
    run(compiler, &arguments, &[out, &source]);
    Image::open(out).unwrap()
}

fn named<'a>(image: &'a Image, name: &str) -> &'a Function {
    let is = |f: &&Function| f.name == name || f.aliases.iter().any(|a| a == name);
    let mut found = image.functions().iter().filter(is);
    let function = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "{name} twice");
    function
}

#[test]
fn cold_pieces_belong_to_their_function_and_are_none_themselves() {
    let folder = folder("cold");
    let whole = compile(&folder.join("nf"), "gcc", "nf.c", &["-O2"]);
    let hot = named(&whole, "hot");
    assert_eq!((hot.fragments.len(), hot.source), (1, NameSource::Symtab));
    assert!(whole.functions().iter().all(|f| !f.name.contains(".cold")));
    assert!(named(&whole, "work").fragments.is_empty());

    let stripped = folder.join("stripped");
    run("strip", &["-o"], &[&stripped, &folder.join("nf")]);
    let stripped = Image::open(&stripped).unwrap();
    let same = stripped
        .functions()
        .iter()
        .find(|f| f.svma == hot.svma)
        .unwrap();
    assert_eq!((same.source, same.size), (NameSource::EhFrame, hot.size));
    assert_eq!(same.name, format!("fn_{:x}", hot.svma));
    assert_eq!(same.fragments, hot.fragments, "found by who jumps into it");
    let cold = hot.fragments[0].start;
    assert!(stripped.functions().iter().all(|f| f.svma != cold));
}

/// Pieces of other functions come first in their code, which has nothing to set up before.
#[test]
fn a_function_is_where_it_is_written_whatever_is_inlined_into_it() {
    let folder = folder("inlined");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/locate/inlined.rs");
    let out = folder.join("inlined");
    run("rustc", &["-Copt-level=3", "-g", "-o"], &[&out, &source]);
    let image = Image::open(&out).unwrap();
    let lines = image.lines().expect("debug information");
    for (name, written) in [("inlined::doubles", 9..=13), ("inlined::sums", 15..=18)] {
        let is = |f: &&Function| f.name.starts_with(name);
        let function = image.functions().iter().find(is).expect(name);
        let (file, line) = lines.find(function.svma, function.size).expect("a line");
        assert!(file.ends_with("inlined.rs"), "{name}: {file}:{line}");
        assert!(written.contains(&line), "{name}: {file}:{line}");
    }
}

/// `parts.S` whole and stripped, with the addresses of all that has a name.
fn parts(test: &str) -> (Image, Image, impl Fn(&str) -> u64) {
    let folder = folder(test);
    let whole = compile(
        &folder.join("whole"),
        "gcc",
        "parts.S",
        &["-shared", "-nostdlib"],
    );
    let stripped = folder.join("stripped");
    run("strip", &["-o"], &[&stripped, &folder.join("whole")]);
    let data = std::fs::read(folder.join("whole")).unwrap();
    let named: std::collections::HashMap<String, u64> = {
        let file = object::File::parse(&*data).unwrap();
        let symbols = object::Object::symbols(&file);
        let pair = |s: object::Symbol| {
            let name = object::ObjectSymbol::name(&s).unwrap().to_owned();
            (name, object::ObjectSymbol::address(&s))
        };
        symbols.map(pair).collect()
    };
    let at = move |name: &str| named[name];
    (whole, Image::open(&stripped).unwrap(), at)
}

#[test]
fn what_is_only_jumped_to_is_a_part_also_without_a_name() {
    let (_, stripped, at) = parts("nameless");
    let functions: Vec<u64> = stripped.functions().iter().map(|f| f.svma).collect();
    let mut expected = ["first", "second", "leaf", "pointed"].map(&at).to_vec();
    expected.extend(["tail_called_twice", "leaf.cold.1"].map(&at));
    expected.sort_unstable();
    assert_eq!(functions, expected);
    let parts_of = |name: &str| {
        let is = |f: &&Function| f.svma == at(name);
        let function = stripped.functions().iter().find(is).unwrap();
        let mut parts: Vec<u64> = function.fragments.iter().map(|r| r.start).collect();
        parts.sort_unstable();
        parts
    };
    assert_eq!(parts_of("leaf"), [at("leaf.cold")]);
    let expected = ["pointed.cold", "saved.cold"].map(&at);
    assert_eq!(parts_of("pointed"), expected, "itself only pointed to");
    let expected = ["frame_in_place", "tail_called_once", "behind_it"].map(&at);
    assert_eq!(
        parts_of("second"),
        expected,
        "a tail call that nobody else makes"
    );
    assert_eq!(parts_of("first"), [0; 0], "two jump into shared_part");
    assert_eq!(parts_of("tail_called_twice"), [0; 0]);
}

#[test]
fn entries_that_something_jumps_to_keep_the_red_zone() {
    let (whole, stripped, at) = parts("jumped_to");
    for (image, jumped_to, called) in [
        (
            &whole,
            &["tail_called_twice", "behind_it"][..],
            &["leaf", "pointed"][..],
        ),
        (
            &stripped,
            &["tail_called_twice", "pointed"],
            &["leaf", "first"],
        ),
    ] {
        let accepted = |name: &str| {
            let is = |f: &&Function| f.svma == at(name);
            let function = image.functions().iter().find(is).unwrap();
            accept(image, function, ProcessTraits::default()).unwrap().0
        };
        for name in jumped_to {
            assert!(accepted(name).red_zone_at_entry, "{name}");
        }
        for name in called {
            assert!(!accepted(name).red_zone_at_entry, "{name}");
        }
    }
}

#[test]
fn names_of_parts_and_the_unwind_table_are_both_heard() {
    let (whole, _, at) = parts("named");
    assert_eq!(named(&whole, "leaf.cold.1").svma, at("leaf.cold.1"));
    assert_eq!(named(&whole, "leaf").fragments[0].start, at("leaf.cold"));
    assert!(whole.functions().iter().all(|f| f.name != "leaf.cold"));
    let part = named(&whole, "frame_in_place");
    let verdict = accept(&whole, part, ProcessTraits::default()).map(drop);
    assert_eq!(verdict.unwrap_err().class(), "not-called");
}

#[test]
fn one_address_is_one_function() {
    let image = compile(&folder("alias").join("nf"), "gcc", "nf.c", &["-O2"]);
    let (first, second) = (named(&image, "first_name"), named(&image, "second_name"));
    assert_eq!((first.svma, first.aliases.len()), (second.svma, 1));
    let resolver = named(&image, "choose");
    assert_eq!(resolver.svma, named(&image, "chosen").svma);
    assert!(resolver.ifunc && !first.ifunc);
    assert!(image.functions().windows(2).all(|w| w[0].svma < w[1].svma));
}

#[test]
fn assembler_without_a_size_ends_where_the_next_function_starts() {
    let image = compile(&folder("sizeless").join("nf"), "gcc", "nf.c", &["-O2"]);
    let (sizeless, next) = (named(&image, "sizeless"), named(&image, "after_it"));
    assert_eq!(sizeless.svma + sizeless.size, next.svma);
    assert!(!sizeless.has_fde);
    let damaged = named(&image, "past_the_end");
    let code = image.bytes(damaged.svma..damaged.svma + damaged.size);
    assert_eq!(
        code,
        Some(&[0xc3][..]),
        "a size that leaves the section is none"
    );
}

#[test]
fn languages_are_demangled_and_matched_without_arguments() {
    let image = compile(&folder("cpp").join("nf"), "g++", "nf.cpp", &["-O2"]);
    let matching = |pattern: &str| {
        let pattern = Pattern::parse(pattern).unwrap();
        let names = image
            .functions()
            .iter()
            .filter(|f| pattern.matches("nf", f));
        names.map(|f| f.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(matching("nf::twice"), ["int nf::twice<int>(int)"]);
    assert_eq!(matching("Acl::match"), ["nf::Acl::match(int) const"]);
    assert_eq!(matching("_ZN2nf7guardedEi"), ["nf::guarded(int)"]);
    assert_eq!(matching("other!twice"), [""; 0]);
    assert!(named(&image, "nf::guarded(int)").has_lsda && image.unwinds().catches);
    assert!(!named(&image, "nf::Acl::match(int) const").has_lsda);
}

/// Splits `nf` as packagers do and returns the stripped file.
fn split(folder: &Path, flags: &[&str]) -> PathBuf {
    let (whole, debug, stripped) = (folder.join("nf"), folder.join("nf.debug"), folder.join("s"));
    compile(&whole, "gcc", "nf.c", flags);
    run(
        "objcopy",
        &["--only-keep-debug", "--compress-debug-sections=zlib"],
        &[&whole, &debug],
    );
    let link = format!("--add-gnu-debuglink={}", debug.display());
    run("objcopy", &["--strip-all", &link], &[&whole, &stripped]);
    stripped
}

#[test]
fn separate_debug_files_give_names_and_lines() {
    for (test, id) in [
        ("debug_id", "-Wl,--build-id"),
        ("debug_crc", "-Wl,--build-id=none"),
    ] {
        let stripped = split(&folder(test), &["-O2", "-g", id]);
        let image = Image::open(&stripped).unwrap();
        let hot = named(&image, "hot");
        assert_eq!(
            (hot.source, hot.fragments.len()),
            (NameSource::DebugFile, 1)
        );
        let (file, line) = image.lines().unwrap().find(hot.svma, hot.size).unwrap();
        assert!(
            file.ends_with("locate/nf.c") && (8..=9).contains(&line),
            "{file}:{line}"
        );
    }
}

#[test]
fn a_debug_file_of_another_build_is_not_believed() {
    for (test, id) in [
        ("wrong_id", "-Wl,--build-id"),
        ("wrong_crc", "-Wl,--build-id=none"),
    ] {
        let folder = folder(test);
        let stripped = split(&folder, &["-O2", "-g", id]);
        compile(&folder.join("nf.debug"), "gcc", "nf.c", &["-O0", "-g", id]);
        let image = Image::open(&stripped).unwrap();
        assert!(
            image
                .functions()
                .iter()
                .all(|f| f.source != NameSource::DebugFile)
        );
        assert!(image.lines().is_none());
    }
}

#[test]
fn other_machines_are_refused() {
    let folder = folder("m32");
    let out = folder.join("nf.o");
    let source = folder.join("nf.c");
    std::fs::write(&source, "int f(int x) { return x; }\n").unwrap();
    run("gcc", &["-m32", "-c", "-o"], &[&out, &source]);
    assert!(matches!(
        Image::open(&out),
        Err(LocateError::NotX86_64 { .. })
    ));
    assert!(matches!(
        Image::open(&source),
        Err(LocateError::NotElf { .. })
    ));
    assert!(matches!(
        Image::open(&folder.join("none")),
        Err(LocateError::File { .. })
    ));
}

#[test]
fn the_c_library_of_this_process() {
    let listing = Listing::of_process(std::process::id() as i32, false).unwrap();
    let libc = listing
        .modules
        .iter()
        .find(|m| m.basename() == "libc.so.6")
        .unwrap();
    assert!(libc.image.functions().len() > 2000);
    for f in libc.image.functions() {
        assert!(f.size > 0, "{}", f.name);
        assert!(
            libc.image.bytes(f.svma..f.svma + f.size).is_some(),
            "{}",
            f.name
        );
    }
    for name in ["malloc", "strtol", "vfork"] {
        let pattern = Pattern::parse(&format!("libc!{name}")).unwrap();
        assert_eq!(listing.select(&[pattern]).len(), 1, "{name}");
    }
    assert!(named_any(&libc.image, "memcpy").ifunc);
    let nothing = Pattern::parse("libc!malolc").unwrap();
    assert!(listing.select(std::slice::from_ref(&nothing)).is_empty());
    assert!(listing.hint(&[nothing]).contains("malloc"));
}

fn named_any<'a>(image: &'a Image, name: &str) -> &'a Function {
    let pattern = Pattern::parse(name).unwrap();
    image
        .functions()
        .iter()
        .find(|f| pattern.matches("", f))
        .unwrap()
}

struct Target(Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_replaced_file_is_read_through_the_mapping_or_refused() {
    let folder = folder("replaced");
    let (program, other) = (folder.join("sleeper"), folder.join("other"));
    // Not written by this process: a compiler that another test starts meanwhile would inherit
    // the descriptor, and a file open for writing cannot be executed.
    run("cp", &["/bin/sleep"], &[&program]);
    run("cp", &["/bin/cat"], &[&other]);
    let genuine = Image::open(&program).unwrap();
    let target = Target(Command::new(&program).arg("1000").spawn().unwrap());
    let pid = target.0.id() as i32;
    // spawn returns when exec has let go of the old address space: before the new one is mapped.
    let mapped = || mapped_modules(pid).is_ok_and(|all| all.iter().any(|m| m.path == program));
    while !mapped() {
        std::thread::yield_now();
    }
    std::fs::rename(&other, &program).unwrap();
    let modules = mapped_modules(pid).unwrap();
    let module = modules.iter().find(|m| m.path == program).unwrap();
    assert!(module.deleted);
    match Image::open_mapped(pid, module) {
        Ok(image) => assert_eq!(image.build_id(), genuine.build_id()),
        // map_files needs CAP_CHECKPOINT_RESTORE
        Err(why) => assert!(matches!(why, LocateError::Replaced { .. }), "{why}"),
    }
}

#[test]
fn processes_that_are_gone_are_said_to_be() {
    let mut child = Command::new("/bin/true").spawn().unwrap();
    child.wait().unwrap();
    let gone = mapped_modules(child.id() as i32);
    assert!(
        matches!(gone, Err(LocateError::NoSuchProcess { .. })),
        "{gone:?}"
    );
}

/// A few kilobytes with everything the reader looks at.
static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let out = folder("fuzz").join("small.so");
    compile(
        &out,
        "gcc",
        "nf.c",
        &["-O2", "-g", "-shared", "-fPIC", "-nostdlib", "-s"],
    );
    std::fs::read(out).unwrap()
});

#[test]
fn truncated_files_are_no_panic() {
    for len in (0..SMALL.len()).step_by(61).chain(0..64) {
        fuzz_image(&SMALL[..len]);
    }
}

proptest! {
    #[test]
    fn damaged_files_are_no_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..30),
        headers in any::<bool>(),
    ) {
        let mut bytes = SMALL.clone();
        // Section headers lie at the end: half of the runs damage only the two kinds of headers.
        let (front, back) = (0x400, bytes.len() - 64 * 30);
        for (at, value) in changes {
            let at = if headers { at.index(front + 64 * 30) } else { at.index(bytes.len()) };
            let at = if headers && at >= front { back + at - front } else { at };
            bytes[at] = value;
        }
        fuzz_image(&bytes);
    }
}
