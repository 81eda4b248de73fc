//! `-f inlined:…`: functions timed where the compiler put them into others.
use crate::recording::{Recording, Report, command, command_with_buffer, summary};
use crate::told::Told;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile, hopscope, hopscope_bin, scratch};
use nix::sys::signal::{Signal, kill};
use std::path::Path;
use std::process::{Command, Stdio};

const STEPS: [&str; 4] = [
    "packet",
    "inlined:lookup",
    "inlined:rewrite",
    "inlined:nf-*!handle",
];

const LEVELS: [&str; 6] = [
    "-O1",
    "-O2",
    "-O3",
    "-Os",
    "-O2 -fno-omit-frame-pointer",
    "-O2 -gdwarf-4 -fcf-protection",
];

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Clang, Gcc, Gxx};
    suite.case("inlined::steps_of_a_packet_gcc", &[Gcc], || steps("gcc"));
    suite.case("inlined::steps_of_a_packet_clang", &[Gcc, Clang], || {
        steps("clang")
    });
    suite.case("inlined::where_a_part_was_moved_out", &[Gcc], hoisted);
    suite.case("inlined::exceptions_gcc", &[Gcc, Gxx], || throws("g++"));
    suite.case("inlined::exceptions_clang", &[Gcc, Clang], || {
        throws("clang++")
    });
    suite.case("inlined::rounds_gcc", &[Gcc], || {
        rounds("gcc", &["-O2", "-O3", "-Os"])
    });
    suite.case("inlined::rounds_clang", &[Gcc, Clang], || {
        rounds("clang", &["-O1", "-O2", "-O3", "-Os"])
    });
    suite.case("inlined::merged_landing_pads", &[Gcc, Gxx], pads);
    suite.case("inlined::attached_and_detached", &[Gcc], attached);
    suite.case("inlined::loops_that_run_already", &[Gcc], loops);
    suite.case("inlined::loops_of_a_killed_recorder", &[Gcc], killed);
    suite.case("inlined::loops_too_short", &[Gcc], short_loops);
    suite.case("inlined::loops_with_setjmp", &[Gcc], setjmp);
    suite.case("inlined::signals_and_threads", &[Gcc], torture);
    suite
        .case("inlined::all_of_this_program", &[], all_of_ours)
        .soak();
    suite.case("inlined::computed_jumps", &[Gcc, Clang], computed_jumps);
    suite.case("inlined::nothing_to_be_found", &[Gcc], nothing);
}

fn built(compiler: &str, source: &str, flags: &str) -> Result<std::path::PathBuf> {
    let object = compile("gcc", &["inlined/callee.c"], &["-g", "-O2", "-c"])?;
    let object = object.to_str().context("a path in UTF-8")?;
    let mut all: Vec<&str> = flags.split(' ').collect();
    all.extend(["-g", "-Wall", object]);
    compile(compiler, &[&format!("inlined/{source}")], &all)
}

fn same(program: &Path, arguments: &[&str], patterns: &[&str]) -> Result<Report> {
    Ok(said_the_same(program, arguments, patterns)?.1)
}

/// What a program says unmeasured it says measured, and the file is whole: that, and the report.
pub(crate) fn said_the_same(
    program: &Path,
    arguments: &[&str],
    patterns: &[&str],
) -> Result<(String, Report)> {
    let alone = run(Command::new(program).args(arguments))?.expect_code(0)?;
    let file = scratch().join("inlined.hop");
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--no-calibration", "--max-overhead", "1e9"]);
    record.args(["--buffer", "64M", "-o"]).arg(&file);
    for pattern in patterns {
        record.args(["-f", pattern]);
    }
    let measured = run(record.arg("--").arg(program).args(arguments))?.expect_code(0)?;
    ensure!(
        measured.stdout == alone.stdout,
        "unmeasured: {}\nmeasured: {}",
        alone.stdout,
        measured.stdout
    );
    let report = Report::read(&file)?;
    report.expect_whole()?;
    // Each has a position of its own: none was taken for dead, and came back.
    ensure!(report.summary["revived"] == 0, "{}", report.summary);
    Ok((alone.stdout, report))
}

