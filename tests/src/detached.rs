//! Programs that a detach must leave as they were, and recordable again, although something is suspended, gone or
//! different by then.
use crate::recording::{Recording, Report, command, summary};
use crate::torture::kills::FAULT_POINTS;
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile, compile_c, counts, scratch};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Gxx, Root};
    suite.case("detached::stacks_in_the_main_frame", &[Gcc], || {
        coroutines("frame")
    });
    suite.case("detached::stacks_beside_the_control_block", &[Gcc], || {
        coroutines("pool")
    });
    suite.case("detached::old_words_below_the_stack", &[Gcc], stale_below);
    suite.case("detached::more_threads_than_rings", &[Gcc], many_threads);
    suite.case(
        "detached::what_handlers_left_on_their_stack",
        &[Gcc],
        alternate_stack,
    );
    suite.case("detached::changed_user", &[Gcc, Root], changed_user);
    suite.case("detached::waits_for_a_vforked_child", &[Gcc], vforked);
    suite.case("detached::says_that_it_waits", &[Gcc], says_why_it_waits);
    // Alone: a processor is taken from all others, too.
    suite
        .case(
            "detached::waits_for_a_thread_without_a_processor",
            &[Gcc, Root],
            || starved(false),
        )
        .alone();
    suite
        .case(
            "detached::attach_waits_for_a_thread_without_a_processor",
            &[Gcc, Root],
            || starved(true),
        )
        .alone()
        // Once in nine runs the scheduler let it run five times.
        .soak();
    suite.case("detached::thread_that_steps_itself", &[Gcc], steps_itself);
    suite.case("detached::main_thread_ended", &[Gcc], main_thread_ended);
    suite.case("detached::child_of_a_debugged_parent", &[Gcc], forked);
    suite.case("detached::unread_module", &[Gcc, Gxx], unread_module);
}

struct Spoken {
    target: Target,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Spoken {
    fn start(program: &str, flags: &[&str], arguments: &[&str]) -> Result<Spoken> {
        let program = compile_c(&[program], flags)?;
        let mut start = Command::new(program);
        let mut target = Target::spawn(start.args(arguments).stdout(Stdio::piped()))?;
        let stdout = target.child().stdout.take().context("stdout")?;
        Ok(Spoken {
            target,
            lines: BufReader::new(stdout).lines(),
        })
    }

    fn record(&self, pattern: &str, name: &str) -> Result<(Recording, PathBuf)> {
        let file = scratch().join(name);
        let recording = Recording::start(self.target.pid(), &[pattern], &file)?;
        Ok((recording, file))
    }

    fn line(&mut self) -> Result<String> {
        let line = self.lines.next().context("it ended")?;
        Ok(line?)
    }

    /// Asks for the next round, and hears that it came to its end.
    fn round(&mut self, n: u32) -> Result<()> {
        self.target.signal(Signal::SIGUSR1)?;
        let line = self.line()?;
        ensure!(line == format!("round {n}"), "{line}");
        Ok(())
    }
}

/// The second round returns through a call that began in a copy and was suspended when the copies were taken away.
fn coroutines(stacks: &str) -> Result<()> {
    let mut program = Spoken::start("detached/coroutines.c", &["-O1"], &[stacks])?;
    let (recording, _) = program.record("measured", "coroutines.hop")?;
    program.round(1)?;
    recording.stop()?;
    program.round(2)?;
    program.round(3)
}

/// What the search meets first is an old word that means nothing; the return address in use lies pages above.
fn stale_below() -> Result<()> {
    let mut program = Spoken::start("detached/stale_below.c", &["-O1"], &[])?;
    let (recording, _) = program.record("measured*", "stale-below.hop")?;
    program.round(1)?;
    let summary = recording.stop()?;
    let maps = fs::read_to_string(format!("/proc/{}/maps", program.target.pid()))?;
    ensure!(
        maps.contains("hopscope-code"),
        "the copies are gone: {summary}"
    );
    program.round(2)?;
    program.round(3)
}

/// Threads without a ring are not measured, and keep nothing of the recording: it can be recorded again.
fn many_threads() -> Result<()> {
    let program = compile_c(&["detached/many_threads.c"], &["-O2", "-pthread"])?;
    let target = Target::spawn(Command::new(program).stdout(Stdio::piped()))?;
    let maps = format!("/proc/{}/maps", target.pid());
    for round in 0..3 {
        let file = scratch().join("many.hop");
        let mut record = command(target.pid(), &["measured"], &file);
        let out = run(record.args(["--threads", "64", "-d", "100ms"]))?.expect_code(0)?;
        let said = summary(&out.stdout)?;
        ensure!(
            said["calls_unmeasured"].as_u64() > Some(0)
                && said["threads_measured"].as_u64() > Some(32),
            "round {round}: {said}"
        );
        let maps = fs::read_to_string(&maps)?;
        let stays = ["hopscope-code", "hopscope-rings"].map(|name| maps.contains(name));
        ensure!(stays == [false; 2], "round {round}: {said}\n{maps}");
    }
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    ensure!(out.status.success(), "{out:?}");
    Ok(())
}

/// Frames of handlers that have returned name places in probes; nobody will go on there.
fn alternate_stack() -> Result<()> {
    let program = compile_c(&["detached/alternate_stack.c"], &["-O2", "-pthread"])?;
    let target = Target::spawn(&mut Command::new(program))?;
    for round in 0..counts().pick(12, 200) {
        let file = scratch().join("alternate.hop");
        let mut record = command(target.pid(), &["measured", "leaf"], &file);
        let out = run(record.args(["-d", "100ms"]))?.expect_code(0)?;
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid()))?;
        let stays = maps.contains("memfd:hopscope-rings");
        ensure!(!stays, "round {round}: {}\n{maps}", out.stdout);
    }
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    ensure!(out.status.success(), "{out:?}");
    Ok(())
}

