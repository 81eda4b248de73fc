//! Recordings that end between their attach and their first record: by an error of the recorder, or
//! because somebody kills it.
use crate::recording::{Recording, command};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::{Output, run};
use hopscope_tests::mapped;
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope, hopscope_bin, scratch};
use hopscope_trace::{BatchHead, TraceReader};
use nix::sys::signal::{Signal, kill};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(60);

/// As measure/process/src/fault.rs has it.
const MAPPED_HEADER: &str = "10";
const RESTORE: &str = "101";
const PANIC: &str = "103";

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite.case("early_end::ready_file", gcc, ready_file);
    suite.case("early_end::full_disk", gcc, full_disk);
    suite.case("early_end::not_restored", gcc, not_restored);
    suite.case("early_end::panic", gcc, panics);
    suite.case(
        "early_end::panic_with_a_command",
        gcc,
        panics_with_a_command,
    );
    suite.case("early_end::killed_within_a_second", gcc, killed);
    suite.case("early_end::guardian_killed_at_once", gcc, guardian_killed);
    suite.case(
        "early_end::killed_beside_another_name",
        gcc,
        killed_beside_another_name,
    );
    suite.case("early_end::few_descriptors", gcc, few_descriptors);
    suite.case("early_end::held_command", gcc, held_command);
}

/// Records a process, and looks at it afterwards: nothing of the recording is left in it.
fn recorded(output: &Path, change: impl FnOnce(&mut Command)) -> Result<Output> {
    let program = compile_c(&["steady.c"], &["-O2"])?;
    let target = Target::spawn(Command::new(program).stdout(Stdio::piped()))?;
    let mut record = command(target.pid(), &["steady_mix"], output);
    change(record.args(["-d", "20ms"]));
    let out = run(&mut record)?;
    let detach = hopscope(&["detach", "-p", &target.pid().to_string()])?.expect_code(0)?;
    ensure!(
        detach.stderr.contains("has no probes"),
        "{detach:?} after {out:?}"
    );
    target.signal(Signal::SIGTERM)?;
    let ended = target.output()?;
    let said = String::from_utf8_lossy(&ended.stdout);
    ensure!(ended.status.success() && said.contains("0 wrong"), "{said}");
    Ok(out)
}

/// The recorder itself restores, and says what failed.
fn restored_by_the_recorder(out: Output, why: &str) -> Result<()> {
    let out = out.expect_code(2)?;
    for word in ["1 functions restored", why] {
        ensure!(out.stderr.contains(word), "no `{word}`: {out:?}");
    }
    ensure!(!out.stderr.contains("restoring its targets"), "{out:?}");
    Ok(())
}

fn ready_file() -> Result<()> {
    let file = scratch().join("no-ready-file.hop");
    let out = recorded(&file, |record| {
        record.args(["--ready-file", "/nonexistent/ready"]);
    })?;
    restored_by_the_recorder(out, "/nonexistent/ready")?;
    ensure!(!file.exists(), "a file of no recording");
    Ok(())
}

fn full_disk() -> Result<()> {
    let out = recorded(Path::new("/dev/full"), |_| {})?;
    restored_by_the_recorder(out, "No space left")
}

/// What the recorder cannot restore, its guardian does, however orderly that one ends.
fn not_restored() -> Result<()> {
    let out = recorded(&scratch().join("not-restored.hop"), |record| {
        record.env("HOPSCOPE_FAILURE_POINT", RESTORE);
    })?;
    let out = out.expect_code(2)?;
    ensure!(out.stderr.contains("left its probes"), "{out:?}");
    ensure!(out.stdout.contains("1 functions restored"), "{out:?}");
    Ok(())
}

/// It restores what it can, and is told from one that has ended in order.
fn panics() -> Result<()> {
    let out = recorded(&scratch().join("panic.hop"), |record| {
        record.env("HOPSCOPE_FAILURE_POINT", PANIC);
    })?;
    let out = out.expect_code(2)?;
    ensure!(out.stderr.contains("an error of its own"), "{out:?}");
    Ok(())
}

