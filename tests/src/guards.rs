//! Costs that are counted in instructions, the same on every machine and however busy it is.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, repository, scratch, target_dir};
use std::path::PathBuf;
use std::process::Command;

/// 110 when this was written; the rest is what compilers may differ by.
const INSTRUCTIONS_A_RECORD: u64 = 125;

pub(crate) fn register(suite: &mut Suite) {
    suite.case(
        "guards::instructions_to_read_a_record",
        &[Requirement::Valgrind],
        reading,
    );
}

fn example(name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from);
    let words = "build --quiet --release --locked -p hopscope-trace --example";
    run(Command::new(cargo)
        .args(words.split(' '))
        .arg(name)
        .current_dir(repository()))?
    .expect_code(0)?;
    Ok(target_dir().join("release/examples").join(name))
}

fn reading() -> Result<()> {
    let file = scratch().join("network_function.hop");
    run(Command::new(example("speed")?).arg(&file))?.expect_code(0)?;
    let read = run(Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(example("read_count")?)
        .arg(&file))?
    .expect_code(0)?;
    let records: u64 = read.stdout.trim().parse().context("a number of records")?;
    let collected = read
        .stderr
        .lines()
        .find_map(|line| line.split("Collected :").nth(1))
        .with_context(|| format!("no total in {}", read.stderr))?;
    let instructions: u64 = collected.trim().parse()?;
    ensure!(records > 1_000_000, "only {records} records");
    println!("{instructions} instructions for {records} records");
    ensure!(
        instructions <= INSTRUCTIONS_A_RECORD * records,
        "{} instructions a record, at most {INSTRUCTIONS_A_RECORD} are allowed",
        instructions / records
    );
    Ok(())
}
