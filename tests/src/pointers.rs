//! `-f calls:…`: calls through pointers, timed where they are made and named by what they call.
use crate::inlined::said_the_same as same;
use crate::recording::{Recording, Report, command, command_with_buffer};
use crate::told::Told;
use crate::top::growing::Top;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, compile, compile_c, hopscope, scratch};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Clang, Fsgsbase, Gcc, Gxx};
    let gcc = &[Gcc, Fsgsbase];
    suite.case("pointers::operands_of_every_kind", gcc, operands);
    suite.case("pointers::compiled_by_gcc", gcc, || compiled("gcc"));
    suite.case(
        "pointers::compiled_by_clang",
        &[Gcc, Clang, Fsgsbase],
        || compiled("clang"),
    );
    suite.case("pointers::calls_by_name", &[Gcc, Clang, Fsgsbase], by_name);
    suite.case("pointers::exceptions_gcc", &[Gxx, Fsgsbase], || {
        throws("g++")
    });
    suite.case("pointers::exceptions_clang", &[Clang, Fsgsbase], || {
        throws("clang++")
    });
    suite.case("pointers::of_a_loop_that_runs_already", gcc, running_loop);
    suite.case("pointers::code_of_later_files_or_none", gcc, made);
    suite.case("pointers::a_file_that_was_replaced", gcc, replaced);
    suite.case("pointers::names_of_a_killed_recorder", gcc, killed);
    suite.case("pointers::names_in_a_flight_recorders_files", gcc, flight);
    suite.case("pointers::forked_children", gcc, forked);
    suite.case("pointers::files_that_a_child_loads", gcc, loaded_by_a_child);
    suite.case("pointers::of_all_those_that_call", gcc, who_calls);
    suite.case("pointers::in_top", gcc, in_top);
    suite.case("pointers::refused_in_one_line", gcc, refused);
}

/// The callee's calls by `caller`, as they are shown.
fn by(callee: &str, caller: &str) -> String {
    format!("{callee} [called by {caller}]")
}

/// A name and a number a line.
fn operands() -> Result<()> {
    for flags in ["-O2", "-O2 -no-pie", "-O0 -Wl,-z,now"] {
        let flags: Vec<&str> = flags.split(' ').collect();
        let program = compile_c(&["pointers/operands.S", "pointers/operands.c"], &flags)?;
        let (said, report) = same(&program, &["1000"], &["calls:operands"])?;
        ensure!(said.lines().count() == 6, "{said}");
        for line in said.lines() {
            let (callee, count) = line.split_once(' ').context("a name and a number")?;
            let calls = report.entries(&by(callee, "operands"));
            ensure!(calls.to_string() == count, "{callee}: {calls} of {count}");
        }
        ensure!(
            report.entries(&by("[unknown callee]", "operands")) == 0,
            "{:?}",
            report.functions
        );
    }
    Ok(())
}

const LEVELS: [&str; 6] = [
    "-O0",
    "-O1",
    "-O2 -fcf-protection",
    "-O3 -fno-omit-frame-pointer",
    "-Os -no-pie",
    "-O2 -fno-plt -fno-asynchronous-unwind-tables -funwind-tables",
];

/// As the program counts them.
const CALLEES: [&str; 5] = ["plain", "vectors", "pairs", "larges", "any"];

fn program(compiler: &str, flags: &str) -> Result<PathBuf> {
    let all: Vec<&str> = flags.split(' ').chain(["-g", "-Wall"]).collect();
    compile(compiler, &["pointers/calls.c"], &all)
}

/// The sum, then how often each was called; of those by `vectors` and by itself the callers know nothing.
fn counted(said: &str) -> Result<Vec<u64>> {
    let counts = said.split_whitespace().skip(1);
    Ok(counts.map(str::parse).collect::<Result<_, _>>()?)
}

