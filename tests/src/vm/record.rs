//! Functions of a program are measured on another kernel as they are here.
use super::guest::{Guest, Run};
use super::part::Part;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, compile, scratch};

pub(super) const RECORDED: Part = Part {
    name: "vm::a_command_is_recorded",
    needs: &[Requirement::Vm, Requirement::Gcc],
    steps,
    holds,
};

const PASSES: u64 = 5_000;

fn steps(guest: &mut Guest) -> Result<()> {
    let program = compile("gcc", &["flight/passes.c"], &["-O2", "-g"])?;
    guest.program(&program, "/bin/passes")?;
    guest.step(
        "record",
        &format!(
            "export READY_FILE=/tmp/record-ready
            echo run {PASSES} | hopscope record --buffer 16M --no-calibration --max-overhead 1e9 \\
              -o /tmp/out.hop -f 'pass' -f 'look' -f 'done' -- /bin/passes"
        ),
    );
    guest.step("file", "cat /tmp/out.hop");
    Ok(())
}

fn holds(run: &Run) -> Result<()> {
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
