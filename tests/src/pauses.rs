//! What a summary says of the time for which a target was stopped, and of memory that it may not use.
use crate::recording::{Recording, Report, command, command_with_buffer, summary};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile_c, scratch};
use nix::sys::signal::Signal;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As in measure/process/src/fault.rs: in the stop of one thread, by attaching and detaching.
const FRAME_WRITTEN: &str = "3";
/// In the stop of all threads, by attaching.
const STATE_PATCHED: &str = "15";
/// In the stop of all threads, by detaching: entries are restored, nothing refers to a copy.
const RESTORED: &str = "19";
const CLEARED_GS: &str = "20";
/// How long a delayed point takes.
const DELAY_NS: u64 = 300_000_000;
/// A round in which the machine itself kept the target waiting tells nothing.
const ROUNDS: usize = 4;

pub(crate) fn register(suite: &mut Suite) {
    suite.case("pauses::of_every_stop", &[Requirement::Gcc], every_stop);
    suite
        .case("pauses::as_felt", &[Requirement::Gcc], felt)
        .alone();
    suite.case(
        "pauses::rings_under_a_memory_limit",
        &[Requirement::Gcc, Requirement::MemoryGroup],
        limited,
    );
}

fn workers(threads: usize) -> Result<Command> {
    let mut command = Command::new(compile_c(&["pauses/workers.c"], &["-O1", "-pthread"])?);
    command.arg(threads.to_string());
    Ok(command)
}

/// Whatever keeps the recorder waiting while a thread is stopped, in whichever stop: it is told.
fn every_stop() -> Result<()> {
    let ready = scratch().join("workers.ready");
    let target = Target::spawn_with_ready_file(workers(1)?.arg(&ready), &ready)?;
    for (point, at_detach) in [(FRAME_WRITTEN, true), (STATE_PATCHED, false)] {
        let mut record = command(
            target.pid(),
            &["workers*!work"],
            &scratch().join("stops.hop"),
        );
        record
            .args(["-d", "20ms"])
            .env("HOPSCOPE_DELAY_POINT", point);
        let said = summary(&run(&mut record)?.expect_code(0)?.stdout)?;
        for (phase, delayed) in [("attach", true), ("detach", at_detach)] {
            let stops = &said["stops"][phase][0];
            let ns = |name: &str| stops[name].as_u64().context("a number");
            let (longest, sum) = (ns("longest_ns")?, ns("sum_ns")?);
            ensure!(said[format!("{phase}_pause_ns")][0] == longest, "{said}");
            ensure!(!delayed || longest >= DELAY_NS, "{phase}, {point}: {stops}");
            ensure!(sum >= longest && ns("threads")? == 2, "{phase}: {stops}");
        }
    }
    Ok(())
}

/// A program that spins through 1,000 functions and watches its own clock.
struct Watcher {
    target: Target,
    /// Shared with it: which period this is, and the longest gap of each, in ticks.
    gaps: File,
    period: u64,
}

impl Watcher {
    fn start() -> Result<Watcher> {
        let program = compile_c(&["pauses/watcher.c"], &["-O1"])?;
        let shared = scratch().join("gaps");
        let target = Target::spawn(Command::new(program).arg(&shared))?;
        let gaps = File::options().read(true).write(true).open(shared)?;
        Ok(Watcher {
            target,
            gaps,
            period: 0,
        })
    }