fn compiled(compiler: &str) -> Result<()> {
    for flags in LEVELS {
        let program = program(compiler, flags)?;
        let patterns = ["calls:poll", "calls:deeper", "calls:aligned", "vectors"];
        let (said, report) = same(&program, &["2000"], &patterns)?;
        let mut counted = counted(&said)?;
        // What `vectors` calls by its name is no call through a pointer.
        counted[0] -= counted[1];
        for (callee, count) in CALLEES.iter().zip(&counted) {
            let calls = report.entries(&by(callee, "poll"));
            ensure!(
                calls == *count,
                "{flags}: {callee}: {calls} of {count}: {:?}",
                report.functions
            );
        }
        let of_aligned = report.entries(&by("from_aligned", "aligned"));
        ensure!(of_aligned == counted[6], "{flags}: {of_aligned}");
        ensure!(
            report.entries("vectors") == counted[1],
            "{flags}: measured itself, too: {}",
            report.entries("vectors")
        );
        let deeper = [
            report.entries(&by("deeper", "poll")),
            report.entries(&by("deeper", "deeper")),
            report.entries("deeper"),
        ];
        // Of an inlined step the compiler makes no call.
        ensure!(
            deeper == [2000, 6000, 8000],
            "{flags}: {deeper:?} of {}",
            counted[5]
        );
    }
    Ok(())
}

/// Functions of the program's own, and of libraries, by stubs and by slots.
fn by_name() -> Result<()> {
    for (compiler, flags) in [("gcc", LEVELS[1]), ("gcc", LEVELS[5]), ("clang", LEVELS[0])] {
        let program = program(compiler, flags)?;
        let patterns = [
            "calls:vectors->plain",
            "calls:rounds->po*",
            "calls:main->*to*",
            "calls:main->answer",
            "calls:answer->printf",
            "calls:main->p*",
        ];
        let (said, report) = same(&program, &["500"], &patterns)?;
        let counted = counted(&said)?;
        let polled = report.entries(&by("poll", "rounds"));
        ensure!(polled == 500, "{flags}: {polled}");
        // gcc gives a function without a frame of its own none for what it calls, if it knows that.
        let plain = by("plain", "vectors");
        let refused = report.refused.get(&plain).map_or("", String::as_str);
        ensure!(
            report.entries(&plain) == counted[1]
                || refused.contains("frame around it is too small"),
            "{flags}: {} of {}: {refused}",
            report.entries(&plain),
            counted[1]
        );
        // As a function of its own, or in the program's main one; glibc's headers have another name for strtol.
        let sum = |callee: &str| -> u64 {
            let functions = report.functions.iter();
            let its =
                functions.filter(|(name, _)| name.starts_with(&format!("{callee} [called by")));
            its.map(|(_, balance)| balance["entries"]).sum()
        };
        let (parsed, printed) = (sum("atol") + sum("strtol"), sum("printf") + sum("putchar"));
        ensure!(
            parsed == 1 && printed == 9,
            "{flags}: {parsed} parsed, {printed} printed: {:?}",
            report.functions
        );
        ensure!(
            report.entries(&by("[unknown callee]", "rounds")) == 0,
            "pointers were not asked for"
        );
    }
    Ok(())
}

/// Of 3,000 packets a third is dropped by an exception that `run` catches, and a fifth ends by one that passes it.
fn throws(compiler: &str) -> Result<()> {
    for flags in ["-O0", "-O1", "-O2", "-O2 -fno-omit-frame-pointer"] {
        let flags: Vec<&str> = flags.split(' ').collect();
        let program = compile(compiler, &["pointers/throws.cpp"], &flags)?;
        let (_, report) = same(&program, &["3000"], &["calls:run*"])?;
        for callee in ["Passes", "Drops", "Ends"] {
            let begins = format!("{callee}::take(long) [called by run(");
            let mut functions = report.functions.iter();
            let found = functions.find(|(name, _)| name.starts_with(&begins));
            let (_, balance) = found.with_context(|| format!("{:?}", report.functions))?;
            ensure!(
                balance["entries"] == 3000 && balance["exits"] == 3000,
                "{flags:?}: {callee}: {balance:?}"
            );
        }
    }
    Ok(())
}

