//! `make soak` leaves nothing out: each case is in one shard, and what passed in a shard is not run again.
use super::runner_itself::itself_in;
use anyhow::{Result, ensure};
use hopscope_tests::runner::Shards;
use hopscope_tests::{Suite, hopscope_bin, scratch};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::each_case_is_in_a_shard", &[], each_in_one);
    suite.case("house::a_shard_goes_on_where_it_ended", &[], resumed);
    suite.case("house::what_is_for_the_soak_is_left_to_it", &[], left);
}

fn names(options: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new(std::env::current_exe()?);
    let out = command
        .args(options)
        .arg("--list")
        .env_remove("HOPSCOPE_CASE")
        .output()?;
    ensure!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let said = String::from_utf8(out.stdout)?;
    Ok(said
        .lines()
        .filter_map(|l| l.strip_suffix(": test"))
        .map(String::from)
        .collect())
}

fn each_in_one() -> Result<()> {
    let shards = Shards::load()?;
    let all = names(&[])?;
    let outside: Vec<_> = all
        .iter()
        .filter(|name| shards.of(name).is_none())
        .collect();
    ensure!(
        outside.is_empty(),
        "in no shard of tests/shards: {outside:?}"
    );
    let mut together = Vec::new();
    for shard in shards.names() {
        let here = names(&["--shard", shard])?;
        ensure!(!here.is_empty(), "nothing is in shard {shard}");
        together.extend(here);
    }
    let mut wanted = all;
    wanted.sort();
    together.sort();
    ensure!(wanted == together, "the shards are not the suite");
    Ok(())
}

fn resumed() -> Result<()> {
    let dir = scratch();
    let report = dir.join("shard.tsv").display().to_string();
    let run = |minutes: &str| -> Result<String> {
        let mut command = itself_in(&dir, "house::readme_is_short", "");
        command.args([
            "--shard",
            "house",
            "--resume",
            &report,
            "--minutes",
            minutes,
        ]);
        Ok(String::from_utf8(command.output()?.stdout)?)
    };
    let counts = hopscope_tests::counts();
    let nothing =
        format!("running 0 tests, counts {counts:?}\nsystem: 0 passed, 0 failed, 0 skipped\n");
    for (minutes, words) in [
        (
            "0",
            "left for a later run: 1\nsystem: 0 passed, 0 failed, 0 skipped\n",
        ),
        ("9", "system: 1 passed, 0 failed, 0 skipped\n"),
        ("9", nothing.as_str()),
    ] {
        let said = run(minutes)?;
        ensure!(said.ends_with(words), "{said}");
    }
    let rows = std::fs::read_to_string(&report)?;
    ensure!(rows.lines().count() == 2, "{rows}");
    Ok(())
}

/// By a run that may not start anything, and so names what it would have.
fn left() -> Result<()> {
    const FOR_THE_SOAK: &str = "left  demo::where_nothing_is_planted_none_of_it_is_named\n";
    let dir = scratch();
    for (counts, is_there) in [("reduced", false), ("full", true)] {
        let report = dir.join(counts);
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--shard", "tails", "--minutes", "0", "--resume"])
            .arg(report)
            .env_remove("HOPSCOPE_CASE")
            .env("HOPSCOPE_BIN", hopscope_bin())
            .env("HOPSCOPE_COUNTS", counts);
        let said = String::from_utf8(command.output()?.stdout)?;
        ensure!(said.contains("left  demo::what_is_planted"), "{said}");
        ensure!(said.contains(FOR_THE_SOAK) == is_there, "{counts}: {said}");
    }
    Ok(())
}
