//! Which cases the runner runs beside each other: those that wait hold no place of those that work, and those that run
//! in turn never meet.
use super::runner_itself::itself_in;
use anyhow::{Result, ensure};
use hopscope_tests::{Suite, scratch};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for a runner that is run by a test: its cases then tell each other in this folder that they run.
const TO_MEET: &str = "HOPSCOPE_CASES_TO_MEET";

/// `tests/costs` says of the first two that they wait.
const MEETING: [&str; 4] = [
    "to_wait::first",
    "to_wait::second",
    "to_work::first",
    "to_work::second",
];
const TURNS: [&str; 4] = [
    "to_turn::first",
    "to_turn::second",
    "to_turn::third",
    "to_turn::fourth",
];

pub(super) fn register(suite: &mut Suite) {
    let wait = "house::cases_that_wait_have_places_of_their_own";
    let meet = || passes(&["to_wait::", "to_work::"]);
    suite.case(wait, &[], meet).watchdog(60);
    let turn = "house::cases_in_turn_are_not_beside_each_other";
    suite
        .case(turn, &[], || passes(&["to_turn::"]))
        .watchdog(60);
    if let Some(dir) = std::env::var_os(TO_MEET).map(PathBuf::from) {
        to_meet(suite, &dir);
    }
}

fn to_meet(suite: &mut Suite, dir: &Path) {
    for name in MEETING {
        let dir = dir.to_owned();
        let meet = move || {
            std::fs::write(dir.join(name), "")?;
            // The watchdog ends a vain wait.
            while !MEETING.iter().all(|other| dir.join(other).exists()) {
                std::thread::yield_now();
            }
            Ok(())
        };
        suite.case(name, &[], meet).watchdog(30);
    }
    for name in TURNS {
        let place = dir.join("turn");
        let alone = move || {
            std::fs::create_dir(&place)?;
            // Long enough for another one to come.
            for _ in 0..20 {
                Command::new("true").status()?;
            }
            Ok(std::fs::remove_dir(&place)?)
        };
        suite.case(name, &[], alone).in_turn();
    }
}

/// With two places for those that work.
fn passes(filters: &[&str]) -> Result<()> {
    let dir = scratch();
    let mut command = itself_in(&dir, filters[0], "");
    command.args(&filters[1..]).args(["--jobs", "2"]);
    let out = command.env(TO_MEET, &dir).output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(said.ends_with("4 passed, 0 failed, 0 skipped\n"), "{said}");
    Ok(())
}
