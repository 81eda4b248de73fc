//! Which functions may be unwound, judged from the files of a process: each is built here.
use hopscope_probe::instrument::body::hazards::Hazards;
use hopscope_probe::instrument::body::unwinders;
use hopscope_probe::instrument::body::unwinding::Unwinding;
use hopscope_probe::live::asked;
use hopscope_probe::locate::Image;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

fn build(source: &str, flags: &[&str]) -> Image {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/unwound")
        .join(source);
    // Cases run in parallel, in one process: each build has a folder of its own.
    static BUILDS: AtomicU32 = AtomicU32::new(0);
    let build = BUILDS.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unwound-{build}"));
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!("{source}{}.so", flags.concat());
    let out: PathBuf = folder.join(name);
    let compiler = if source.ends_with(".cpp") {
        "g++"
    } else {
        "gcc"
    };
    let mut command = Command::new(compiler);
    command.args(["-O1", "-fPIC", "-shared", "-fno-optimize-sibling-calls"]);
    // One case of a jump in the place of a call.
    if source == "middle.c" {
        command.arg("-foptimize-sibling-calls");
    }
    let done = command
        .args(flags)
        .arg(from)
        .arg("-o")
        .arg(&out)
        .status()
        .unwrap();
    assert!(done.success(), "{source}");
    Image::open(&out).unwrap()
}

fn library(name: &str) -> Image {
    Image::open(&Path::new("/usr/lib/x86_64-linux-gnu").join(name)).unwrap()
}

/// Who may unwind the functions of `images[0]`, by name.
fn at_risk(images: &[&Image]) -> Vec<(String, String)> {
    let hazards = Hazards::of(images.iter().copied());
    let unwinding = Unwinding::of(images, &hazards);
    // Start-up code is never measured.
    let functions = images[0].functions().iter();
    let functions = functions.filter(|f| !f.name.starts_with("__do_"));
    functions
        .filter_map(|f| Some((f.name.clone(), unwinding.module(0).of(f.svma)?.to_string())))
        .collect()
}

fn names(found: &[(String, String)]) -> Vec<&str> {
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Through the linkage table, through another function, through the C library.
#[test]
fn an_exception_through_plain_c() {
    let (middle, thrower) = (build("middle.c", &[]), build("thrower.cpp", &[]));
    let catcher = build("catcher.cpp", &[]);
    let (libc, libstdcxx) = (library("libc.so.6"), library("libstdc++.so.6"));
    let found = at_risk(&[&middle, &thrower, &catcher, &libstdcxx, &libc]);
    assert_eq!(
        names(&found),
        [
            "sorts",
            "through_another",
            "through_pointer",
            "through_the_table"
        ]
    );
    let who = |name: &str| &found.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(who("through_another"), "thrower.cpp.so raises exceptions");
    // The C++ library catches, too: what a stream's buffer throws.
    let without = at_risk(&[&middle, &thrower, &libstdcxx, &libc]);
    assert_eq!(names(&without), names(&found));
    // Where nobody catches, an exception ends the program where it is raised.
    assert!(at_risk(&[&middle, &thrower, &libc]).is_empty());
}

/// Programs that link an unwinder for backtraces, or libstdc++ and use nothing of it.
#[test]
fn who_defines_an_unwinder_does_not_raise() {
    let catcher = build("catcher.cpp", &[]);
    let libraries = [
        library("libstdc++.so.6"),
        library("libgcc_s.so.1"),
        library("libc.so.6"),
    ];
    let mut images = vec![build("backtraces.c", &[])];
    images.push(catcher);
    images.extend(libraries);
    assert!(at_risk(&images.iter().collect::<Vec<_>>()).is_empty());
    images[0] = build("backtraces.c", &["-DRAISES", "-Wl,-Bsymbolic"]);
    let found = at_risk(&images.iter().collect::<Vec<_>>());
    assert_eq!(
        names(&found),
        [
            "_Unwind_RaiseException",
            "_Unwind_Resume_or_Rethrow",
            "depth",
            "raises"
        ]
    );
}

/// `operator new` raises for those who use it, not for a process whose allocator has one.
#[test]
fn an_allocator_raises_only_for_its_users() {
    let catches_all = |allocator: Image| {
        let mut images = vec![build("middle.c", &[]), allocator];
        images.extend([library("libstdc++.so.6"), library("libc.so.6")]);
        !at_risk(&images.iter().collect::<Vec<_>>()).is_empty()
    };
    assert!(!catches_all(build("allocator.cpp", &[])));
    assert!(catches_all(build("allocator.cpp", &["-DELSEWHERE"])));
}

/// A thread that is cancelled skips the clean-ups above a copy; lists of clean-ups are not skipped.
#[test]
fn the_end_of_a_thread() {
    let (middle, cancels) = (build("middle.c", &[]), build("cancels.c", &[]));
    let (cleans, libc) = (build("cleans.cpp", &[]), library("libc.so.6"));
    let found = at_risk(&[&middle, &cancels, &cleans, &libc]);
    for name in ["waits", "calls_who_waits"] {
        let who = found
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, who)| who.as_str());
        assert_eq!(
            who,
            Some("cancels.c.so cancels threads (pthread_cancel)"),
            "{name}"
        );
    }
    assert!(!names(&found).contains(&"quiet"));
    assert!(
        at_risk(&[&middle, &cancels, &libc]).is_empty(),
        "without clean-ups"
    );
    assert!(
        at_risk(&[&middle, &cleans, &libc]).is_empty(),
        "without an end"
    );
    let exits = build("cancels.c", &["-DONLY_EXITS"]);
    let own = at_risk(&[&libc, &exits, &cleans]);
    assert!(names(&own).contains(&"pthread_exit") && !names(&own).contains(&"read"));
    // The C library's own: `fread` holds its stream while it reads.
    let own = at_risk(&[&libc, &middle, &cancels]);
    assert!(names(&own).contains(&"read") && !names(&own).contains(&"epoll_wait"));
}

/// libgcc asks the C library; what defines an unwinder of its own and does not is named, and so is its absence.
#[test]
fn whom_unwinders_ask() {
    let (libc, libgcc) = (library("libc.so.6"), library("libgcc_s.so.1"));
    let (libstdcxx, catcher) = (library("libstdc++.so.6"), build("catcher.cpp", &[]));
    let plain = [&catcher, &libstdcxx, &libgcc, &libc];
    let found = unwinders::asked(&plain).expect("all of them ask");
    let names: Vec<(usize, &str)> = found
        .iter()
        .map(|(m, n)| (*m, plain[*m].functions()[*n].raw_name.as_str()))
        .collect();
    assert_eq!(names, [(3, "_dl_find_object")]);
    assert_eq!(asked::sites(&plain).expect("it can be moved").len(), 1);

    let own = build("backtraces.c", &["-DRAISES", "-Wl,-Bsymbolic"]);
    let why = unwinders::asked(&[&own, &libc]).expect_err("one asks elsewhere");
    assert!(why.contains("backtraces.c"), "{why}");
    let why = unwinders::asked(&[&catcher, &libgcc]).expect_err("nobody answers");
    assert!(why.contains("_dl_find_object"), "{why}");
}