fn started(flags: &str) -> Result<Told> {
    Told::start(&mut Command::new(program("gcc", flags)?))
}

/// It waits in a call through a pointer when hopscope attaches, and comes into the copy by its loop.
fn running_loop() -> Result<()> {
    for flags in ["-O2", "-O1 -fno-omit-frame-pointer"] {
        let mut running = started(flags)?;
        let file = scratch().join("loop.hop");
        for _ in 0..2 {
            let patterns = ["calls:serve", "inlined:answer", "calls:poll"];
            let recording = Recording::start(running.pid(), &patterns, &file)?;
            for _ in 0..5 {
                running.told("100")?;
            }
            let said = recording.stop()?;
            ensure!(said["calls"]["refused"] == 0, "{said}");
            let report = Report::read(&file)?;
            report.expect_whole()?;
            // The call that it waited in was begun before, and the last one has not ended.
            let reads = &report.functions[&by("number", "serve")];
            ensure!(
                reads["entries"] == 5 && reads["exits"] == 4,
                "{flags}: {reads:?}"
            );
            // It may have come into the copy amid the first.
            let answers = report.entries("answer [inlined in serve]");
            let pairs = report.entries(&by("pairs", "poll"));
            ensure!(
                (4..=5).contains(&answers) && pairs == 500,
                "{flags}: {answers} answers, {pairs} pairs"
            );
            // It is in the copy, until its next round.
            running.told("1")?;
        }
        hopscope(&["detach", "-p", &running.pid().to_string()])?;
        running.expect_clean()?;
        running.told("1")?;
    }
    Ok(())
}

/// Calls of each function of `report --json`, with its module.
fn with_modules(file: &Path) -> Result<Vec<(String, String, u64)>> {
    let file = file.to_str().context("a path in UTF-8")?;
    let out = hopscope(&["report", file, "--json"])?.expect_code(0)?;
    let lines = out.stdout.lines().map(serde_json::from_str::<Value>);
    let mut rows = Vec::new();
    for row in lines {
        let row = row?;
        if row["type"] == "function" {
            let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let entries = row["balance"]["entries"].as_u64().context("entries")?;
            rows.push((text("module"), text("function"), entries));
        }
    }
    Ok(rows)
}

/// The plug-in's function was called once, and has its name and its file.
fn expect_loaded(plug_in: &Path, rows: &[(String, String, u64)]) -> Result<()> {
    let file = plug_in.file_name().context("a name")?.to_string_lossy();
    let is_it = |(module, function, calls): &(String, String, u64)| {
        module.ends_with(&*file) && *function == by("loaded", "call") && *calls == 1
    };
    ensure!(rows.iter().any(is_it), "{file}: {rows:?}");
    Ok(())
}

fn made() -> Result<()> {
    let program = compile_c(&["pointers/made.c"], &["-O2", "-ldl"])?;
    let plug_in = compile_c(&["pointers/plug_in.c"], &["-O2", "-shared", "-fPIC"])?;
    let file = scratch().join("made.hop");
    let mut running = Told::start(Command::new(&program).arg(&plug_in))?;
    let record = command_with_buffer(running.pid(), &["calls:call"], &file, "64M");
    let recording = Recording::start_command(record, &file)?;
    let sum = running.told("20")?;
    let expected = format!("{} ", 41 + 40 * 4);
    ensure!(sum.starts_with(&expected), "{sum}");
    recording.stop()?;
    let rows = with_modules(&file)?;
    expect_loaded(&plug_in, &rows)?;
    let in_no_file = rows.iter().filter(|(module, name, calls)| {
        module == "[no file]" && name.starts_with("0x") && *calls == 2
    });
    ensure!(in_no_file.count() == 20, "{rows:?}");
    // There is no end of them.
    let record = command_with_buffer(running.pid(), &["calls:call"], &file, "64M");
    let recording = Recording::start_command(record, &file)?;
    running.told("5000")?;
    let said = recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let unknown = report.entries(&by("[unknown callee]", "call"));
    // With the one that is loaded, 4,096 are told apart.
    ensure!(unknown == 2 * (5001 - 4096), "{unknown}");
    let note = format!("{unknown} calls through pointers are of an unknown callee");
    ensure!(said["notes"].to_string().contains(&note), "{said}");
    running.expect_clean()
}