/// Of 20,000 packets a fifth has no time left, and half of the others is odd.
fn steps(compiler: &str) -> Result<()> {
    for flags in LEVELS {
        let program = built(compiler, "nf.c", flags)?;
        let report = same(&program, &["20000"], &STEPS).with_context(|| flags.to_owned())?;
        ensure!(report.refused.is_empty(), "{flags}: {:?}", report.refused);
        let entries = |name: &str| report.entries(&format!("{name} [inlined in packet]"));
        let counted = [
            report.entries("packet"),
            entries("handle"),
            entries("rewrite"),
        ];
        ensure!(
            counted == [20_000, 20_000, 24_000],
            "{flags}: packets, handled, rewritten: {counted:?}"
        );
        // clang -Os asks for a packet's time amid the code of the look-up.
        let looked_up = entries("lookup");
        let split = compiler == "clang" && flags == "-Os" && looked_up == 20_000;
        ensure!(
            looked_up == 16_000 || split,
            "{flags}: {looked_up} looked up"
        );
    }
    Ok(())
}

/// A constant of its own is loaded before the loop that it is called in.
fn hoisted() -> Result<()> {
    for flags in LEVELS {
        let all: Vec<&str> = flags.split(' ').chain(["-g", "-Wall"]).collect();
        let program = compile("gcc", &["inlined/hoisted.c"], &all)?;
        let report = same(&program, &["20000"], &["inlined:classify"])?;
        let calls = report.entries("classify [inlined in forward]");
        ensure!(calls == 20_000, "{flags}: {calls} calls");
    }
    Ok(())
}

/// A third of the calls in `filter` leaves by an exception, past the function around.
fn throws(compiler: &str) -> Result<()> {
    for flags in &LEVELS[..5] {
        let program = built(compiler, "throws.cpp", flags)?;
        let report = same(&program, &["3000"], &["inlined:check"])?;
        let functions = report.functions.iter();
        let of = |name: &str, part: &str| {
            let its = functions
                .clone()
                .filter(|(f, _)| f.contains(name) && f.contains("[inlined") == (name == "check"));
            its.map(|(_, balance)| balance[part]).sum::<u64>()
        };
        ensure!(
            of("filter", "unwound") == 1000 && of("filter", "exits") == 2000,
            "{flags}: {:?}",
            report.functions
        );
        ensure!(
            of("check", "exits") >= 2000 && of("caught", "exits") == 3000,
            "{flags}: {:?}",
            report.functions
        );
        // Where the function around goes on, an exception is a way out: nothing is left open.
        let program = built(compiler, "catches.cpp", flags)?;
        let report = same(&program, &["3000"], &["inlined:parse", "inlined:lenient"])?;
        let inlined = report
            .functions
            .iter()
            .filter(|(f, _)| f.contains("[inlined"));
        let of = |part: &str| inlined.clone().map(|(_, b)| b[part]).sum::<u64>();
        ensure!(
            of("unwound") == 0 && of("exits") == of("entries") && of("exits") >= 9000,
            "{flags}: {:?}",
            report.functions
        );
    }
    Ok(())
}

/// Wherever it is inlined: the compiler makes copies of functions, too.
fn calls_of(report: &Report, name: &str) -> u64 {
    let functions = report.functions.iter();
    let its = functions.filter(|(f, _)| f.starts_with(name) && f.contains("[inlined in "));
    its.map(|(_, balance)| balance["entries"]).sum()
}

/// One call is one, whatever control passes amid it; and four copies in an unrolled loop are four.
fn rounds(compiler: &str, levels: &[&str]) -> Result<()> {
    for flags in levels {
        let program = built(compiler, "rounds.c", flags)?;
        let report = same(&program, &["3000"], &["inlined:search", "inlined:mix"])?;
        let calls = [calls_of(&report, "search"), calls_of(&report, "mix")];
        ensure!(calls == [12_000; 2], "{flags}: {calls:?}");
    }
    Ok(())
}

