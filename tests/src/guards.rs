//! Costs that are counted in instructions, the same on every machine and however busy it is.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Counts, Requirement, Suite, counts, repository, scratch, target_dir};
use std::path::PathBuf;
use std::process::Command;

/// Where `scripts/test` has built the examples; without it the release's are built.
const EXAMPLES: &str = "HOPSCOPE_EXAMPLES";

pub(crate) fn register(suite: &mut Suite) {
    suite.case(
        "guards::instructions_to_read_a_record",
        &[Requirement::Valgrind],
        reading,
    );
}

/// What reads, and what it may take.
struct Built {
    examples: PathBuf,
    records: u64,
    instructions_a_record: u64,
}

impl Built {
    /// 110 when this was written; the rest is what compilers may differ by.
    fn release() -> Result<Built> {
        let cargo = std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from);
        let words = "build --quiet --release --locked -p hopscope-trace --example speed --example read_count";
        run(Command::new(cargo)
            .args(words.split(' '))
            .current_dir(repository()))?
        .expect_code(0)?;
        Ok(Built {
            examples: target_dir().join("release/examples"),
            records: 1 << 22,
            instructions_a_record: 125,
        })
    }

    /// With the checks of the profile `test`: 161 when this was written.
    fn with_the_tests(examples: PathBuf) -> Built {
        Built {
            examples,
            records: 1 << 20,
            instructions_a_record: 183,
        }
    }
}

fn reading() -> Result<()> {
    let built = match (counts(), std::env::var_os(EXAMPLES)) {
        (Counts::Reduced, Some(examples)) => Built::with_the_tests(examples.into()),
        _ => Built::release()?,
    };
    let file = scratch().join("network_function.hop");
    let mut speed = Command::new(built.examples.join("speed"));
    run(speed.arg(&file).arg(built.records.to_string()))?.expect_code(0)?;
    let read = run(Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(built.examples.join("read_count"))
        .arg(&file))?
    .expect_code(0)?;
    let records: u64 = read.stdout.trim().parse().context("a number of records")?;
    let collected = read
        .stderr
        .lines()
        .find_map(|line| line.split("Collected :").nth(1))
        .with_context(|| format!("no total in {}", read.stderr))?;
    let instructions: u64 = collected.trim().parse()?;
    ensure!(records == built.records, "{records} records");
    println!("{instructions} instructions for {records} records");
    let at_most = built.instructions_a_record;
    ensure!(
        instructions <= at_most * records,
        "{} instructions a record, at most {at_most} are allowed",
        instructions / records
    );
    Ok(())
}