/// What the copies need goes although the process is another user's by then, and a thread is still in one.
fn changed_user() -> Result<()> {
    let mut program = Spoken::start("detached/changes_user.c", &["-O1", "-pthread"], &[])?;
    let (recording, _) = program.record("changes_user-*!*", "changes-user.hop")?;
    program.round(1)?;
    let summary = recording.stop()?;
    let maps = fs::read_to_string(format!("/proc/{}/maps", program.target.pid()))?;
    ensure!(
        maps.contains("hopscope-code"),
        "nobody is in a copy: {summary}"
    );
    ensure!(!maps.contains("hopscope-rings"), "{summary}\n{maps}");
    let (recording, file) = program.record("work", "again.hop")?;
    program.round(2)?;
    recording.stop()?;
    ensure!(Report::read(&file)?.entries("work") == 100);
    Ok(())
}

/// The child lives until it was said that it is waited for.
fn says_why_it_waits() -> Result<()> {
    let end = scratch().join("end");
    let end_name = end.to_str().context("a path in UTF-8")?;
    let mut program = Spoken::start("detached/vforks.c", &["-O1", "-pthread"], &[end_name])?;
    let (said, stderr) = std::io::pipe()?;
    let file = scratch().join("waits.hop");
    let mut record = command(program.target.pid(), &["work"], &file);
    record.stderr(stderr);
    let recording = Recording::start_command(record, &file)?;
    program.target.signal(Signal::SIGUSR1)?;
    let line = program.line()?;
    ensure!(line == "vforked", "{line}");
    recording.signal(Signal::SIGINT)?;
    let mut lines = BufReader::new(said).lines();
    let pid = program.target.pid();
    let words = format!("waiting for process {pid}: its thread");
    let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(&words)));
    let found = found.context("it waited silently")??;
    ensure!(found.contains("waits for a vforked child ("), "{found}");
    fs::write(&end, "")?;
    let summary = recording.finished()?;
    ensure!(
        !summary["notes"].to_string().contains("restored"),
        "{summary}"
    );
    let again = lines.filter(|line| line.as_ref().is_ok_and(|line| line.contains(&words)));
    ensure!(again.count() == 0, "said more than once");
    Ok(())
}

/// At an attach or at a detach. The scheduler may let the thread run all the same, and then nothing is waited for.
fn starved(at_attach: bool) -> Result<()> {
    for _ in 0..TRIES {
        if is_waited_for(at_attach)? {
            return Ok(());
        }
    }
    bail!("the thread had a processor {TRIES} times")
}

const TRIES: usize = 5;

/// The others run until it was said what is waited for, and a while longer.
fn is_waited_for(at_attach: bool) -> Result<bool> {
    let end = scratch().join("has-a-processor");
    let end_name = end.to_str().context("a path in UTF-8")?;
    let mut program = Spoken::start("detached/starved.c", &["-O1", "-pthread"], &[end_name])?;
    let pid = program.target.pid();
    let (said, stderr) = std::io::pipe()?;
    let file = scratch().join("starved.hop");
    let mut record = command(pid, &["work"], &file);
    record.stderr(stderr);
    let record = match at_attach {
        true => {
            program.round(1)?;
            record.args(["-d", "100ms"]);
            std::thread::spawn(move || Recording::start_command(record, &file))
        }
        false => {
            let recording = Recording::start_command(record, &file)?;
            program.round(1)?;
            recording.signal(Signal::SIGINT)?;
            std::thread::spawn(move || Ok(recording))
        }
    };
    let mut lines = BufReader::new(said).lines();
    let words = format!("waiting for process {pid}: its thread");
    let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(&words)));
    if let Some(found) = &found {
        let found = found.as_ref().map_or("", |line| line.as_str());
        ensure!(found.contains("gets no processor"), "{found}");
        program.round(2)?;
        program.round(3)?;
        fs::write(&end, "")?;
    }
    let recording = record.join().expect("it does not panic")?;
    let summary = recording.finished()?;
    if found.is_none() {
        return Ok(false);
    }
    ensure!(
        !summary["notes"].to_string().contains("restored"),
        "{summary}"
    );
    program.round(4)?;
    Ok(true)
}

