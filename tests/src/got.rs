//! Functions that are measured by their GOT slots: `--method got`, and calls of one module alone.
use crate::recording::{Recording, Report, command, command_with_buffer};
use crate::told::Told;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{
    Requirement, Suite, Target, compile, compile_c, hopscope, hopscope_bin, scratch,
};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Clang, Gcc, Gxx, Redis};
    suite.case("got::bound_in_any_way_gcc", &[Gcc], || bound("gcc"));
    suite.case("got::bound_in_any_way_clang", &[Gcc, Clang], || {
        bound("clang")
    });
    suite.case("got::where_a_jump_has_no_room", &[Gcc], no_room);
    suite.case("got::calls_of_one_module", &[Gcc], one_module);
    suite.case("got::address_that_is_compared", &[Gcc], compared);
    suite.case("got::restored_to_the_byte", &[Gcc], restored);
    suite.case("got::restored_by_the_guardian", &[Gcc], killed);
    suite.case("got::bound_while_recording", &[Gcc], bound_later);
    suite.case("got::what_an_ifunc_chose", &[Gcc], ifunc);
    suite.case("got::exceptions_pass", &[Gcc, Gxx], exceptions);
    suite.case("got::redis_and_its_libraries", &[Redis], redis);
    for method in ["got", "auto"] {
        let name = format!("got::a_compiler_with_everything_measured_{method}");
        let case = suite.case(name, &[Clang, Gxx], move || compiler(method));
        // Its 219,000 functions are judged for half a minute.
        case.soak();
    }
}

const WATCHDOG: Duration = Duration::from_secs(60);

/// Of one round: 100 calls from the program, 10 from the other module.
const OF_PROGRAM: u64 = 100;
const OF_OTHER: u64 = 10;

struct Built {
    program: PathBuf,
    other: PathBuf,
}

impl Built {
    fn with(compiler: &str, flags: &str) -> Result<Built> {
        let shared = ["-O2", "-fPIC", "-shared"];
        let direct = [&shared[..], &["-Wl,-Bsymbolic-functions"]].concat();
        let library = compile("gcc", &["got/library.c", "got/tiny.S"], &direct)?;
        let named = |path: &Path| path.to_str().map(str::to_owned).context("a path in UTF-8");
        let (of_library, mut flagged) = (named(&library)?, shared.to_vec());
        flagged.push(&of_library);
        let other = compile("gcc", &["got/user.c"], &flagged)?;
        let of_other = named(&other)?;
        let mut all: Vec<&str> = flags.split(' ').collect();
        all.extend(["-Wall", &of_library, &of_other]);
        let program = compile(compiler, &["got/program.c"], &all)?;
        Ok(Built { program, other })
    }

    /// As a function is called of which calls of these modules are measured.
    fn called(&self, function: &str, from: &[&Path]) -> String {
        let name = |path: &&Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
        let mut from: Vec<String> = from.iter().filter_map(name).collect();
        from.sort();
        format!("{function} [called from {}]", from.join(", "))
    }

    fn called_from_both(&self, function: &str) -> String {
        self.called(function, &[&self.program, &self.other])
    }

    fn called_from_program(&self, function: &str) -> String {
        self.called(function, &[&self.program])
    }
}

fn started(program: &Path) -> Result<Told> {
    Told::start(&mut Command::new(program))
}

/// All of its files that is no code: addresses, and what they hold.
fn data(running: &Told) -> Result<BTreeMap<u64, Vec<u8>>> {
    let folder = format!("/proc/{}", running.pid());
    let memory = File::open(format!("{folder}/mem"))?;
    let mut data = BTreeMap::new();
    for line in fs::read_to_string(format!("{folder}/maps"))?.lines() {
        let (range, rest) = line.split_once(' ').context("a mapping")?;
        if !line.contains("hopscope-programs") || rest[..4].contains('x') {
            continue;
        }
        let (start, end) = range.split_once('-').context("a range")?;
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16));
        let (start, end) = (start?, end?);
        let mut bytes = vec![0; (end - start) as usize];
        memory.read_exact_at(&mut bytes, start)?;
        data.insert(start, bytes);
    }
    Ok(data)
}

fn got(pid: i32, patterns: &[&str], file: &Path) -> Command {
    let mut record = command(pid, patterns, file);
    record.args(["--method", "got"]);
    record
}

/// Measured from its first instruction on: a report, and what it said.
fn launched(program: &Path, arguments: &[&str], options: &[&str]) -> Result<(Report, String)> {
    let file = scratch().join("launched.hop");
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--no-calibration", "--max-overhead", "1e9"]);
    record.args(["--buffer", "64M", "-o"]).arg(&file);
    record.args(options).arg("--").arg(program).args(arguments);
    let out = run(&mut record)?.expect_code(0)?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    Ok((report, out.stdout))
}