/// A third of the first calls throws, and as many of the second ones: 5,000 calls for 3,000 rounds.
fn pads() -> Result<()> {
    for flags in ["-O1", "-O2", "-O3"] {
        let program = built("g++", "cleans.cpp", flags)?;
        let report = same(&program, &["3000"], &["inlined:parse"])?;
        let calls = calls_of(&report, "parse");
        ensure!(calls == 5000, "{flags}: {calls} calls");
    }
    Ok(())
}

fn running(program: &Path) -> Result<Target> {
    Target::spawn(Command::new(program).stdout(Stdio::piped()))
}

fn came_to_what_it_should(target: Target) -> Result<()> {
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(
        out.status.success() && said.trim_end().ends_with("right"),
        "{}, it says {said:?}",
        out.status
    );
    Ok(())
}

fn attached() -> Result<()> {
    let target = running(&built("gcc", "nf.c", "-O2")?)?;
    let file = scratch().join("attached.hop");
    let mut entries = 0;
    for _ in 0..3 {
        let mut record = command_with_buffer(target.pid(), &STEPS, &file, "64M");
        let out = run(record.args(["-d", "100ms"]))?.expect_code(0)?;
        let said = summary(&out.stdout)?;
        let inlined = &said["inlined"];
        ensure!(
            inlined["places"] == 4 && inlined["refused"] == 0,
            "{inlined}"
        );
        ensure!(
            said["functions"] == 4 && inlined["instructions"].as_u64() > Some(50),
            "{said}"
        );
        let report = Report::read(&file)?;
        report.expect_balanced()?;
        entries += report.entries("rewrite [inlined in packet]");
    }
    // In any of them: a busy machine may give it no processor in one.
    ensure!(entries > 0, "nothing was recorded");
    came_to_what_it_should(target)
}

const LOOP: [&str; 4] = [
    "worker",
    "inlined:next",
    "inlined:lookup",
    "inlined:rewrite",
];

/// Threads that are within a function, which never returns, come into its copy by its loop, and leave it again, so that
/// nothing of it stays.
fn loops() -> Result<()> {
    for flags in ["-O1", "-O2", "-Os -fno-omit-frame-pointer"] {
        let target = running(&built("gcc", "loop.c", &format!("{flags} -pthread"))?)?;
        let file = scratch().join("loops.hop");
        let (mut looked_up, mut threads) = (0, 0);
        for _ in 0..3 {
            let mut record = command_with_buffer(target.pid(), &LOOP, &file, "64M");
            let out = run(record.args(["-d", "100ms"]))?.expect_code(0)?;
            let said = summary(&out.stdout)?;
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.pid()))?;
            ensure!(!maps.contains("hopscope-code"), "{flags}: {said}\n{maps}");
            let report = Report::read(&file)?;
            report.expect_balanced()?;
            let entries = |name: &str| report.entries(&format!("{name} [inlined in worker]"));
            let (now, rewritten) = (entries("lookup"), entries("rewrite"));
            // Of ten rounds eight look up, and thirteen times it is rewritten; the first and the last one of a thread
            // may be cut.
            let lost = said["lost"].as_u64().context("lost")?;
            ensure!(
                lost > 0 || (8 * rewritten).abs_diff(13 * now) <= 4 * 8 * 13,
                "{flags}: {now} looked up, {rewritten} rewritten"
            );
            ensure!(
                report.entries("worker") == 0,
                "{flags}: it was called before"
            );
            // Whoever comes amid one enters it.
            let next = &report.functions["next [inlined in worker]"];
            ensure!(next["ends_open_at_start"] == 0, "{flags}: {next:?}");
            looked_up += now;
            threads = threads.max(said["threads_measured"].as_u64().context("threads")?);
        }
        ensure!(
            looked_up > 0 && threads == 2,
            "{flags}: {looked_up} looked up in {threads} threads"
        );
        came_to_what_it_should(target)?;
    }
    Ok(())
}