    /// The longest gap since the last one was taken.
    fn take_ticks(&mut self) -> Result<u64> {
        let ended = self.period;
        self.period += 1;
        self.gaps.write_all_at(&self.period.to_ne_bytes(), 0)?;
        let mut word = [0; 8];
        self.gaps.read_exact_at(&mut word, 8 + 8 * ended)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// What it misses meanwhile by itself: the same program looks at it, and stops nothing.
    fn idle_ticks(&mut self) -> Result<u64> {
        self.take_ticks()?;
        let file = scratch().join("none.hop");
        let mut dry = command(self.target.pid(), &["watcher*!watched_*"], &file);
        run(dry.arg("--dry-run"))?.expect_code(0)?;
        self.take_ticks()
    }
}

/// What the target feels beyond what it misses anyway is said, wherever the recorder waits.
fn felt() -> Result<()> {
    let mut watcher = Watcher::start()?;
    for point in [FRAME_WRITTEN, STATE_PATCHED, RESTORED, CLEARED_GS] {
        let mut why = String::new();
        for _ in 0..ROUNDS {
            why = felt_with_a_delay(&mut watcher, point)?;
            if why.is_empty() {
                break;
            }
            println!("delayed at {point:?}: {why}");
        }
        ensure!(why.is_empty(), "delayed at {point:?}: {why}");
    }
    Ok(())
}

/// What is felt and not said; empty: nothing.
fn felt_with_a_delay(watcher: &mut Watcher, point: &str) -> Result<String> {
    let before = watcher.idle_ticks()?;
    let file = scratch().join("felt.hop");
    let mut record = command(watcher.target.pid(), &["watcher*!watched_*"], &file);
    record.env("HOPSCOPE_DELAY_POINT", point);
    watcher.take_ticks()?;
    let recording = Recording::start_command(record, &file)?;
    let attach = watcher.take_ticks()?;
    let said = recording.stop()?;
    let detach = watcher.take_ticks()?;
    let idle = before.max(watcher.idle_ticks()?);
    ensure!(said["functions"] == 1000, "{said}");
    let hz = said["tsc_hz"].as_f64().context("tsc_hz")?;
    let ns = |ticks: u64| (ticks as f64 * 1e9 / hz) as u64;
    let mut missing = Vec::new();
    for (phase, felt) in [("attach", attach), ("detach", detach)] {
        let longest = said["stops"][phase][0]["longest_ns"].as_u64();
        let longest = longest.context("longest_ns")?;
        let (felt, idle) = (ns(felt), ns(idle));
        println!("{phase}, {point:?}: felt {felt} ns, said {longest} ns, otherwise {idle} ns");
        // A stop is missing, or the resumed thread waited for a processor: that is not so long.
        if felt > longest + idle + DELAY_NS / 2 {
            missing.push(format!(
                "{phase}: {felt} ns felt, {longest} ns said, {idle} ns otherwise"
            ));
        }
    }
    let longest = ns(attach.max(detach));
    ensure!(longest >= DELAY_NS, "{point}: the target felt {longest} ns");
    Ok(missing.join("; "))
}

/// A control group of memory, which goes with this.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Result<Group> {
        let name = format!("hopscope-test-{}", std::process::id());
        let group = Group(Path::new("/sys/fs/cgroup/memory").join(name));
        std::fs::create_dir_all(&group.0)?;
        group.write("memory.limit_in_bytes", limit)?;
        Ok(group)
    }

    fn write(&self, file: &str, value: u64) -> Result<()> {
        let path = self.0.join(file);
        std::fs::write(&path, value.to_string()).with_context(|| path.display().to_string())
    }

    fn read(&self, file: &str) -> Result<u64> {
        Ok(std::fs::read_to_string(self.0.join(file))?.trim().parse()?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Rings of 60 threads are four times what the target may use.
fn limited() -> Result<()> {
    const LIMIT: u64 = 32 << 20;
    let group = Group::new(LIMIT)?;
    let ready = scratch().join("workers.ready");
    let target = Target::spawn_with_ready_file(workers(60)?.arg(&ready), &ready)?;
    group.write("cgroup.procs", target.pid() as u64)?;
    let file = scratch().join("limited.hop");
    let pattern = ["workers*!work"];
    let record = command_with_buffer(target.pid(), &pattern, &file, "2M");
    let recording = Recording::start_command(record, &file)?;
    target.signal(Signal::SIGUSR1)?;
    let status = target.wait()?;
    let said = recording.finished()?;
    ensure!(status.success(), "the target: {status}; {said}");
    let number = |name: &str| said[name].as_u64();
    ensure!(number("calls_unmeasured") == Some(0), "{said}");
    ensure!(number("threads_measured") == Some(60), "{said}");
    let failed = group.read("memory.failcnt")?;
    ensure!(failed == 0, "{failed} times at its limit");
    Report::read(&file)?.expect_balanced()
}