/// No exit code of the command is taken for it, nor is its own taken for one of the command.
fn panics_with_a_command() -> Result<()> {
    let mut record = Command::new(hopscope_bin());
    record
        .args(["record", "--no-calibration", "-f", "called_once", "-o"])
        .arg(scratch().join("panic.hop"))
        .arg("--")
        .arg(compile_c(&["hostile/once.c"], &["-O1"])?)
        .env("HOPSCOPE_FAILURE_POINT", PANIC);
    let out = run(&mut record)?.expect_code(125)?;
    ensure!(out.stderr.contains("an error of its own"), "{out:?}");
    Ok(())
}

/// However few files may be open: it is recorded, or refused, and nothing is left in it.
fn few_descriptors() -> Result<()> {
    let program = compile_c(&["steady.c"], &["-O2"])?;
    let target = Target::spawn(Command::new(program).stdout(Stdio::piped()))?;
    let file = scratch().join("few-descriptors.hop");
    let (mut recorded, mut refused) = (0, 0);
    for limit in (6..=30).step_by(2).chain([40, 64]) {
        let record = command(target.pid(), &["steady_mix"], &file);
        let mut limited = Command::new("sh");
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        limited
            .args(["-c", &script, "sh"])
            .arg(record.get_program());
        let out = run(limited.args(record.get_args()).args(["-d", "20ms"]))?;
        match out.code {
            Some(0) => recorded += 1,
            _ => refused += 1,
        }
        let left = mapped::mapped(target.pid())?;
        ensure!(left.is_empty(), "{limit} files: {left:?} after {out:?}");
    }
    ensure!(
        recorded > 0 && refused > 0,
        "{recorded} recorded, {refused} refused"
    );
    target.signal(Signal::SIGTERM)?;
    let ended = target.output()?;
    let said = String::from_utf8_lossy(&ended.stdout);
    ensure!(ended.status.success() && said.contains("0 wrong"), "{said}");
    Ok(())
}

/// A command whose recorder is killed before it runs never runs, and does not stay.
fn held_command() -> Result<()> {
    // A file of its own: that is how its process is found.
    let dir = scratch();
    let program = dir.join(format!("held-{}", std::process::id()));
    std::fs::copy(compile_c(&["hostile/once.c"], &["-O1"])?, &program)?;
    let mut record = Command::new(hopscope_bin());
    record
        .args(["record", "--no-calibration", "-f", "called_once", "-o"])
        .arg(dir.join("held.hop"))
        .arg("--")
        .arg(&program)
        .env("HOPSCOPE_FAULT_POINT", MAPPED_HEADER);
    run(&mut record)?.expect_code(125)?;
    while let Some(state) = state_of(&program)? {
        // The signal is sent while the recorder ends: whoever sleeps has not got any.
        ensure!(
            !"ST".contains(state),
            "the command is there, in state {state}"
        );
        std::thread::yield_now();
    }
    std::fs::remove_file(program)?;
    Ok(())
}

/// The letter of /proc/PID/stat for the process that runs `program`, if there is one.
fn state_of(program: &Path) -> Result<Option<char>> {
    for entry in std::fs::read_dir("/proc")?.flatten() {
        if std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program) {
            let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
                continue;
            };
            let (_, rest) = stat.rsplit_once(") ").context("a state")?;
            return Ok(rest.chars().next());
        }
    }
    Ok(None)
}