/// What its guardian puts back leads out of the copies, too.
fn killed() -> Result<()> {
    let target = running(&built("gcc", "loop.c", "-O2 -pthread")?)?;
    let file = scratch().join("killed.hop");
    let recording = Recording::start(target.pid(), &LOOP, &file)?;
    kill(recording.recorder()?, Signal::SIGKILL)?;
    recording.ended()?;
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.pid()))?;
    ensure!(
        !maps.contains("hopscope-rings") && !maps.contains("hopscope-code"),
        "{maps}"
    );
    came_to_what_it_should(target)
}

/// Whose jumps reach no copy: that is said.
fn short_loops() -> Result<()> {
    let target = running(&built("gcc", "short.c", "-O2")?)?;
    let file = scratch().join("short.hop");
    let mut record = command(target.pid(), &["inlined:step"], &file);
    let out = run(record.args(["-d", "100ms"]))?.expect_code(0)?;
    let notes = summary(&out.stdout)?["notes"].to_string();
    ensure!(
        notes.contains("spins ran when hopscope attached, with loops that do not lead"),
        "{notes}"
    );
    ensure!(
        Report::read(&file)?.entries("step [inlined in spins]") == 0,
        "it was measured"
    );
    came_to_what_it_should(target)
}

/// A jump buffer refers to where it was made, and shows it to nobody: none may be made in a copy that goes.
fn setjmp() -> Result<()> {
    let mut program = Told::start(&mut Command::new(built("gcc", "setjmp.c", "-O2")?))?;
    let file = scratch().join("setjmp.hop");
    for _ in 0..2 {
        let functions = ["inlined:lookup", "check"];
        let recording = Recording::start(program.pid(), &functions, &file)?;
        jumps(&mut program)?;
        recording.stop()?;
        let checked = Report::read(&file)?.entries("check");
        ensure!(checked > 0, "nothing was recorded");
        jumps(&mut program)?;
    }
    program.target.signal(Signal::SIGTERM)?;
    let said = program.line()?;
    ensure!(said.ends_with("right"), "it says {said:?}");
    ensure!(program.target.wait()?.success());
    Ok(())
}

/// Until it has: it may get no processor for longer than a recording takes.
fn jumps(program: &mut Told) -> Result<()> {
    program.target.signal(Signal::SIGUSR1)?;
    let said = program.line()?;
    ensure!(said == "jumped", "it says {said:?}");
    Ok(())
}

/// Handlers that interrupt inlined code, and run the same; threads that come and go.
fn torture() -> Result<()> {
    let headers = crate::headers("torture")?;
    let sources = [
        "torture/torture.c",
        "torture/work.c",
        "torture/simple_modes.c",
        "torture/thread_modes.c",
        "torture/waiting_mode.c",
    ];
    // What work calls is inlined into it, but for what calls itself; itself it lies in a file of its own.
    let flags = [
        "-O2",
        "-g",
        "-fno-jump-tables",
        "-DPART=static inline",
        "-pthread",
        "-ldl",
        &headers,
    ];
    let program = compile("gcc", &sources, &flags)?;
    for mode in ["signalling", "threading", "forking"] {
        let mut start = Command::new(&program);
        let target = Target::spawn(start.arg(mode).stdout(Stdio::piped()))?;
        let file = scratch().join(format!("{mode}.hop"));
        let mut entries = 0;
        for _ in 0..3 {
            let mut record = command(target.pid(), &["torture*!*work*", "inlined:work_*"], &file);
            run(record.args(["-d", "100ms"]))?.expect_code(0)?;
            let report = Report::read(&file)?;
            report.expect_balanced()?;
            entries += report.entries("work_switch [inlined in work]");
        }
        ensure!(entries > 0, "{mode}: nothing was recorded");
        target.signal(Signal::SIGTERM)?;
        let out = target.output()?;
        let said = String::from_utf8_lossy(&out.stdout);
        ensure!(
            out.status.success() && said.trim_end().ends_with(" 0 wrong, gs 0"),
            "{mode}: {}, it says {said:?}",
            out.status
        );
    }
    Ok(())
}

