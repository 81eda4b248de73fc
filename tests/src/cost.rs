//! Where stamps end what a processor does at once: the time that the program takes unmeasured, by its
//! own clock, lies in the range that the report states.
use crate::recording::{Recording, command_checking, expect_checked, summary};
use anyhow::{Context, Result, anyhow, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope, hopscope_bin, scratch};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite
        .case("cost::the_unmeasured_time_lies_in_the_range", gcc, || {
            range(
                "cost/lookups.c",
                "cost_packet",
                &["cost_packet", "cost_lookup"],
            )
        })
        .alone();
    suite
        .case("cost::a_body_that_no_clock_waits_for", gcc, || {
            range("cost/chain.c", "cost_chain", &["cost_chain"])
        })
        .alone();
    suite
        .case("cost::ordered_stamps_hold_the_body", gcc, ordered)
        .alone();
    suite
        .case("cost::a_clock_that_is_early_is_said", gcc, early)
        .alone();
    for buffer in ["4M", "64M"] {
        suite
            .case(format!("cost::of_a_pipeline_{buffer}"), gcc, move || {
                pipeline(buffer)
            })
            .alone();
    }
    for (name, source, root, own) in [
        ("chain", "cost/chain.c", "cost_chain", Own::Most),
        ("lookups", "cost/lookups.c", "cost_packet", Own::Little),
        (
            "short_calls",
            "cost/short_calls.c",
            "cost_caller",
            Own::Little,
        ),
    ] {
        suite
            .case(format!("cost::checked_in_place_{name}"), gcc, move || {
                checked(source, root, own)
            })
            .alone()
            .soak();
    }
    suite.case("cost::an_idle_program_is_not_checked", gcc, idle);
}

/// A multiple of the ring's time would do as well; each takes some milliseconds.
const BATCHES: u32 = 400;
/// What the program's own median may be beside the mean of a report.
const MARGIN: f64 = 1.3;
/// What of a body two clocks that wait for it have between them at least: all, but for the machine's noise.
const ALL_OF_IT: f64 = 0.95;