/// What was left in the rings has names, too.
fn killed() -> Result<()> {
    let mut running = started("-O2")?;
    let file = scratch().join("killed.hop");
    let recording = Recording::start(running.pid(), &["calls:poll"], &file)?;
    kill(recording.recorder()?, Signal::SIGSTOP)?;
    running.told("100")?;
    kill(recording.recorder()?, Signal::SIGKILL)?;
    let (_, said) = recording.ended()?;
    let salvaged = file.with_file_name("killed.salvaged.hop");
    let report = Report::read(&salvaged).with_context(|| said)?;
    report.expect_whole()?;
    let pairs = report.entries(&by("pairs", "poll"));
    ensure!(pairs == 100, "{:?}", report.functions);
    running.expect_clean()?;
    running.told("1")?;
    Ok(())
}

fn in_top() -> Result<()> {
    let mut running = started("-O2")?;
    let top = Top::start(running.pid(), &["-f", "calls:poll"])?;
    running.told("100")?;
    let calls = top.stop()?;
    ensure!(calls.get(&by("pairs", "poll")) == Some(&100), "{calls:?}");
    running.expect_clean()
}

/// Callees that were named before a file was begun are in it, and those that come while it is open.
fn flight() -> Result<()> {
    let mut running = started("-O2")?;
    let dir = scratch();
    let output = dir.join("flight.hop");
    let mut record = command(running.pid(), &["calls:poll"], &output);
    record.args(["--flight", "60s", "--after", "60s", "--trigger", "SIGUSR1"]);
    let recording = Recording::start_command(record, &output)?;
    running.told("100")?;
    recording.signal(Signal::SIGUSR1)?;
    running.told("100")?;
    let said = recording.stop()?;
    let files: Vec<PathBuf> = serde_json::from_value(said["choice"]["flight"]["files"].clone())?;
    ensure!(files.len() == 1, "{said}");
    let report = Report::read(&files[0])?;
    report.expect_whole()?;
    let pairs = report.entries(&by("pairs", "poll"));
    ensure!(pairs == 200, "{pairs}: {:?}", report.functions);
    Ok(())
}

/// Its functions have its names, wherever another one's lay.
fn replaced() -> Result<()> {
    let program = compile_c(&["pointers/made.c"], &["-O2", "-ldl"])?;
    let shared = ["-O2", "-shared", "-fPIC"];
    let first = compile_c(&["pointers/plug_in.c"], &shared)?;
    let second = compile_c(
        &["pointers/plug_in.c"],
        &[&shared[..], &["-DOTHER"]].concat(),
    )?;
    let mut running = Told::start(Command::new(&program).args([&first, &second]))?;
    let place = |said: &str| -> Result<u64> {
        let at = said.split_once(" 0x").context("an address")?.1;
        Ok(u64::from_str_radix(at, 16)? & !0xfff)
    };
    // The first is there when hopscope attaches, and gone when the second is called.
    let one = running.told("0")?;
    let file = scratch().join("replaced.hop");
    let recording = Recording::start(running.pid(), &["calls:call"], &file)?;
    let other = running.told("0 b")?;
    ensure!(
        place(&one)? == place(&other)? && one != other,
        "not at the same place: {one}, {other}"
    );
    recording.stop()?;
    let rows = with_modules(&file)?;
    expect_loaded(&second, &rows)?;
    running.expect_clean()
}