/// Tens of thousands of places, nested as deep as Rust has them.
fn all_of_ours() -> Result<()> {
    let file = scratch().join("info.hop");
    let ours = hopscope_bin();
    let words = ["record", "--no-calibration", "-f", "main", "-o"];
    let file_name = file.to_str().context("a path in UTF-8")?;
    let words = [&words[..], &[file_name, "--", "/bin/true"]].concat();
    // A file to be shown; what is recorded in it does not matter.
    let made = hopscope(&words)?;
    let shown = match made.code {
        Some(0) => ["info", file_name],
        _ => ["help", "record"],
    };
    let report = same(&ours, &shown, &["hopscope!inlined:*"])?;
    let came_to = report.functions.values().filter(|b| b["entries"] > 0);
    let came_to = came_to.count();
    ensure!(came_to > 100, "{came_to} functions were called");
    Ok(())
}

/// What a jump table leads to, and what holds one; and what is inlined deeper than there is a frame.
fn computed_jumps() -> Result<()> {
    for (compiler, flags) in [
        ("gcc", "-O1"),
        ("gcc", "-O2"),
        ("clang", "-O2"),
        ("gcc", "-Os"),
    ] {
        let program = built(compiler, "jumps.c", flags)?;
        let report = same(&program, &[], &["inlined:*"])?;
        let why = |name: &str| report.refused.get(name).map_or("", String::as_str);
        ensure!(
            why("third [inlined in deep]").starts_with("the frame around it is too small"),
            "{flags}: {:?}",
            report.refused
        );
        let whole = |name: &str, calls: std::ops::RangeInclusive<u64>| {
            let balance = report.functions.get(name);
            let balance = balance.with_context(|| format!("{flags}: no {name}"))?;
            ensure!(
                calls.contains(&balance["entries"]) && balance["entries"] == balance["exits"],
                "{compiler} {flags}: {name}: {balance:?}"
            );
            Ok(())
        };
        whole("before [inlined in jumps]", 1000..=1000)?;
        // Of three ways one is none of its.
        whole("way [inlined in jumps]", 600..=700)?;
        // gcc -O2 has the end of the loop apart.
        whole("steps [inlined in switches]", 2000..=3000)?;
        whole("first [inlined in deep]", 1000..=1000)?;
    }
    Ok(())
}

/// With a command, an error of ours is 125.
fn nothing() -> Result<()> {
    let program = built("gcc", "nf.c", "-O2")?;
    let program = program.to_str().context("a path in UTF-8")?;
    let bare = compile("gcc", &["inlined/nf.c", "inlined/callee.c"], &["-O2"])?;
    let bare = bare.to_str().context("a path in UTF-8")?;
    let record = |words: &[&str]| {
        let file = scratch().join("nothing.hop");
        let file = file.to_str().context("a path in UTF-8")?;
        let words = [&["record", "--no-calibration", "-o", file], words].concat();
        hopscope(&words)?.expect_code(125)
    };
    for (words, expected) in [
        (
            &["-f", "inlined:nf*!nobody", "--", program, "1"][..],
            "in which no such function is inlined",
        ),
        (
            &["-f", "inlined:nf*!lookup", "--", bare, "1"],
            "compile with -g",
        ),
        (
            &["-f", "inlined:lookup", "--budget", "5%", "--", program, "1"],
            "--budget",
        ),
        (
            &["-f", "packet", "-x", "inlined:lookup", "--", program, "1"],
            "for -f of record and top alone",
        ),
    ] {
        let out = record(words)?;
        ensure!(out.stderr.contains(expected), "{words:?}: {}", out.stderr);
    }
    // Before it looks for any process.
    let checked = [
        "record",
        "-f",
        "inlined:lookup",
        "--check-cost=1s",
        "-d",
        "1s",
        "-p",
        "1",
    ];
    let out = hopscope(&checked)?.expect_code(2)?;
    ensure!(
        out.stderr.contains("--check-cost switches"),
        "{}",
        out.stderr
    );
    let out = hopscope(&["functions", "-b", program, "-f", "inlined:lookup"])?.expect_code(2)?;
    ensure!(
        out.stderr.contains("for -f of record and top alone"),
        "{}",
        out.stderr
    );
    Ok(())
}
