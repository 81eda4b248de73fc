//! Unwind tables of copies against what each instruction does to the stack: from one instruction to the next the frame address
//! stays the same, and nothing that is pushed lands where a saved register is. All of a segment is looked at, also what a run
//! hardly ever reaches: probes without a ring, with captures, switched off, without BMI2; what they call; the way out.
#[path = "unwind_rows/built.rs"]
mod built;
#[path = "unwind_rows/read.rs"]
mod read;
#[path = "unwind_rows/steps.rs"]
mod steps;

use built::{Places, Program, captures};
use hopscope_probe::instrument::emit::probe::{ProbeConfig, Stores};
use steps::Seen;

const CONFIG: ProbeConfig = ProbeConfig {
    ring_records_log2: 16,
    bmi2: true,
    stores: Stores::Records,
    switchable: false,
    ordered_stamps: false,
};

fn check(flags: &[&str], config: &ProbeConfig, captured: bool) -> Seen {
    checked(&Program::build(flags), config, captured, &Places::default())
}

fn checked(program: &Program, config: &ProbeConfig, captured: bool, places: &Places) -> Seen {
    let captures = match captured {
        true => captures(),
        false => Vec::new(),
    };
    let mut seen = Seen::default();
    let (segments, never) = program.copies(config, &captures, places);
    for linked in &segments {
        seen.add(&steps::check(program, linked, &never));
    }
    println!("{config:?} {captured} {} {seen:?}", places.1);
    // None of it is an empty check.
    assert!(seen.functions > 40 && seen.followed > 5_000, "{seen:?}");
    assert!(seen.into_routines > 200 && seen.out > 0, "{seen:?}");
    assert!(seen.pushes > 1_000 && seen.saved > 1_000, "{seen:?}");
    assert!(seen.kept >= 2, "{seen:?}");
    seen
}

#[test]
fn probes() {
    for flags in [
        &["-O2"][..],
        &["-Os"],
        &["-O0"],
        &["-O3", "-fcf-protection"],
    ] {
        check(flags, &CONFIG, false);
    }
}

#[test]
fn probes_of_inlined_functions() {
    for flags in [
        &["-O2", "-g"][..],
        &["-Os", "-g"],
        &["-O3", "-g", "-fno-omit-frame-pointer"],
    ] {
        let program = Program::build(flags);
        let places = program.places();
        println!("{flags:?}: {} places, {} calls", places.1, places.2);
        assert!(places.1 > 20 && places.2 > 5, "{}, {}", places.1, places.2);
        checked(&program, &CONFIG, false, &places);
    }
}

#[test]
fn without_bmi2_and_with_a_switch() {
    let config = ProbeConfig {
        bmi2: false,
        switchable: true,
        ordered_stamps: true,
        ..CONFIG
    };
    check(&["-O2"], &config, false);
}

/// At entry, through the kernel, and of what is returned.
#[test]
fn captures_are_taken_along() {
    check(&["-O2"], &CONFIG, true);
}
