//! What must not be moved, one reason at a time: each case differs from one that is accepted by
//! nothing else.
use hopscope_probe::instrument::body::refusal::Refusal;
use hopscope_probe::instrument::body::sensitive::close;
use hopscope_probe::instrument::body::unit::{Piece, Surroundings, Unit};
use hopscope_probe::instrument::body::verdict::{ProcessTraits, accept};
use hopscope_probe::locate::Image;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

fn decode(bytes: &[u8], entry_stays: bool) -> Result<Unit, Refusal> {
    let pieces = [Piece {
        svma: 0x1000,
        bytes,
    }];
    let around = Surroundings {
        room: bytes.len() as u64,
        branch_into: &|_| false,
        entry_stays,
    };
    Unit::decode(&pieces, &around)
}

fn class(bytes: &[u8]) -> &'static str {
    decode(bytes, false).map_or_else(|why| why.class(), |_| "accepted")
}

/// Where callers are led into the copy by their GOT slots, nothing is written there.
#[test]
fn what_only_the_jump_cannot_bear() {
    // mov eax, edi; ret. xor eax, eax; dec rdi; jne back; ret. call *rsi; add eax, 5; ret
    let short = [0x89, 0xf8, 0xc3];
    let looping = [0x31, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3];
    let calling = [0xff, 0xd6, 0x83, 0xc0, 0x05, 0xc3];
    for (bytes, why) in [
        (&short[..], "too-short"),
        (&looping, "branch-into-patch"),
        (&calling, "call-in-patch"),
    ] {
        let refused = decode(bytes, false).unwrap_err();
        assert!(refused.is_of_the_entry() && refused.class() == why);
        assert!(decode(bytes, true).is_ok(), "{why}");
    }
    // A branch amid an instruction cannot be moved at all.
    let amid = [0x31, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xfc, 0xc3];
    let refused = decode(&amid, true).unwrap_err();
    assert!(!refused.is_of_the_entry() && refused.class() == "branch-into-instruction");
}

#[test]
fn a_branch_of_its_own_into_the_replaced_bytes() {
    // xor eax, eax; dec rdi; jne BACK; ret
    let looping = |back: u8| [0x31, 0xc0, 0x48, 0xff, 0xcf, 0x75, back, 0xc3];
    assert_eq!(class(&looping(0xfb)), "branch-into-patch");
    assert_eq!(class(&looping(0xf9)), "accepted");
}

#[test]
fn a_call_that_returns_into_the_replaced_bytes() {
    // call *rsi; add eax, 5; ret, and the same behind nop [rax]
    let call = [0xff, 0xd6, 0x83, 0xc0, 0x05, 0xc3];
    assert_eq!(class(&call), "call-in-patch");
    assert_eq!(
        class(&[&[0x0f, 0x1f, 0x00], &call[..]].concat()),
        "accepted"
    );
}

/// What calls do with their probes off: the instructions under the jump, and on in the original body behind them.
#[test]
fn bodies_that_are_not_entered_behind_the_jump() {
    let head = |bytes: &[u8]| {
        let around = Surroundings {
            room: 16,
            branch_into: &|_| false,
            entry_stays: false,
        };
        let pieces = [Piece {
            svma: 0x1000,
            bytes,
        }];
        let unit = Unit::decode(&pieces, &around).unwrap();
        unit.head().map(<[_]>::len)
    };
    // xor eax, eax; dec rdi; jne TO; ret
    let looping = |to: u8| [0x31, 0xc0, 0x48, 0xff, 0xcf, 0x75, to, 0xc3];
    assert_eq!(head(&looping(0x00)), Some(2));
    assert_eq!(head(&looping(0xf9)), None, "back to the entry");
    let marked = |to| [&[0xf3, 0x0f, 0x1e, 0xfa], &looping(to)[..]].concat();
    assert_eq!(head(&marked(0x00)), Some(2));
    assert_eq!(head(&marked(0xf9)), None, "back to the jump");
    assert_eq!(head(&marked(0xf5)), None, "back to the landing mark");
    // xor eax, eax; dec rdi; ret, and the same with jmp rax
    assert_eq!(head(&[0x31, 0xc0, 0x48, 0xff, 0xcf, 0xc3]), Some(2));
    assert_eq!(head(&[0x31, 0xc0, 0x48, 0xff, 0xcf, 0xff, 0xe0]), None);
    // ret; and ud2, behind which nothing of the function is
    assert_eq!(head(&[0xc3]), Some(1));
    assert_eq!(head(&[0x0f, 0x0b]), None, "into the jump");
}

#[test]
fn a_landing_mark_stays_where_it_is() {
    let body = [0x31, 0xc0, 0x48, 0xff, 0xcf, 0xc3];
    let marked = [&[0xf3, 0x0f, 0x1e, 0xfa], &body[..]].concat();
    assert_eq!(decode(&body, false).unwrap().patch_at, 0x1000);
    assert_eq!(decode(&marked, false).unwrap().patch_at, 0x1004);
}

fn build(flags: &[&str]) -> Image {
    compile("refused.S", flags)
}

fn compile(source: &str, flags: &[&str]) -> Image {
    // Tests run at the same time, and some build the same.
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let n = BUILT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{source}{}-{n}", flags.concat().replace(['/', ','], "_"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/targets")
        .join(source);
    let out: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-nostdlib", "-nostartfiles"]).args(flags);
    let done = gcc.arg(source).arg("-o").arg(&out).status().unwrap();
    assert!(done.success(), "{flags:?}");
    Image::open(&out).unwrap()
}

