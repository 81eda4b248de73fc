//! Functions of a program are measured on another kernel as they are here.
use super::guest::Guest;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, compile, scratch};

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "vm::a_command_is_recorded",
        &[Requirement::Vm, Requirement::Gcc],
        recorded,
    );
}

const PASSES: u64 = 5_000;

fn recorded() -> Result<()> {
    let program = compile("gcc", &["flight/passes.c"], &["-O2", "-g"])?;
    let mut guest = Guest::new()?;
    guest.program(&program, "/bin/passes")?;
    guest.step(
        "record",
        &format!(
            "export READY_FILE=/tmp/ready
            echo run {PASSES} | hopscope record --buffer 16M --no-calibration --max-overhead 1e9 \\
              -o /tmp/out.hop -f 'pass' -f 'look' -f 'done' -- /bin/passes"
        ),
    );
    guest.step("file", "cat /tmp/out.hop");
    let run = guest.run()?;
    let said = run.step("record")?.expect_code(0)?;
    // What the program answered: how many passes it made by then, how many results were wrong.
    let answer = said.stdout.lines().next().context("no answer")?;
    let numbers: Vec<u64> = answer
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let &[passes, _, 0] = numbers.as_slice() else {
        anyhow::bail!("wrong results: {answer}");
    };
    let file = scratch().join("guest.hop");
    std::fs::write(&file, run.bytes("file")?)?;
    let report = crate::recording::Report::read(&file)?;
    report.expect_whole()?;
    let entries = ["pass", "look", "done"].map(|name| report.entries(name));
    ensure!(
        entries[0] >= passes && entries == [entries[0], 4 * entries[0], entries[0]],
        "{entries:?} calls recorded, at least {passes} passes made"
    );
    Ok(())
}