/// By stubs, at the start or at the first call, or through the table directly; with landing instructions for indirect branches.
const FLAGS: [&str; 6] = [
    "-O2 -Wl,-z,lazy",
    "-O2 -Wl,-z,now,-z,relro",
    "-O2 -fno-plt -Wl,-z,relro",
    "-O2 -fcf-protection -Wl,-z,lazy",
    "-O2 -no-pie -Wl,-z,lazy",
    "-O0 -Wl,-z,lazy",
];

fn bound(compiler: &str) -> Result<()> {
    for flags in FLAGS {
        let built = Built::with(compiler, flags)?;
        let alone = run(Command::new(&built.program).arg("40"))?.expect_code(0)?;
        let asked = ["--method", "got", "-f", "library-*!*"];
        let (report, said) = launched(&built.program, &["40"], &asked)?;
        ensure!(said == alone.stdout, "{flags}: {said} {}", alone.stdout);
        // clang keeps what it finds in the table in a register, for the calls of a loop: what else becomes of it is not known.
        let is_kept = |name: &str| {
            let of_program = built.called_from_program(name);
            let why = report.refused.get(name).or(report.refused.get(&of_program));
            let why = why.map_or("", String::as_str);
            compiler == "clang" && flags == FLAGS[2] && why.contains("does not only call")
        };
        let mut kept = 0;
        for function in ["two", "looped", "deep", "compared", "one", "three"] {
            if is_kept(function) {
                kept += 1;
                continue;
            }
            let (name, calls) = match function {
                "one" | "three" => (built.called_from_both(function), OF_PROGRAM + OF_OTHER),
                _ => (built.called_from_program(function), OF_PROGRAM),
            };
            let counted = report.entries(&name);
            ensure!(counted == 40 * calls, "{flags}: {function}: {counted}");
        }
        ensure!(kept < 6, "{flags}: {:?}", report.refused);
    }
    Ok(())
}

/// Without being asked for, where a jump is not possible; and refused where only a jump is wanted.
fn no_room() -> Result<()> {
    let built = Built::with("gcc", FLAGS[0])?;
    let asked = ["-f", "one", "-f", "two", "-f", "looped", "-f", "three"];
    let (report, _) = launched(&built.program, &["40"], &asked)?;
    let counted = [
        report.entries(&built.called_from_both("one")),
        report.entries(&built.called_from_program("two")),
        report.entries(&built.called_from_program("looped")),
    ];
    ensure!(counted == [4400, 4000, 4000], "{counted:?}");
    // Who calls it does not matter: from within its own library, too.
    let three = report.entries("three");
    ensure!(three == 40 * (2 * OF_PROGRAM + OF_OTHER), "{three}");
    let asked = [&asked[..], &["--method", "jump"]].concat();
    let (report, _) = launched(&built.program, &["40"], &asked)?;
    let why = |name: &str| report.refused.get(name).map_or("", String::as_str);
    ensure!(
        why("one").contains("too short") && why("looped").contains("branches to"),
        "{:?}",
        report.refused
    );
    Ok(())
}

fn one_module() -> Result<()> {
    let built = Built::with("gcc", FLAGS[0])?;
    let (report, _) = launched(&built.program, &["40"], &["-f", "user-*->library-*!*"])?;
    let called = |function| report.entries(&built.called(function, &[&built.other]));
    let counted = [called("three"), called("one")];
    ensure!(counted == [40 * OF_OTHER; 2], "{:?}", report.functions);
    // What it does not call was not asked for.
    ensure!(
        report.functions.len() == 2 && report.refused.is_empty(),
        "{:?} {:?}",
        report.functions,
        report.refused
    );
    let program = built.program.to_str().context("a path in UTF-8")?;
    for (pattern, why) in [
        ("user-*->library-*!two", "is called from there"),
        ("user-*->nothing", "nothing matches user-*->nothing"),
        ("user-*->inlined:three", "not called by a module"),
        ("user-*->program-*->three", "with one ->"),
        ("user->three", "no module is called user,"),
    ] {
        let out = hopscope(&["record", "-f", pattern, "--", program, "1"])?.expect_code(125)?;
        ensure!(out.stderr.contains(why), "{pattern}: {}", out.stderr);
    }
    Ok(())
}

/// A copy's address would not be equal to what `dlsym` says.
fn compared() -> Result<()> {
    is_refused(&Built::with("gcc", "-O2 -DCOMPARES -Wl,-z,lazy")?, true)?;
    let large = ["-O2", "-mcmodel=large", "-fPIC", "-c"];
    let reads = compile("gcc", &["got/reads.c"], &large)?;
    let reads = reads.to_str().context("a path in UTF-8")?;
    let flags = format!("-O2 -DREADS -fno-plt {reads}");
    is_refused(&Built::with("gcc", &flags)?, false)
}

