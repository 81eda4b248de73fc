//! Attached and detached many times.
use super::torturer::{MODES, Torturer};
use crate::recording::{Report, command, command_checking, expect_checked, summary};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, command::run, counts, scratch};

/// With probes that go off and on; the others at full counts.
const SWITCHED: [&str; 4] = ["spinning", "signalling", "threading", "loading"];

/// Recordings whose copies may stay at the same time, however many there were.
const KEPT_AT_MOST: usize = 4;

pub(super) fn register(suite: &mut Suite) {
    for mode in MODES {
        let name = format!("torture::cycles_{mode}");
        suite.case(name, &[Requirement::Gcc], move || cycles(mode));
        let name = format!("torture::switched_{mode}");
        let case = suite.case(name, &[Requirement::Gcc], move || switched(mode));
        if !SWITCHED.contains(&mode) {
            case.soak();
        }
    }
}

/// Detached with the probes off, and threads wherever switching left them.
fn switched(mode: &'static str) -> Result<()> {
    let torturer = Torturer::start(mode)?;
    let file = scratch().join("cycle.hop");
    let mut declared = 0;
    for _ in 0..counts().pick(1, 200) {
        let patterns = ["torture*!*work*", "work*!*work*"];
        let mut record = command_checking(torturer.pid(), &patterns, &file, "150ms");
        let out = run(&mut record)?.expect_code(0)?;
        let said = summary(&out.stdout)?;
        expect_checked(&said)?;
        declared += usize::from(said["notes"].to_string().contains("stay mapped"));
        Report::read(&file)?.expect_balanced()?;
        torturer.text_is_original()?;
    }
    let (code, data) = torturer.leftovers()?;
    let recordings = declared.min(KEPT_AT_MOST);
    ensure!(
        code <= 2 * recordings && data <= recordings,
        "{code} and {data} mappings left, {declared} times declared"
    );
    torturer.finish()
}

fn cycles(mode: &'static str) -> Result<()> {
    let torturer = Torturer::start(mode)?;
    let file = scratch().join("cycle.hop");
    let cycles = counts().pick(8, 1000);
    // A mapping may stay when it is said to stay.
    let mut declared = 0;
    let mut entries = 0;
    for cycle in 1..=cycles {
        let mut record = command(torturer.pid(), &["torture*!*work*", "work*!*work*"], &file);
        let out = run(record.args(["-d", "20ms"]))?.expect_code(0)?;
        let notes = summary(&out.stdout)?["notes"].to_string();
        declared += usize::from(notes.contains("stay mapped"));
        if cycle % 5 == 1 || entries == 0 {
            let report = Report::read(&file)?;
            report.expect_balanced()?;
            entries += report.summary["balance"]["entries"].as_u64().unwrap_or(0);
        }
        torturer.text_is_original()?;
    }
    let (code, data) = torturer.leftovers()?;
    // Each detach takes away what earlier ones had to leave. Two modules at most, and so two
    // segments, each time; and one page that says where they are.
    let recordings = declared.min(KEPT_AT_MOST);
    ensure!(
        code <= 2 * recordings && data <= recordings,
        "{code} and {data} mappings left, {declared} times declared"
    );
    ensure!(entries > 0, "nothing was ever recorded");
    println!("{cycles} cycles, {entries} entries looked at, copies stayed {declared} times");
    torturer.finish()
}
