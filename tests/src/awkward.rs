//! Functions that are hard to measure: each works as before, during and after a recording, and is
//! either counted exactly or refused with the right reason.
use crate::recording::{Recording, Report, expect_checked, summary};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, compile, scratch};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

const SOURCES: [&str; 8] = [
    "awkward/awkward.c",
    "awkward/shape_checks.c",
    "awkward/language_checks.c",
    "awkward/vector_checks.c",
    "awkward/stack_checks.c",
    "awkward/process_checks.c",
    "awkward/library_checks.c",
    "awkward/shapes.S",
];

/// Reasons for which a function must be refused, in every build.
const REFUSED: [(&str, &str); 8] = [
    ("one_byte_tight", "too short"),
    ("loop_to_byte_2", "inside the bytes the jump replaces"),
    (
        "entered_in_the_middle",
        "inside the bytes the jump replaces",
    ),
    ("short_call_first", "a call returns into the bytes"),
    ("data_after_ret", "no instruction"),
    ("get_pc", "calls into its own body"),
    ("uses_gs", "uses %gs"),
    ("looks_for_next", "dlsym"),
];

/// Functions that call through a pointer or are called back may be refused for this.
const UNWINDING: &str = "may be unwound";

/// Shapes that must be measured, in every build.
const ACCEPTED: [&str; 34] = [
    "one_byte",
    "three_bytes",
    "loop_to_entry",
    "enters_in_the_middle",
    "static_chain",
    "rip_relative_first",
    "call_first",
    "jcc_first",
    "tail_direct",
    "tail_conditional",
    "tail_rip_memory",
    "tail_got",
    "table_of_offsets",
    "table_of_addresses",
    "table_to_entry",
    "flags_result",
    "ipa_callee",
    "ipa_caller",
    "red_zone",
    "red_zone_leaves",
    "red_zone_left_for",
    "red_zone_jumps",
    "red_zone_entered",
    "split_leaf",
    "beside_cold",
    "red_zone_table",
    "flags_across_table",
    "loops_and_jrcxz",
    "ret_imm16",
    "rep_ret",
    "bnd_prefixed",
    "falls_through",
    "landing_pad",
    "very_large",
];

/// Left by other ways than a return or a jump.
const NOT_ENDED: [&str; 2] = ["ends_in_noreturn", "exits_thread"];

/// Of two names for one function either may be the one that is reported.
const ALIASES: [(&str, &str); 1] = [("by_two_names", "second_name")];

pub(crate) struct Build {
    name: &'static str,
    compiler: &'static str,
    flags: &'static str,
    /// Without symbols only the checks and the balance can be compared.
    stripped: bool,
}

const fn build(name: &'static str, compiler: &'static str, flags: &'static str) -> Build {
    Build {
        name,
        compiler,
        flags,
        stripped: false,
    }
}

static BUILDS: [Build; 20] = [
    build("gcc_O0", "gcc", "-O0"),
    build("gcc_O1", "gcc", "-O1"),
    build("gcc_O2", "gcc", "-O2"),
    build("gcc_O3", "gcc", "-O3"),
    build("gcc_lto", "gcc", "-O2 -flto"),
    build("gcc_static", "gcc", "-O2 -static -DSTATIC"),
    build("gcc_static_pie", "gcc", "-O2 -static-pie -DSTATIC"),
    build("gcc_no_pie", "gcc", "-O2 -fno-pie -no-pie"),
    build("gcc_cet", "gcc", "-O2 -fcf-protection"),
    build("gcc_no_plt", "gcc", "-O2 -fno-plt"),
    Build {
        name: "gcc_stripped",
        compiler: "gcc",
        flags: "-O2 -s",
        stripped: true,
    },
    build("clang_O0", "clang", "-O0"),
    build("clang_O1", "clang", "-O1"),
    build("clang_O2", "clang", "-O2"),
    build("clang_O3", "clang", "-O3"),
    build("clang_static", "clang", "-O2 -static -DSTATIC"),
    build("clang_no_pie", "clang", "-O2 -fno-pie -no-pie"),
    build("clang_cet_no_plt", "clang", "-O2 -fcf-protection -fno-plt"),
    build("musl", "musl-gcc", "-O2 -DMUSL"),
    build("musl_static", "musl-gcc", "-O2 -DMUSL -static"),
];

