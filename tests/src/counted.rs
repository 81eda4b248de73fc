//! Counters read by probes: of the kernel's own event each call's count is the kernel's account of it; of the processor's,
//! where there are none, a preloaded library answers `rdpmc`, and each count is what the program says that it did.
mod emulated;
mod life;
pub(crate) mod program;
mod switches;

use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope, scratch};
use program::Program;

pub(crate) fn register(suite: &mut Suite) {
    emulated::register(suite);
    life::register(suite);
    switches::register(suite);
    let gcc = &[Requirement::Gcc];
    suite.case("counted::what_there_is_not_is_refused", gcc, refused);
    suite.case(
        "pmu::instructions_of_a_loop",
        &[Requirement::Gcc, Requirement::Pmu],
        instructions,
    );
}

/// Before anything is attached to.
fn refused() -> Result<()> {
    let program = Program::start()?;
    let file = scratch().join("counted.hop");
    let asks = |function: &str| {
        let (pid, file) = (program.pid().to_string(), file.display().to_string());
        hopscope(&[
            "record", "-p", &pid, "-f", function, "-d", "1s", "-o", &file,
        ])
    };
    for (function, why) in [
        ("inner(@page-faults)", "lost its processor"),
        ("inner(@flops)", "perf list"),
        (
            "inner(@cycles,@instructions,@branches,@cache-misses,@ref-cycles)",
            "at most 4",
        ),
    ] {
        let out = asks(function)?.expect_code(2)?;
        ensure!(out.stderr.contains(why), "{function}: {}", out.stderr);
    }
    if Requirement::Pmu.check().is_err() {
        let out = asks("inner(@instructions)")?.expect_code(2)?;
        for words in ["@instructions is not available", "TSC", "@context-switches"] {
            ensure!(out.stderr.contains(words), "{}", out.stderr);
        }
    }
    program.expect_clean()
}

/// Of a loop whose instructions are known, on a machine that counts them.
fn instructions() -> Result<()> {
    let mut program = Program::start()?;
    let file = scratch().join("counted.hop");
    let recording = program.record_calibrated(&["spinner(@instructions)"], &file)?;
    program.told("spin 1000 500")?;
    recording.stop()?;
    let spinner = program::rows(&file)?.row("spinner")?;
    let counted = spinner.counter("instructions")?;
    // Three instructions a turn; entry, result and return beside them.
    let per_call = counted.number("self_corrected")? as f64 / counted.number("self_calls")? as f64;
    ensure!((3_000.0..3_020.0).contains(&per_call), "{counted:?}");
    Ok(())
}