fn verdict(image: &Image, name: &str, process: ProcessTraits) -> &'static str {
    let mut functions = image.functions().iter();
    let function = functions.find(|f| f.raw_name == name);
    let function = function.unwrap_or_else(|| panic!("no {name}"));
    accept(image, function, process).map_or_else(|why| why.class(), |_| "accepted")
}

#[test]
fn what_the_file_says_of_a_function() {
    let image = build(&["-shared"]);
    let plain = ProcessTraits::default();
    for (name, expected) in [
        ("ordinary", "accepted"),
        ("resolver", "never-touch"),
        ("vfork", "never-touch"),
        ("far_away", "out-of-range"),
        ("restartable", "restartable-sequence"),
        ("catches", "lsda"),
        ("computed", "accepted"),
    ] {
        assert_eq!(verdict(&image, name, plain), expected, "{name}");
    }
    let shadowed = ProcessTraits {
        shadow_stack: true,
        ..plain
    };
    assert_eq!(verdict(&image, "computed", shadowed), "shadow-stack");
    assert_eq!(verdict(&image, "ordinary", shadowed), "accepted");
}

/// A handler of faults would not find the address of the copy's instruction.
#[test]
fn instructions_known_by_their_address() {
    for flags in [&["-shared"][..], &["-static", "-Wl,-e,ordinary"]] {
        let image = build(flags);
        for (name, expected) in [
            ("in_a_table", "known-by-address"),
            ("labelled", "known-by-address"),
            ("taken", "known-by-address"),
            ("takes", "accepted"),
            ("label_of_no_access", "accepted"),
            ("jumps_through_a_table", "accepted"),
        ] {
            let verdict = verdict(&image, name, ProcessTraits::default());
            assert_eq!(verdict, expected, "{name} {flags:?}");
        }
    }
    // Where no relocation says that it is a pointer, it may be any number.
    for (flags, expected) in [
        (&["-shared"][..], "known-by-address"),
        (&["-static", "-Wl,-e,ordinary"], "accepted"),
    ] {
        let verdict = verdict(&build(flags), "pointed_to", ProcessTraits::default());
        assert_eq!(verdict, expected, "{flags:?}");
    }
}

#[test]
fn tables_that_bolt_has_replaced() {
    let image = build(&["-shared", "-DBOLT"]);
    let verdict = verdict(&image, "in_a_table", ProcessTraits::default());
    assert_eq!(verdict, "accepted");
}

/// Behind a tail call dlsym looks at the caller of the one that jumped.
#[test]
fn callers_of_what_jumps_to_dlsym() {
    for plt in ["-fplt", "-fno-plt"] {
        let flags = ["-O2", "-shared", "-fPIC", plt];
        let finder = compile("looks.c", &flags);
        let user = compile("looks.c", &[&flags[..], &["-DUSER"]].concat());
        let plain = ProcessTraits::default();
        for name in ["find", "find_again", "through_two"] {
            assert_eq!(verdict(&finder, name, plain), "caller-sensitive", "{name}");
        }
        for name in ["through_none", "through_that"] {
            assert_eq!(verdict(&finder, name, plain), "accepted", "{name}");
        }
        assert_eq!(verdict(&user, "in_another_module", plain), "accepted");
        close([&user, &finder].into_iter());
        for name in ["pass_on", "in_another_module"] {
            assert_eq!(verdict(&user, name, plain), "caller-sensitive", "{name}");
        }
        assert_eq!(verdict(&user, "unconcerned", plain), "accepted");
        let known = hopscope_probe::instrument::body::sensitive::of(&finder);
        let function = finder.functions().iter().find(|f| f.raw_name == "find");
        assert_eq!(known.by_address(function.unwrap().svma), Some("dlsym"));
    }
}

#[test]
fn where_a_program_starts() {
    let image = build(&["-static", "-Wl,-e,ordinary"]);
    let plain = ProcessTraits::default();
    assert_eq!(verdict(&image, "ordinary", plain), "never-touch");
    assert_eq!(verdict(&image, "computed", plain), "accepted");
}

#[test]
fn code_that_walks_its_own_stacks() {
    for flags in [&["-DGO"][..], &["-DOCAML"], &["-DSTRIPPED_OCAML", "-s"]] {
        let image = build(&[&["-shared"], flags].concat());
        assert_eq!(
            verdict(&image, "ordinary", ProcessTraits::default()),
            "stack-walker",
            "{flags:?}"
        );
    }
}

/// What is linked with V8 is measured, but for V8's own built-in functions.
#[test]
fn built_in_functions_of_v8() {
    for (blob, behind) in [("-DV8=2", "accepted"), ("-DV8=1", "stack-walker")] {
        let image = build(&["-shared", blob]);
        for (name, expected) in [
            ("ordinary", "accepted"),
            ("Builtins_JSEntry", "stack-walker"),
            ("behind_the_blob", behind),
        ] {
            let verdict = verdict(&image, name, ProcessTraits::default());
            assert_eq!(verdict, expected, "{name} {blob}");
        }
    }
}

/// The loader and the unwinder are left alone as a whole.
#[test]
fn libraries_that_others_stand_on() {
    let directory = Path::new("/usr/lib/x86_64-linux-gnu");
    for name in ["ld-linux-x86-64.so.2", "libgcc_s.so.1"] {
        let image = Image::open(&directory.join(name)).unwrap();
        assert!(!image.functions().is_empty(), "{name}");
        for function in image.functions() {
            let verdict = accept(&image, function, ProcessTraits::default());
            let why = verdict.map(drop).unwrap_err();
            assert_eq!(why.class(), "never-touch", "{name}: {}", function.raw_name);
        }
    }
}
