//! Costs that are counted in instructions, the same on every machine and however busy it is.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{
    Counts, Requirement, Suite, counts, hopscope_bin, repository, scratch, target_dir,
};
use std::path::PathBuf;
use std::process::Command;

/// Where `scripts/test` has built the examples; without it the release's are built.
const EXAMPLES: &str = "HOPSCOPE_EXAMPLES";

/// A request through the stack, with the checks of the profile `test` and without: some 5 % more than when this was written.
const IN_TEST: u64 = 43_000;
const IN_RELEASE: u64 = 14_200;

pub(crate) fn register(suite: &mut Suite) {
    suite.case(
        "guards::instructions_to_read_a_record",
        &[Requirement::Valgrind],
        reading,
    );
    suite.case(
        "guards::instructions_of_a_request_through_the_stack",
        &[Requirement::Valgrind],
        request,
    );
}

/// Of `hopscope stack pair` with so many requests over 10 connections.
fn of_a_pair(requests: u64) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(hopscope_bin());
    valgrind.args(["stack", "pair", "--json", "-n", "10", "-c"]);
    let out = run(valgrind.arg(requests.to_string()))?.expect_code(0)?;
    let summary: serde_json::Value = serde_json::from_str(out.stdout.trim())?;
    ensure!(summary["answered"] == requests, "{summary}");
    collected(&out.stderr)
}

fn collected(stderr: &str) -> Result<u64> {
    let mut lines = stderr.lines();
    let count = lines.find_map(|line| line.split("Collected :").nth(1));
    let count = count.with_context(|| format!("no total in {stderr}"))?;
    Ok(count.trim().parse()?)
}

/// What more requests cost than fewer: of both ends, with the loop and the port in memory.
fn request() -> Result<()> {
    const MORE: u64 = 3_000;
    const FEWER: u64 = 1_000;
    let at_most = counts().pick(IN_TEST, IN_RELEASE);
    let instructions = (of_a_pair(MORE)? - of_a_pair(FEWER)?) / (MORE - FEWER);
    println!("{instructions} instructions for a request");
    ensure!(
        instructions <= at_most,
        "{instructions} instructions for a request, at most {at_most} are allowed"
    );
    Ok(())
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
    let instructions = collected(&read.stderr)?;
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