pub(crate) fn register(suite: &mut Suite) {
    for build in &BUILDS {
        let needs = match build.compiler {
            "clang" => Requirement::Clang,
            "musl-gcc" => Requirement::Musl,
            _ => Requirement::Gcc,
        };
        suite.case(format!("awkward::{}", build.name), &[needs], || {
            exact(build)
        });
        suite.case(format!("awkward::{}_looping", build.name), &[needs], || {
            looping(build)
        });
        let name = format!("awkward::{}_switched", build.name);
        let case = suite.case(name, &[needs], || switched(build));
        if !SWITCHED.contains(&build.name) {
            case.soak();
        }
    }
}

/// Builds whose first instructions differ most; the others at full counts.
const SWITCHED: [&str; 5] = ["gcc_O0", "gcc_O2", "gcc_cet", "clang_O2", "musl_static"];

const ROUNDS: u64 = 3;

/// Attached between two rounds, so that every call of the rounds in between is recorded.
fn exact(build: &Build) -> Result<()> {
    let mut program = Awkward::start(build)?;
    program.all_right(&format!("run {ROUNDS}"), CHECKS)?;
    let file = scratch().join("awkward.hop");
    let recording = Recording::start(program.target.pid(), &[&program.pattern], &file)?;
    program.all_right(&format!("run {ROUNDS}"), CHECKS)?;
    recording.stop()?;
    program.all_right(&format!("run {ROUNDS}"), CHECKS)?;
    let calls = program.calls()?;
    program.finish()?;

    let report = Report::read(&file)?;
    report.expect_whole()?;
    match build.stripped {
        true => ensure!(
            report.functions.len() > 50,
            "{} functions",
            report.functions.len()
        ),
        false => compare(build, &report, &calls)?,
    }
    Ok(())
}

fn compare(build: &Build, report: &Report, calls: &BTreeMap<String, u64>) -> Result<()> {
    for name in ACCEPTED {
        if let Some(reason) = report.refused.get(name) {
            // A static program holds the unwinder itself.
            let unwinds = build.flags.contains("-static") && reason.contains(UNWINDING);
            ensure!(unwinds, "{name} is refused: {reason}");
        }
    }
    for (name, expected) in REFUSED {
        // What a build does not have cannot be refused.
        if !calls.contains_key(name) && name != "uses_gs" {
            continue;
        }
        let reason = report
            .refused
            .get(name)
            .with_context(|| format!("{name} is measured"))?;
        ensure!(
            reason.contains(expected) || reason.contains(UNWINDING),
            "{name} is refused for another reason: {reason}"
        );
    }
    for (name, a_round) in calls {
        if let Some(reason) = report.refused.get(name) {
            let expected = REFUSED.iter().any(|(refused, _)| refused == name);
            ensure!(
                expected || reason.contains(UNWINDING),
                "{name} is refused: {reason}"
            );
            continue;
        }
        let aliases = ALIASES.iter().filter(|(n, _)| n == name);
        let entries =
            report.entries(name) + aliases.map(|(_, alias)| report.entries(alias)).sum::<u64>();
        let expected = ROUNDS * a_round;
        ensure!(
            entries == expected,
            "{name}: {entries} entries of {expected} calls"
        );
        // The balance alone would hold without exit probes: every call would count as unwound.
        let b = report.functions.get(name);
        let ended = b.map_or(0, |b| b["exits"] + b["tail_exits"]);
        let listed = NOT_ENDED.contains(&name.as_str());
        ensure!(
            listed || b.is_none_or(|b| ended == b["entries"]),
            "{name}: of {entries} calls {ended} were seen to end"
        );
    }
    Ok(())
}

/// Attached and detached while the rounds go on.
fn looping(build: &Build) -> Result<()> {
    let mut program = Awkward::start(build)?;
    program.say("loop")?;
    let file = scratch().join("awkward.hop");
    let mut command = crate::recording::command(program.target.pid(), &[&program.pattern], &file);
    command.args(["--count", "20000"]);
    hopscope_tests::command::run(&mut command)?.expect_code(0)?;
    // Ends the loop, and is a last check without probes.
    program.say("run 1")?;
    program.expect_all_right(CHECKS)?;
    program.expect_all_right(CHECKS)?;
    program.finish()?;
    let report = Report::read(&file)?;
    report.expect_balanced()?;
    let entries = report.summary["balance"]["entries"].as_u64().unwrap_or(0);
    ensure!(
        entries >= 10_000,
        "only {entries} entries in {}",
        report.summary
    );
    Ok(())
}