/// The others run while one thread cannot be stopped, and then everything is put back.
fn vforked() -> Result<()> {
    let mut program = Spoken::start("detached/vforks.c", &["-O1", "-pthread"], &[])?;
    let (recording, _) = program.record("work", "vforks.hop")?;
    program.target.signal(Signal::SIGUSR1)?;
    let line = program.line()?;
    ensure!(line == "vforked", "{line}");
    let summary = recording.stop()?;
    ensure!(
        !summary["notes"].to_string().contains("restored"),
        "{summary}"
    );
    Ok(())
}

/// Its trap flag is not in the system calls that it makes for us, where SIGTRAP is blocked: where the recorder is killed
/// behind one, the step to the next instruction would end it.
fn steps_itself() -> Result<()> {
    let mut program = Spoken::start("detached/steps_itself.c", &["-O1"], &[])?;
    program.round(1)?;
    let (recording, file) = program.record("work", "steps.hop")?;
    program.round(2)?;
    recording.stop()?;
    ensure!(Report::read(&file)?.entries("work") > 0);
    for (point, n) in (1..=FAULT_POINTS).zip(3..) {
        let file = scratch().join("killed.hop");
        let mut record = command(program.target.pid(), &["work"], &file);
        record.args(["-d", "20ms"]);
        let killed = run(record.env("HOPSCOPE_FAULT_POINT", point.to_string()))?;
        ensure!(killed.code != Some(0), "not killed at {point}: {killed:?}");
        let round = program.round(n);
        round.with_context(|| format!("killed at fault point {point}"))?;
    }
    Ok(())
}

/// Of a process whose main thread has ended `/proc/PID/maps` and its like are empty.
fn main_thread_ended() -> Result<()> {
    let program = Spoken::start("detached/main_ended.c", &["-O1", "-pthread"], &[])?;
    let pid = program.target.pid();
    for name in ["ended.hop", "ended-again.hop"] {
        let file = scratch().join(name);
        let out = run(command(pid, &["work"], &file).args(["-d", "200ms"]))?.expect_code(0)?;
        ensure!(Report::read(&file)?.entries("work") > 0, "{}", out.stdout);
    }
    Ok(())
}

/// A debugger's breakpoint in the parent's entry gives that one back. The child's is our jump until the detach.
fn forked() -> Result<()> {
    let mut program = Spoken::start("detached/forks.c", &["-O1"], &[])?;
    let work = program.line()?;
    let work = u64::from_str_radix(work.trim_start_matches("0x"), 16)?;
    let memory = |pid: i32| {
        File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
    };
    let parent = memory(program.target.pid())?;
    let mut original = [0u8; 5];
    parent.read_exact_at(&mut original, work)?;
    let (recording, _) = program.record("work", "forks.hop")?;
    program.target.signal(Signal::SIGUSR1)?;
    let child: i32 = program.line()?.parse()?;
    parent.write_all_at(&[0xcc], work)?;
    let given_back = [&[0xcc], &original[1..]].concat();
    let started = Instant::now();
    loop {
        let mut now = [0u8; 5];
        parent.read_exact_at(&mut now, work)?;
        if now[..] == given_back {
            break;
        }
        if started.elapsed() > WATCHDOG {
            bail!("the entry was not given back: {now:x?}");
        }
        std::thread::yield_now();
    }
    let summary = recording.stop()?;
    let mut now = [0u8; 5];
    memory(child)?.read_exact_at(&mut now, work)?;
    ensure!(now == original, "the child's entry is {now:x?}: {summary}");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), Signal::SIGTERM)?;
    let line = program.line()?;
    ensure!(line == "child: signal 0", "{line}");
    Ok(())
}

/// What cannot be read may raise exceptions: nothing that they could pass through is measured.
fn unread_module() -> Result<()> {
    let shared = ["-O1", "-fPIC", "-shared"];
    let plug_in = compile("g++", &["unwound/plug_in.cpp"], &shared)?;
    let program = compile("gcc", &["unwound/loads.c"], &["-O1", "-rdynamic"])?;
    let folder = scratch();
    // A file with holes is not read: it may say that it is of any size.
    let sparse = folder.join("unread.so");
    fs::copy(plug_in, &sparse)?;
    File::options()
        .write(true)
        .open(&sparse)?
        .set_len(256 << 20)?;
    let mut start = Command::new(program);
    let mut target = Target::spawn(start.arg(&sparse).stdin(Stdio::piped()))?;
    let mut input = target.child().stdin.take().context("its input")?;
    input.write_all(b"load\n")?;
    let maps = format!("/proc/{}/maps", target.pid());
    let started = Instant::now();
    while !fs::read_to_string(&maps)?.contains("unread.so") {
        ensure!(started.elapsed() < WATCHDOG, "it does not load its plug-in");
        std::thread::yield_now();
    }
    let file = folder.join("unread.hop");
    let record = run(command(target.pid(), &["loads-*!through"], &file).args(["-d", "200ms"]))?;
    ensure!(
        record.stderr.contains("cannot be read") || record.stdout.contains("cannot be read"),
        "{record:?}"
    );
    input.write_all(b"call\n")?;
    ensure!(target.wait()?.success());
    Ok(())
}

/// Only what hangs waits this long.
const WATCHDOG: Duration = Duration::from_secs(30);