/// `compared` is, and `two` is measured unless the whole table may be read.
fn is_refused(built: &Built, alone: bool) -> Result<()> {
    let asked = ["--method", "got", "-f", "library-*!compared"];
    let asked = [&asked[..], &["-f", "two", "-f", "*->library-*!one"]].concat();
    let (report, said) = launched(&built.program, &["40"], &asked)?;
    ensure!(said.starts_with("1\n"), "{said}");
    let why = report.refused.get("compared").context("refused")?;
    ensure!(why.contains("does not only call"), "{why}");
    let two = report.entries(&built.called_from_program("two"));
    ensure!(two == if alone { 4000 } else { 0 }, "{two}");
    Ok(())
}

/// Attached to twice; a forked child, too. The tables are as they were before, those that were not bound yet included.
fn restored() -> Result<()> {
    let file = scratch().join("restored.hop");
    let patterns = ["library-*!*"];
    for flags in [FLAGS[0], FLAGS[1], FLAGS[2]] {
        let built = Built::with("gcc", flags)?;
        let mut running = started(&built.program)?;
        // What it calls to read and to answer is bound, and what it does behind its first answer.
        running.told("0")?;
        running.told("0")?;
        for round in 0..3 {
            let before = data(&running)?;
            let asked = got(running.pid(), &patterns, &file);
            let recording = Recording::start_command(asked, &file)?;
            ensure!(data(&running)? != before, "no slot was led");
            // The first time nothing is called, and nothing bound; then all is.
            if round == 2 {
                running.told("40")?;
                let child = running.told("fork")?;
                ensure!(child.starts_with("child "), "{child}");
            }
            recording.stop()?;
            running.expect_clean()?;
            ensure!(data(&running)? == before, "{flags}: not as it was");
            let calls = Report::read(&file)?.entries(&built.called_from_program("looped"));
            let expected = if round == 2 { 4000 } else { 0 };
            ensure!(calls == expected, "{flags}: {calls}");
            if round == 0 {
                running.told("fork")?;
                running.told("1")?;
                // What it calls behind an answer is bound by the next one.
                running.told("1")?;
            }
        }
    }
    Ok(())
}

fn killed() -> Result<()> {
    let built = Built::with("gcc", FLAGS[0])?;
    let mut running = started(&built.program)?;
    running.told("1")?;
    let before = data(&running)?;
    let file = scratch().join("killed.hop");
    let asked = got(running.pid(), &["library-*!*"], &file);
    let recording = Recording::start_command(asked, &file)?;
    running.told("40")?;
    kill(recording.recorder()?, Signal::SIGKILL)?;
    recording.ended()?;
    running.expect_clean()?;
    ensure!(data(&running)? == before, "not as it was");
    running.told("1")?;
    Ok(())
}

/// Two libraries have the functions: which one a slot will hold is known once the dynamic linker has written it.
fn bound_later() -> Result<()> {
    let built = Built::with("gcc", FLAGS[0])?;
    let flags = ["-O1", "-fPIC", "-shared"];
    let before = compile("gcc", &["got/library.c", "got/tiny.S"], &flags)?;
    let mut running = Told::start(Command::new(&built.program).env("LD_PRELOAD", &before))?;
    let unbound = data(&running)?;
    let file = scratch().join("later.hop");
    let mut record = command_with_buffer(running.pid(), &["looped"], &file, "64M");
    record.args(["--method", "got"]);
    let recording = Recording::start_command(record, &file)?;
    running.told("1")?;
    let bound = data(&running)?;
    ensure!(bound != unbound, "nothing was bound");
    let started = Instant::now();
    while data(&running)? == bound {
        ensure!(started.elapsed() < WATCHDOG, "it is not led");
        running.told("1")?;
    }
    running.told("10")?;
    let said = recording.stop()?;
    let notes = said["notes"].to_string();
    ensure!(notes.contains("1 GOT slots are not bound yet"), "{said}");
    ensure!(
        notes.contains("1 GOT slots were bound during the recording"),
        "{said}"
    );
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let entries = |(_, balance): (&String, &BTreeMap<String, u64>)| balance["entries"];
    let counted: Vec<u64> = report.functions.iter().map(entries).collect();
    // Of the round in which it was led, a part.
    let calls: u64 = counted.iter().sum();
    let known = 10 * OF_PROGRAM..=11 * OF_PROGRAM;
    ensure!(known.contains(&calls), "{calls} calls");
    // Of the one that it was bound to alone.
    ensure!(
        counted.iter().filter(|n| **n > 0).count() == 1,
        "{counted:?}"
    );
    running.expect_clean()
}