struct Program {
    target: Target,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Program {
    fn start(source: &str) -> Result<Program> {
        let program = compile_c(&[source], &["-O2"])?;
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn_now(&mut command)?;
        let to = target.child().stdin.take().context("was piped")?;
        let from = target.child().stdout.take().context("was piped")?;
        let from = BufReader::new(from);
        let mut program = Program { target, to, from };
        ensure!(program.line()? == "ready");
        Ok(program)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Median of ticks a packet, by its own clock.
    fn ticks(&mut self) -> Result<f64> {
        writeln!(self.to, "{BATCHES}")?;
        let line = self.line()?;
        line.parse().with_context(|| line)
    }
}

/// A function's line of the report, in ticks.
fn row(file: &Path, function: &str) -> Result<Value> {
    row_of(file, &[], function)
}

fn row_of(file: &Path, options: &[&str], function: &str) -> Result<Value> {
    let path = file.to_str().context("path")?;
    let words = [&["report", path, "--json", "--time", "tsc"], options].concat();
    let out = hopscope(&words)?.expect_code(0)?;
    let rows = out.stdout.lines().map(serde_json::from_str::<Value>);
    let rows: Vec<Value> = rows.collect::<Result<_, _>>()?;
    rows.into_iter()
        .find(|row| row["function"] == function)
        .with_context(|| format!("{function}: {}", out.stdout))
}

fn number(row: &Value, field: &str) -> Result<f64> {
    row[field]
        .as_f64()
        .with_context(|| format!("{field} in {row}"))
}

/// Lowest and highest of a call, with the time without a processor, which the program's median leaves
/// out, taken off.
fn of_a_call(row: &Value) -> Result<[f64; 2]> {
    let calls = number(row, "calls")?;
    let off = row["off_cpu_tsc"].as_f64().unwrap_or(0.0);
    let low = number(row, "total_corrected_low_tsc")? - off;
    Ok([
        low / calls,
        number(row, "total_corrected_high_tsc")? / calls,
    ])
}

/// Ticks between the stamps of a call.
fn read_by_a_call(row: &Value) -> Result<f64> {
    let off = row["off_cpu_tsc"].as_f64().unwrap_or(0.0);
    Ok((number(row, "total_raw_tsc")? - off) / number(row, "calls")?)
}

/// Of one recording, in ticks a call of the root.
struct Stated {
    low: f64,
    median: f64,
    high: f64,
}

impl Stated {
    fn read(file: &Path, root: &str) -> Result<Stated> {
        let row = row(file, root)?;
        let off = row["off_cpu_tsc"].as_f64().unwrap_or(0.0);
        let calls = number(&row, "calls")?;
        let median = (number(&row, "total_corrected_tsc")? - off) / calls;
        let [low, high] = of_a_call(&row)?;
        Ok(Stated { low, median, high })
    }

    /// By how much it is too long or too short, as a part of the true time.
    fn error(&self, bare: f64) -> f64 {
        (self.median / bare - 1.0).abs()
    }
}

/// Records while the program works without a pause, until the recorder is done.
fn recorded(program: &mut Program, extra: &[&str], file: &Path) -> Result<Value> {
    let mut record = Command::new(hopscope_bin());
    record
        .args([
            "record",
            "--json",
            "--max-overhead",
            "1e9",
            "-f",
            "/^cost_/",
        ])
        .args(["-d", "500ms", "-p", &program.target.pid().to_string()])
        .args(extra)
        .arg("-o")
        .arg(file);
    let recorder = std::thread::spawn(move || run(&mut record));
    while !recorder.is_finished() {
        program.ticks()?;
    }
    let out = recorder
        .join()
        .map_err(|_| anyhow!("the recorder's thread"))?;
    summary(&out?.expect_code(0)?.stdout)
}

/// What a busy machine may need until its load is steady for a second.
const ATTEMPTS: usize = 4;

/// Of the range of all calls.
fn width(file: &Path, options: &[&str], function: &str) -> Result<f64> {
    let row = row_of(file, options, function)?;
    let end = |name| number(&row, name);
    Ok(end("total_corrected_high_tsc")? - end("total_corrected_low_tsc")?)
}

/// How much of what a root's calls take is theirs, and not what probes cost in it.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    Most,
    Little,
}

/// The cost in the program itself gives a range that contains the true time. What all calls together have added makes it tighter,
/// where that is more than what the root's own stamps may cost besides.
fn checked(source: &str, root: &str, own: Own) -> Result<()> {
    let mut program = Program::start(source)?;
    program.ticks()?;
    let (plain, file) = (scratch().join("plain.hop"), scratch().join("checked.hop"));
    for attempt in 1..=ATTEMPTS {
        let mut bare = vec![program.ticks()?];
        // Clocks that are read early leave ranges wide, with and without.
        recorded(&mut program, &["--ordered-stamps"], &plain)?;
        bare.push(program.ticks()?);
        let said = recorded(&mut program, &["--ordered-stamps", "--check-cost"], &file)?;
        bare.push(program.ticks()?);
        expect_checked(&said)?;
        let found = &said["cost_check"];
        println!("{found}");
        if found["in_place"].is_null() {
            // A reason is an answer, and the report says that it has none.
            ensure!(found["why_not"].is_string() && attempt < ATTEMPTS, "{said}");
            continue;
        }
        let without = Stated::read(&plain, root)?;
        let with = Stated::read(&file, root)?;
        let least = bare.iter().copied().fold(f64::MAX, f64::min);
        let most = bare.iter().copied().fold(0.0, f64::max);
        for (name, s) in [("without", &without), ("with", &with)] {
            let error = 100.0 * s.error((least + most) / 2.0);
            println!(
                "{root} {name}: {:.0} ({:.0}..{:.0}) of {least:.0}..{most:.0} ticks, {error:.0} % off",
                s.median, s.low, s.high
            );
        }
        ensure!(with.low <= most * MARGIN, "{:.0} at least", with.low);
        ensure!(with.high >= least / MARGIN, "{:.0} at most", with.high);
        // The one thread, chosen as a part of the recording: as if nothing were known of all calls together.
        let thread = program.target.pid().to_string();
        let [together, alone] =
            [&[][..], &["--thread", &thread]].map(|options| width(&file, options, root));
        let (together, alone) = (together?, alone?);
        println!("{together} wide, by single calls {alone}");
        match own {
            Own::Most => ensure!(together < alone, "the range is not tighter"),
            Own::Little => ensure!(together <= alone, "the range is wider"),
        }
        let path = file.to_str().context("path")?;
        let text = hopscope(&["report", path])?.expect_code(0)?.stdout;
        ensure!(text.contains("pairs of windows"), "{text}");
        return Ok(());
    }
    unreachable!("the last attempt returns")
}

/// A program that does nothing: that is said, and its times are as without.
fn idle() -> Result<()> {
    let mut program = Program::start("cost/lookups.c")?;
    program.ticks()?;
    let file = scratch().join("idle.hop");
    let pid = program.target.pid();
    let out = run(&mut command_checking(pid, &["/^cost_/"], &file, "300ms"))?.expect_code(0)?;
    let said = summary(&out.stdout)?;
    expect_checked(&said)?;
    let why_not = said["cost_check"]["why_not"].as_str().unwrap_or_default();
    ensure!(why_not.contains("pairs of windows"), "{said}");
    let path = file.to_str().context("path")?;
    let text = hopscope(&["report", path])?.expect_code(0)?.stdout;
    ensure!(text.contains("not checked in the program"), "{text}");
    Ok(())
}

/// With a clock that waits all of a body is between its stamps, the range ends near to what it takes, and no report says that the clock
/// may be early.
fn ordered() -> Result<()> {
    let chain = Chain::recorded(&["--ordered-stamps"])?;
    ensure!(!chain.leaves_out(), "a part of it is left out");
    let [least, most] = chain.bare;
    ensure!(chain.stated.low <= most * MARGIN, "at least too long");
    ensure!(chain.stated.high >= least / MARGIN, "at most too short");
    ensure!(chain.stated.high <= most * MARGIN, "at most too long");
    ensure!(!chain.report.contains(EARLY), "{}", chain.report);
    Ok(())
}

/// Where a part of a body is not between its stamps the report says so, and the range has all of it.
fn early() -> Result<()> {
    let chain = Chain::recorded(&[])?;
    if chain.leaves_out() {
        ensure!(chain.stated.high >= chain.bare[0], "at most too short");
        ensure!(chain.report.contains(EARLY), "{}", chain.report);
    }
    Ok(())
}

const EARLY: &str = "before the body is done";

/// A recording of a body whose instructions wait for each other.
struct Chain {
    /// Ticks a call by the program's own clock: before and behind, the less first.
    bare: [f64; 2],
    /// Between a call's stamps.
    read: f64,
    stated: Stated,
    report: String,
}

impl Chain {
    fn recorded(extra: &[&str]) -> Result<Chain> {
        let mut program = Program::start("cost/chain.c")?;
        program.ticks()?;
        let file = scratch().join("chain.hop");
        let before = program.ticks()?;
        recorded(&mut program, extra, &file)?;
        let behind = program.ticks()?;
        let path = file.to_str().context("path")?;
        let chain = Chain {
            bare: [before.min(behind), before.max(behind)],
            read: read_by_a_call(&row(&file, "cost_chain")?)?,
            stated: Stated::read(&file, "cost_chain")?,
            report: hopscope(&["report", "-v", path])?.expect_code(0)?.stdout,
        };
        let Stated { low, median, high } = chain.stated;
        let (read, bare) = (chain.read, chain.bare);
        println!("{median:.0} ({low:.0}..{high:.0}), {read:.0} read, of {bare:?} ticks");
        Ok(chain)
    }

