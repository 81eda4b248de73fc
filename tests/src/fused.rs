//! Entries that have the stamp of the exit before them.
use crate::recording::{Recording, Report, command_checking, command_with_buffer};
use crate::told::Told;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, compile_c, counts, hopscope, scratch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::Command;

const STAGES: [&str; 8] = [
    "rounds", "round_of", "first", "second", "jumping", "third", "fourth", "fifth",
];

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    for level in ["O1", "O2", "Os"] {
        let name = format!("fused::right_behind_an_exit_{level}");
        suite.case(name, gcc, move || right_behind(level));
    }
    suite.case("fused::not_where_the_order_or_counts_matter", gcc, apart);
    suite.case("fused::loops_run_on_after_a_detach", gcc, || goes_on(false));
    suite.case("fused::loops_run_on_after_a_kill", gcc, || goes_on(true));
    suite.case("fused::forked_children_run_on", gcc, forked);
}

fn started(level: &str) -> Result<Told> {
    let program = compile_c(
        &["fused/stages.c"],
        &[&format!("-{level}"), "-g", "-foptimize-sibling-calls"],
    )?;
    Told::start(&mut Command::new(program))
}

/// Which are: behind a return alone, and only where nothing leads there from elsewhere.
fn right_behind(level: &str) -> Result<()> {
    let n: u64 = counts().pick(3_000, 300_000);
    let mut program = started(level)?;
    let alone = program
        .told(&format!("run {n}"))
        .and_then(|_| program.told("sum"))?;
    let mut measured = started(level)?;
    let file = scratch().join("fused.hop");
    let recording = Recording::start_keeping(measured.pid(), &STAGES, &file, "64M")?;
    measured.told(&format!("run {n}"))?;
    let said = recording.stop()?;
    ensure!(said["lost"] == 0, "{said}");
    ensure!(measured.told("sum")? == alone, "another sum when measured");
    measured.expect_clean()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    clock_is_read_behind_a_jump(&file)?;
    let not_skipped = n - n.div_ceil(3);
    let expected = [
        ("round_of", n, 0),
        ("first", n, 0),
        ("second", n, n),
        ("jumping", n, n),
        // Behind a function that was left by a jump: what that leads to took its time.
        ("third", n, 0),
        ("fourth", n, n),
        // Behind a loop.
        ("fifth", not_skipped, 0),
    ];
    for (name, entries, fused) in expected {
        let of = (report.entries(name), report.functions[name]["fused"]);
        ensure!(
            of == (entries, fused),
            "{name}: {of:?}, not {entries} and {fused}"
        );
    }
    Ok(())
}

/// What `jumping` led to took its time before `third` began.
fn clock_is_read_behind_a_jump(file: &Path) -> Result<()> {
    let file = file.to_str().context("a path in UTF-8")?;
    let out = hopscope(&["export", file, "--format", "csv", "--what", "calls"])?.expect_code(0)?;
    let mut lines = out
        .stdout
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().context("no head")?;
    let column = |name: &str| {
        head.iter()
            .position(|h| *h == name)
            .context(name.to_owned())
    };
    let [function, entry, ticks] = ["function", "entry_tsc", "total_raw_tsc"].map(column);
    let (function, entry, ticks) = (function?, entry?, ticks?);
    let of = |name: &str| {
        let calls = lines.clone().filter(|line| line[function] == name);
        calls
            .map(|line| Ok((line[entry].parse()?, line[ticks].parse()?)))
            .collect::<Result<Vec<(u64, u64)>>>()
    };
    let (jumping, third) = (of("jumping")?, of("third")?);
    let behind = jumping.iter().zip(&third);
    let early = behind
        .filter(|(jumping, third)| third.0 <= jumping.0 + jumping.1)
        .count();
    ensure!(
        early == 0 && jumping.len() == third.len(),
        "{early} of {} began at the jump",
        third.len()
    );
    Ok(())
}

fn apart() -> Result<()> {
    for option in ["--ordered-stamps", "--check-cost"] {
        let mut program = started("O2")?;
        let file = scratch().join("apart.hop");
        let mut record = match option.starts_with("--check") {
            true => command_checking(program.pid(), &STAGES, &file, "100ms"),
            false => command_with_buffer(program.pid(), &STAGES, &file, "16M"),
        };
        if !option.starts_with("--check") {
            record.arg(option);
        }
        let recording = Recording::start_command(record, &file)?;
        program.told("run 1000")?;
        match option.starts_with("--check") {
            true => recording.finished()?,
            false => recording.stop()?,
        };
        let report = Report::read(&file)?;
        for (name, function) in &report.functions {
            ensure!(function["fused"] == 0, "{option}: {name}: {function:?}");
        }
    }
    Ok(())
}

/// With what they inherited, whose probes record nothing there, and when it is taken back.
fn forked() -> Result<()> {
    let mut program = started("O2")?;
    let file = scratch().join("forked.hop");
    let functions = ["spins", "first", "second", "fourth", "fifth"];
    for follows in [false, true] {
        let mut record = command_with_buffer(program.pid(), &functions, &file, "16M");
        if follows {
            record.arg("--follow-forks");
        }
        let recording = Recording::start_command(record, &file)?;
        let child: i32 = program.told("fork")?.parse()?;
        recording.stop()?;
        Report::read(&file)?.expect_balanced()?;
        kill(Pid::from_raw(child), Signal::SIGUSR1)?;
        ensure!(
            program.told("wait")? == "7",
            "the child did not end in order"
        );
    }
    Ok(())
}

/// A copy whose loop never returns goes on to call the functions as they are.
fn goes_on(is_killed: bool) -> Result<()> {
    let mut program = started("O2")?;
    let file = scratch().join("goes-on.hop");
    let functions = ["spins", "first", "second", "fourth", "fifth"];
    for round in 0..counts().pick(3, 30) {
        let recording = Recording::start(program.pid(), &functions, &file)?;
        ensure!(program.told("forever")? == "begun");
        if is_killed {
            kill(recording.recorder()?, Signal::SIGKILL)?;
            recording.ended()?;
        } else {
            recording.stop()?;
            let report = Report::read(&file)?;
            report.expect_balanced()?;
        }
        // It runs in its copy by now, and there is nothing else of ours that it needs.
        program.target.signal(Signal::SIGUSR1)?;
        ensure!(program.line()? == "stopped", "round {round}");
        hopscope(&["detach", "-p", &program.pid().to_string()])?;
        program.expect_clean()?;
    }
    Ok(())
}