/// A child has another file where its parent has none.
fn loaded_by_a_child() -> Result<()> {
    let program = compile_c(&["pointers/made.c"], &["-O2", "-ldl"])?;
    let plug_in = |name: &str| {
        let named = format!("-Wl,-soname,{name}");
        let flags = ["-O2", "-shared", "-fPIC", &named];
        compile_c(&["pointers/plug_in.c"], &flags)
    };
    let (own, childs) = (plug_in("own")?, plug_in("childs")?);
    let file = scratch().join("loaded.hop");
    let mut running = Told::start(Command::new(&program).args([&own, &childs]))?;
    let mut record = command(running.pid(), &["calls:call"], &file);
    record.arg("--follow-forks");
    let recording = Recording::start_command(record, &file)?;
    running.told("0")?;
    running.told("-1")?;
    recording.stop()?;
    running.tell("ends")?;
    running.told("0")?;
    let rows = with_modules(&file)?;
    for file in [&own, &childs] {
        expect_loaded(file, &rows)?;
    }
    running.expect_clean()
}

/// Of all that match only those are measured that call something of what is asked for.
fn who_calls() -> Result<()> {
    let program = program("gcc", "-O2")?;
    let (_, report) = same(&program, &["100"], &["calls:calls-*!*"])?;
    let measured = |name: &str| report.functions.contains_key(name);
    ensure!(
        measured("poll") && measured("deeper") && !measured("plain") && !measured("rounds"),
        "{:?}",
        report.functions
    );
    Ok(())
}

/// A child makes its calls in rings of its own.
fn forked() -> Result<()> {
    let mut running = started("-O2")?;
    let file = scratch().join("forked.hop");
    let mut record = command(running.pid(), &["calls:poll"], &file);
    record.arg("--follow-forks");
    let recording = Recording::start_command(record, &file)?;
    running.told("100")?;
    running.told("-50")?;
    recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let pairs = report.entries(&by("pairs", "poll"));
    ensure!(pairs == 150, "{pairs}: {:?}", report.functions);
    running.expect_clean()
}

fn refused() -> Result<()> {
    let program = program("gcc", "-O2")?;
    let program = program.to_str().context("a path in UTF-8")?;
    for (options, why) in [
        (
            &["-f", "calls:plain"][..],
            "nothing that calls:plain asks for is called there",
        ),
        (
            &["-f", "calls:poll->nobody"],
            "nothing that calls:poll->nobody asks for is called there",
        ),
        (
            &["-f", "calls:nothing_here"],
            "nothing matches calls:nothing_here",
        ),
        (&["-f", "calls:poll", "--budget", "5"], "calls:"),
        (&["-f", "calls:poll", "--check-cost"], "calls:"),
        (&["-f", "calls-*->calls:poll"], "whoever calls it"),
        (&["-f", "calls:poll(round)"], "a -f of its own"),
        (
            &[
                "-f",
                "calls:poll",
                "--detach-on",
                "[unknown callee] [called by poll] > 1us",
            ],
            "is known once it was made",
        ),
    ] {
        let words = [&["record"], options, &["--", program, "1"]].concat();
        let out = hopscope(&words)?;
        ensure!(
            out.code != Some(0) && out.stderr.contains(why) && out.stderr.lines().count() == 1,
            "{options:?}: {out:?}"
        );
    }
    // It comes back twice, and a child before its parent.
    let jumps = compile_c(&["inlined/callee.c", "inlined/setjmp.c"], &["-O2", "-g"])?;
    let jumps = jumps.to_str().context("a path in UTF-8")?;
    let words = ["record", "--dry-run", "-f", "calls:*->*setjmp", "--", jumps];
    let out = hopscope(&words)?.expect_code(0)?;
    let why = "it can return twice or not at all";
    let of_it = out
        .stdout
        .lines()
        .filter(|line| line.contains("setjmp [called by"));
    let refused: Vec<&str> = of_it.collect();
    ensure!(
        !refused.is_empty() && refused.iter().all(|line| line.contains(why)),
        "{out:?}"
    );
    let out = hopscope(&["functions", "--binary", program, "-f", "calls:poll"])?;
    ensure!(
        out.code != Some(0) && out.stderr.contains("record"),
        "{out:?}"
    );
    Ok(())
}