    fn leaves_out(&self) -> bool {
        self.read < self.bare[0] * ALL_OF_IT
    }
}

/// Calls behind each other have stamps in common: of what that costs nothing is in their caller's own time, which is not less than
/// nothing, however the cost was measured, and in whichever lap of a ring.
fn pipeline(buffer: &str) -> Result<()> {
    let mut program = Program::start("cost/short_calls.c")?;
    program.ticks()?;
    let file = scratch().join("pipeline.hop");
    let before = program.ticks()?;
    recorded(&mut program, &["--buffer", buffer], &file)?;
    let bare = [before, program.ticks()?];
    let caller = row(&file, "cost_caller")?;
    let [low, high] = of_a_call(&caller)?;
    let calls = number(&caller, "calls")?;
    let own = ["self_corrected_low_tsc", "self_corrected_high_tsc"];
    let [own_low, own_high] = own.map(|field| number(&caller, field).map(|ticks| ticks / calls));
    let (own_low, own_high) = (own_low?, own_high?);
    println!("{low:.0}..{high:.0}, own {own_low:.0}..{own_high:.0} of {bare:?} ticks bare");
    let [least, most] = [bare[0].min(bare[1]), bare[0].max(bare[1])];
    ensure!(
        low <= most * MARGIN && high >= least / MARGIN,
        "{low:.0}..{high:.0} of {bare:?}"
    );
    ensure!(
        own_low <= most && own_high > 0.0,
        "own {own_low:.0}..{own_high:.0}"
    );
    let fused = number(&row(&file, "cost_look")?, "fused_calls")?;
    ensure!(fused > 0.0, "no stamps were in common");
    Ok(())
}

/// Of `whole` the range contains what the program's own clock says of a round; none of `functions` is said to take more.
fn range(source: &str, whole: &str, functions: &[&str]) -> Result<()> {
    let mut program = Program::start(source)?;
    program.ticks()?; // the table's pages
    let file = scratch().join("cost.hop");
    let mut bare = vec![program.ticks()?];
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--json", "--max-overhead", "1e9"]);
    record.args([
        "-f",
        "/^cost_/",
        "-p",
        &program.target.pid().to_string(),
        "-o",
    ]);
    record.arg(&file);
    let recording = Recording::start_command(record, &file)?;
    let measured = program.ticks()?;
    recording.stop()?;
    bare.push(program.ticks()?);
    // Both, and not the better one: the machine may be slower at one time.
    let [least, most] = [bare[0].min(bare[1]), bare[0].max(bare[1])];
    for &function in functions {
        let [low, high] = of_a_call(&row(&file, function)?)?;
        println!("{function}: {low:.0}..{high:.0} of {bare:?} ticks bare, {measured} measured");
        ensure!(
            low <= most * MARGIN,
            "{function}: {low:.0} at least, {bare:?} bare"
        );
        ensure!(
            function != whole || high >= least / MARGIN,
            "{function}: {high:.0} at most, {bare:?} bare"
        );
    }
    Ok(())
}