/// Of a recorder that is killed, what it had read is in its file, and the rest is salvaged.
fn killed() -> Result<()> {
    let target = Target::spawn(&mut Command::new(compile_c(&["paced.c"], &["-O2"])?))?;
    let file = scratch().join("killed.hop");
    let recording = Recording::start(target.pid(), &["paced_inner"], &file)?;
    // So often it rests, after a thousand calls each.
    let rests = |more: u64| -> Result<()> {
        let until = rests_of(target.pid())? + more;
        while rests_of(target.pid())? < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    rests(100)?;
    kill(recording.recorder()?, Signal::SIGKILL)?;
    let (code, said) = recording.ended()?;
    ensure!(code == Some(2), "{code:?}: {said}");
    let (own, salvaged) = (heads(&file)?, heads(&file.with_extension("salvaged.hop"))?);
    let end = own
        .last()
        .map_or(0, |h| h.first_index + u64::from(h.records) + h.torn_before);
    let start = salvaged.first().map(|h| h.first_index - h.lost_before);
    let start = start.context("something was salvaged")?;
    ensure!(end >= 50_000, "{end} records in its own file");
    ensure!(start <= end, "records {end} to {start} are nowhere");
    Ok(())
}

/// Before the recorder could ask to be told: it is nobody's, and ends.
fn guardian_killed() -> Result<()> {
    let mut gone = Command::new("true").spawn()?;
    let mark = gone.id().to_string();
    // A zombie is as dead.
    let stat = format!("/proc/{mark}/status");
    let started = Instant::now();
    while !std::fs::read_to_string(&stat)?.contains("State:\tZ") {
        ensure!(started.elapsed() < WATCHDOG, "it does not end");
        std::thread::yield_now();
    }
    for reaped in [false, true] {
        if reaped {
            gone.wait()?;
        }
        let out = recorded(&scratch().join("orphan.hop"), |record| {
            record.env("HOPSCOPE_GUARDED_BY", &mark);
        })?;
        let out = out.expect_code(2)?;
        ensure!(
            out.stderr.contains("was killed: nothing was attached to"),
            "{out:?}"
        );
    }
    // Another's mark, in an environment that was handed on.
    let out = recorded(&scratch().join("others.hop"), |record| {
        record.env("HOPSCOPE_GUARDED_BY", "1");
    })?;
    out.expect_code(0).map(drop)
}

/// Looking for what a killed recorder left finds what another one has open of its own target. That is not closed,
/// whatever that one's program is called.
fn killed_beside_another_name() -> Result<()> {
    let dir = scratch();
    let renamed = dir.join("renamed");
    std::fs::copy(hopscope_bin(), &renamed)?;
    let program = compile_c(&["steady.c"], &["-O2"])?;
    let start = || Target::spawn(Command::new(&program).stdout(Stdio::piped()));
    let (of_the_other, of_the_killed) = (start()?, start()?);

    let file = dir.join("other.hop");
    let mut record = Command::new(renamed);
    record.args(command(of_the_other.pid(), &["steady_mix"], &file).get_args());
    let other = Recording::start_command(record, &file)?;
    let file = dir.join("killed.hop");
    let recording = Recording::start(of_the_killed.pid(), &["steady_mix"], &file)?;
    kill(recording.recorder()?, Signal::SIGKILL)?;
    let (code, said) = recording.ended()?;
    ensure!(code == Some(2), "{code:?}: {said}");
    // Also when it is named.
    let named = other.recorder()?.to_string();
    let detach = hopscope(&["detach", "-p", &named])?.expect_code(0)?;
    ensure!(detach.stderr.contains("has no probes"), "{detach:?}");
    other.stop()?;

    for target in [of_the_other, of_the_killed] {
        let left = hopscope(&["detach", "-p", &target.pid().to_string()])?.expect_code(0)?;
        ensure!(left.stderr.contains("has no probes"), "{left:?}");
        target.signal(Signal::SIGTERM)?;
        let ended = target.output()?;
        let said = String::from_utf8_lossy(&ended.stdout);
        ensure!(ended.status.success() && said.contains("0 wrong"), "{said}");
    }
    Ok(())
}

fn heads(file: &Path) -> Result<Vec<BatchHead>> {
    Ok(TraceReader::open(file)?.heads().collect())
}

/// How often a process gave up its processor by itself.
fn rests_of(pid: i32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.context("a status")?.trim().parse()?)
}
