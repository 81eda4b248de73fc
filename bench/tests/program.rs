//! The measured program is real: built with the C compiler, run, and asked.
use hopscope_bench::error::Error;
use hopscope_bench::hopscope::Hopscope;
use hopscope_bench::program::{Compiler, Family, Program, ProgramPlan, Target, Variant, build};
use std::path::{Path, PathBuf};
use std::process::Command;

fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn plan() -> ProgramPlan {
    ProgramPlan {
        name: "test",
        executable: vec![
            Family { body: 5, count: 20 },
            Family {
                body: 100,
                count: 3,
            },
        ],
        library: vec![Family { body: 5, count: 20 }],
    }
}

fn program(name: &str, variant: Variant) -> Program {
    build(&dir(name), &plan(), &Compiler::of_the_system(), variant).unwrap()
}

#[test]
fn phases_count_the_calls_they_make() {
    let mut target = Target::start(&program("phases", Variant::Plain)).unwrap();
    let mut total = 0;
    for (phase, unit) in [
        ("hot_e5", 1),
        ("rr_e5", 20),
        ("rr_l5", 20),
        ("tree_e", 31),
        ("pipe_e", 11),
    ] {
        let took = target.run(phase, 1).unwrap();
        assert!(took.batches > 0, "{phase}");
        assert_eq!(took.calls_per_batch % unit, 0, "{phase}");
        assert_eq!(took.calls % unit, 0, "{phase}");
        assert!(took.calls > took.batches * took.calls_per_batch, "{phase}");
        assert!(
            took.min <= took.median && took.median <= took.p90,
            "{phase}"
        );
        total += took.calls;
    }
    target.run("floor_two_rdtsc", 1).unwrap();
    assert_eq!(target.calls, total, "floors call no measured function");
}

#[test]
fn what_it_does_not_know_is_an_error_with_both_sides() {
    let mut target = Target::start(&program("unknown", Variant::Plain)).unwrap();
    let Err(Error::Answer { asked, answer }) = target.run("hot_e7", 1) else {
        panic!("an unknown phase was measured");
    };
    assert!(asked.contains("hot_e7") && answer.contains("not understood"));
    target.run("hot_e5", 1).unwrap();
}

/// The number of functions that call `hook_enter`, out of the disassembly.
fn hooked(program: &Program) -> usize {
    let objdump = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(&program.executable)
        .output()
        .unwrap();
    assert!(objdump.status.success());
    let text = String::from_utf8_lossy(&objdump.stdout);
    text.lines()
        .filter(|line| line.contains("call") && line.contains("<hook_enter>"))
        .count()
}

#[test]
fn wrapped_programs_go_through_the_hooks_and_plain_ones_have_none() {
    assert_eq!(hooked(&program("wrap", Variant::WrapEmpty)), 23);
    assert_eq!(hooked(&program("wrap", Variant::Plain)), 0);
    let mut target = Target::start(&program("wrap", Variant::WrapRecord)).unwrap();
    target.run("rr_e5", 1).unwrap();
}

#[test]
fn unchanged_sources_are_not_compiled_again() {
    let name = "again";
    program(name, Variant::Plain);
    let object = dir(name).join("test/objects-plain/e5.o");
    let first = std::fs::metadata(&object).unwrap().modified().unwrap();
    program(name, Variant::Plain);
    assert_eq!(
        std::fs::metadata(&object).unwrap().modified().unwrap(),
        first
    );
    std::fs::write(dir(name).join("test/objects-plain/e5.stamp"), "old").unwrap();
    program(name, Variant::Plain);
    assert_ne!(
        std::fs::metadata(&object).unwrap().modified().unwrap(),
        first
    );
}

#[test]
fn a_compiler_that_fails_is_named_with_what_it_said() {
    let missing = Compiler("no-such-compiler".into());
    let error = build(&dir("missing"), &plan(), &missing, Variant::Plain).unwrap_err();
    assert!(matches!(&error, Error::Start { program, .. } if program == "no-such-compiler"));
    let failing = Compiler("false".into());
    let error = build(&dir("failing"), &plan(), &failing, Variant::Plain).unwrap_err();
    assert!(matches!(error, Error::Failed { .. }));
}

#[test]
fn a_recorder_that_ends_before_it_is_ready_is_an_error() {
    let hopscope = Hopscope {
        binary: "/bin/false".into(),
        files: dir("recordings"),
    };
    let error = hopscope.record(1, &["x"], &[]).unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
}

#[test]
fn threads_run_and_the_main_thread_can_spin() {
    let mut target = Target::start(&program("threads", Variant::Plain)).unwrap();
    target.threads(1, 3).unwrap();
    target.watch().unwrap();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", target.pid)).unwrap();
    assert_eq!(tasks.count(), 5);
}