/// What it chose has no name where the C library is stripped; here it is known by the slot's.
fn ifunc() -> Result<()> {
    let program = compile_c(&["got/ifunc.c"], &["-O1", "-fno-builtin", "-Wl,-z,now"])?;
    let (report, _) = launched(&program, &["1000"], &["-f", "ifunc-*->libc.so.6!strlen"])?;
    let named = |name: &&String| name.contains("strlen") && name.contains("[called from ifunc-");
    let found: Vec<&String> = report.functions.keys().filter(named).collect();
    ensure!(
        found.len() == 1,
        "{:?} {:?}",
        report.functions,
        report.refused
    );
    let calls = report.entries(found[0]);
    ensure!(calls == 1000, "{calls}");
    Ok(())
}

fn exceptions() -> Result<()> {
    let shared = ["-O2", "-fPIC", "-shared"];
    let library = compile("g++", &["got/throws.cpp"], &shared)?;
    let library = library.to_str().context("a path in UTF-8")?;
    let program = compile("g++", &["got/catches.cpp"], &["-O2", library])?;
    let alone = run(Command::new(&program).arg("3000"))?.expect_code(0)?;
    let asked = ["--method", "got", "-f", "throws-*!*"];
    let (report, said) = launched(&program, &["3000"], &asked)?;
    ensure!(said == alone.stdout, "{said} {}", alone.stdout);
    let named = |name: &&String| name.starts_with("checked(");
    let name = report.functions.keys().find(named).context("checked")?;
    let checked = &report.functions[name];
    ensure!(
        checked["entries"] == 3000 && checked["unwound"] == 1000,
        "{checked:?}"
    );
    Ok(())
}

/// All that its libraries are asked for by anybody, but for what it waits in.
fn redis() -> Result<()> {
    let folder = scratch();
    let socket = folder.join("socket");
    let mut start = Command::new("redis-server");
    start
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket);
    start.arg("--dir").arg(&folder).stdout(Stdio::null());
    let target = Target::spawn_with_ready_file(&mut start, &socket)?;
    let file = folder.join("redis.hop");
    let mut record = got(target.pid(), &["*->libc.so.6!*", "*->liblua*!*"], &file);
    record.args(["-x", "*wait*"]).stderr(Stdio::null());
    let recording = Recording::start_command(record, &file)?;
    let mut ask = Command::new("redis-cli");
    ask.arg("-s")
        .arg(&socket)
        .args(["-r", "2000", "incr", "packets"]);
    let answers = run(&mut ask)?.expect_code(0)?.stdout;
    let expected: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    ensure!(answers == expected, "{answers}");
    let said: Value = recording.stop()?;
    ensure!(said["lost"] == 0, "{said}");
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let read = report
        .functions
        .iter()
        .find(|(name, _)| name.starts_with("read ["));
    let (_, read) = read.context("redis reads its sockets")?;
    ensure!(read["entries"] >= 2000, "{read:?}");
    // It waits in a frame that holds old addresses of copies, maybe; nothing leads there, and it can be recorded again.
    let again = Recording::start_command(got(target.pid(), &["*->libc.so.6!read"], &file), &file)?;
    again.stop()?;
    Ok(())
}

/// clang with libclang-cpp and libLLVM: what it makes is the same, by the byte.
fn compiler(method: &str) -> Result<()> {
    let dir = scratch();
    let source = hopscope_tests::paths::programs().join("unwound/ways.cpp");
    let compiled = |out: &Path| {
        let mut words = vec!["clang++".into(), "-O2".into(), "-c".into(), "-o".into()];
        words.extend([out.to_path_buf(), source.clone()]);
        words
    };
    let (bare, measured) = (dir.join("bare.o"), dir.join("measured.o"));
    let words: Vec<PathBuf> = compiled(&bare);
    run(Command::new(&words[0]).args(&words[1..]))?.expect_code(0)?;
    let file = dir.join("compiler.hop");
    let mut record = Command::new(hopscope_bin());
    record.args([
        "record",
        "--json",
        "--no-calibration",
        "--max-overhead",
        "1e9",
    ]);
    record.args(["--buffer", "64M", "-f", "*", "--method", method, "-o"]);
    record.arg(&file).arg("--").args(compiled(&measured));
    let out = run(&mut record)?.expect_code(0)?;
    ensure!(
        fs::read(&bare)? == fs::read(&measured)?,
        "another object came out: {out:?}"
    );
    let report = Report::read(&file)?;
    report.expect_balanced()?;
    let least = if method == "got" { 500 } else { 10_000 };
    ensure!(
        report.functions.len() > least,
        "{} functions: {}",
        report.functions.len(),
        report.summary
    );
    Ok(())
}
