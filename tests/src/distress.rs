//! `--detach-on`, `--heartbeat`, `--max-loss`: a recording that ends for its target's sake, at once.
use crate::recording::{command, command_with_buffer, summary};
use crate::told::Told;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile_c, scratch};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::Gcc;
    suite.case("distress::call_that_takes_too_long", &[Gcc], slow_call);
    suite.case("distress::heartbeat_that_stops", &[Gcc], heartbeat);
    suite.case("distress::too_much_is_lost", &[Gcc], loss);
    suite.case("distress::what_cannot_be_watched", &[Gcc], refused);
}

fn started() -> Result<Told> {
    let program = compile_c(&["distress.c"], &["-O2"])?;
    Told::start(&mut Command::new(program))
}

/// Records what `command` is for until it ends by itself.
fn until_it_ends(
    mut command: Command,
    file: &Path,
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<(Option<i32>, Value)> {
    let said = file.with_extension("said");
    command.stdout(File::create(&said)?);
    let ready = file.with_extension("ready");
    command.arg("--ready-file").arg(&ready);
    let recorder = Target::spawn_with_ready_file(&mut command, &ready)?;
    meanwhile()?;
    let status = recorder.wait()?;
    Ok((status.code(), summary(&std::fs::read_to_string(&said)?)?))
}

fn ended_because(summary: &Value) -> &str {
    summary["ended_because"].as_str().unwrap_or_default()
}

fn slow_call() -> Result<()> {
    let mut running = started()?;
    let file = scratch().join("slow.hop");
    let mut record = command(running.pid(), &["work"], &file);
    record.args(["--detach-on", "work > 20ms"]);
    let (code, said) = until_it_ends(record, &file, || {
        running.told("fast")?;
        running.told("slow").map(drop)
    })?;
    ensure!(code == Some(1), "{code:?}");
    let because = ended_because(&said);
    let known = because.starts_with("a call took ") && because.contains("work > 20ms");
    ensure!(known && said["recorded"] == 2002, "{said}");
    running.expect_clean()?;
    running.told("fast").map(drop)
}

fn heartbeat() -> Result<()> {
    let running = started()?;
    let (file, beat) = (scratch().join("beat.hop"), scratch().join("beat"));
    let touched = File::create(&beat)?;
    let asked = |file: &Path| {
        let mut record = command(running.pid(), &["work"], file);
        record.args(["--heartbeat-within", "300ms", "--heartbeat"]);
        record.arg(&beat);
        record
    };
    let (code, said) = until_it_ends(asked(&file), &file, || Ok(()))?;
    let because = ended_because(&said);
    ensure!(
        code == Some(1) && because.ends_with("was not touched for 300ms (--heartbeat)"),
        "{code:?} {said}"
    );
    running.expect_clean()?;
    // As long as it is touched, the recording goes on.
    let mut record = asked(&file);
    record.args(["-d", "1s"]);
    let ready = file.with_extension("again");
    record
        .arg("--ready-file")
        .arg(&ready)
        .stdout(Stdio::piped());
    touched.set_modified(SystemTime::now())?;
    let mut recorder = Target::spawn_with_ready_file(&mut record, &ready)?;
    while recorder.child().try_wait()?.is_none() {
        touched.set_modified(SystemTime::now())?;
        std::thread::yield_now();
    }
    let out = recorder.output()?;
    let said = summary(&String::from_utf8_lossy(&out.stdout))?;
    ensure!(ended_because(&said) == "duration limit reached", "{said}");
    running.expect_clean()
}

fn loss() -> Result<()> {
    let mut running = started()?;
    let file = scratch().join("loss.hop");
    let mut record = command_with_buffer(running.pid(), &["work"], &file, "64K");
    record.args(["--max-loss", "1%"]);
    let (code, said) = until_it_ends(record, &file, || running.tell("always"))?;
    let because = ended_because(&said);
    ensure!(
        code == Some(1) && because.ends_with("above the limit of 1 % (--max-loss)"),
        "{code:?} {said}"
    );
    let lost = said["lost"].as_u64().context("lost")?;
    ensure!(lost > 0, "{said}");
    running.expect_clean()
}

fn refused() -> Result<()> {
    let running = started()?;
    let file = scratch().join("refused.hop");
    for (option, value, why) in [
        (
            "--detach-on",
            "other > 5ms",
            "other is not among the 1 functions",
        ),
        ("--detach-on", "packet > 5ms", "--root FUNCTION"),
        ("--detach-on", "exit", "write 'FUNCTION > 5ms'"),
        ("--detach-on", "work > 5", "with a unit"),
        ("--heartbeat", "/nowhere/beat", "/nowhere/beat"),
    ] {
        let mut record = command(running.pid(), &["work"], &file);
        let out = run(record.args([option, value]))?.expect_code(2)?;
        ensure!(out.stderr.contains(why), "{value}: {}", out.stderr);
        running.expect_clean()?;
    }
    Ok(())
}