/// Probes go off and on while the rounds go on.
fn switched(build: &Build) -> Result<()> {
    let mut program = Awkward::start(build)?;
    program.say("loop")?;
    let file = scratch().join("awkward.hop");
    let pid = program.target.pid();
    let time = hopscope_tests::counts().pick("200ms", "5s");
    let mut command = crate::recording::command_checking(pid, &[&program.pattern], &file, time);
    let out = hopscope_tests::command::run(&mut command)?.expect_code(0)?;
    program.say("run 1")?;
    // Compares the return addresses of two calls: of the original and of its copy where probes go on in between.
    program.expect_right_but("return_address ", CHECKS)?;
    program.expect_all_right(CHECKS)?;
    // It counts the difference that may be, too.
    program.finish_with(&[0, 1])?;
    expect_checked(&summary(&out.stdout)?)?;
    Report::read(&file)?.expect_balanced()
}

pub(crate) struct Awkward {
    pub(crate) target: Target,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// All functions of the program's own file.
    pub(crate) pattern: String,
}

impl Build {
    pub(crate) fn new(name: &'static str, compiler: &'static str, flags: &'static str) -> Build {
        build(name, compiler, flags)
    }
}

/// As many as there are at least when all are asked for.
const CHECKS: usize = 50;

impl Awkward {
    fn start(build: &Build) -> Result<Awkward> {
        Awkward::start_checks(build, &[])
    }

    /// Only `checks`; all when there are none.
    pub(crate) fn start_checks(build: &Build, checks: &[&str]) -> Result<Awkward> {
        let headers = crate::headers("awkward")?;
        let flags = build.flags.split(' ').chain(["-w", "-pthread", &headers]);
        let program = compile(build.compiler, &SOURCES, &flags.collect::<Vec<_>>())?;
        let name = program
            .file_name()
            .context("a name")?
            .to_string_lossy()
            .into_owned();
        let mut command = Command::new(&program);
        command.args(checks);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn(&mut command)?;
        let input = target.child().stdin.take().context("its input")?;
        let output = target.child().stdout.take().context("its output")?;
        let (output, pattern) = (BufReader::new(output), format!("{name}!*"));
        Ok(Awkward {
            target,
            input,
            output,
            pattern,
        })
    }

    fn say(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}").context("the program is gone")
    }

    fn answer(&mut self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                let status = self.target.child().wait()?;
                anyhow::bail!("the program ended: {status}; it had said {lines:?}");
            }
            match line.trim_end() {
                "end" => return Ok(lines),
                other => lines.push(other.to_owned()),
            }
        }
    }

    fn expect_all_right(&mut self, at_least: usize) -> Result<()> {
        self.expect_right(None, at_least)
    }

    fn expect_right_but(&mut self, check: &str, at_least: usize) -> Result<()> {
        self.expect_right(Some(check), at_least)
    }

    fn expect_right(&mut self, but: Option<&str>, at_least: usize) -> Result<()> {
        let answer = self.answer()?;
        ensure!(answer.len() >= at_least, "only {} checks ran", answer.len());
        let may_be_wrong = |line: &str| but.is_some_and(|check| line.starts_with(check));
        let wrong: Vec<_> = answer
            .iter()
            .filter(|line| !line.contains(" ok ") && !may_be_wrong(line))
            .collect();
        ensure!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    }

    pub(crate) fn all_right(&mut self, line: &str, at_least: usize) -> Result<()> {
        self.say(line)?;
        self.expect_all_right(at_least)
    }

    pub(crate) fn calls(&mut self) -> Result<BTreeMap<String, u64>> {
        self.say("calls")?;
        let mut calls = BTreeMap::new();
        for line in self.answer()? {
            let (name, n) = line.split_once(' ').context("FUNCTION CALLS")?;
            *calls.entry(name.to_owned()).or_default() += n.parse::<u64>()?;
        }
        Ok(calls)
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.finish_with(&[0])
    }

    fn finish_with(self, codes: &[i32]) -> Result<()> {
        drop(self.input);
        let status = self.target.wait()?;
        let expected = status.code().is_some_and(|code| codes.contains(&code));
        ensure!(expected, "the program: {status}");
        Ok(())
    }
}
