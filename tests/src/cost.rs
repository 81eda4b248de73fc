//! Where stamps end what a processor does at once: the time that the program takes unmeasured, by its
//! own clock, lies in the range that the report states.
use crate::recording::Recording;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope, hopscope_bin, scratch};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite
        .case("cost::the_unmeasured_time_lies_in_the_range", gcc, range)
        .alone();
}

/// A multiple of the ring's time would do as well; each takes some milliseconds.
const BATCHES: u32 = 400;
/// What the program's own median may be beside the mean of a report.
const MARGIN: f64 = 1.3;

struct Lookups {
    target: Target,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Lookups {
    fn start() -> Result<Lookups> {
        let program = compile_c(&["cost/lookups.c"], &["-O2"])?;
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn_now(&mut command)?;
        let to = target.child().stdin.take().context("was piped")?;
        let from = target.child().stdout.take().context("was piped")?;
        let from = BufReader::new(from);
        let mut lookups = Lookups { target, to, from };
        ensure!(lookups.line()? == "ready");
        Ok(lookups)
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
    let path = file.to_str().context("path")?;
    let words = ["report", path, "--json", "--time", "tsc"];
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

fn range() -> Result<()> {
    let mut program = Lookups::start()?;
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
    for function in ["cost_packet", "cost_lookup"] {
        let [low, high] = of_a_call(&row(&file, function)?)?;
        println!("{function}: {low:.0}..{high:.0} of {bare:?} ticks bare, {measured} measured");
        ensure!(
            low <= most * MARGIN,
            "{function}: {low:.0} at least, {bare:?} bare"
        );
        let whole = function == "cost_packet";
        ensure!(
            !whole || high >= least / MARGIN,
            "{function}: {high:.0} at most, {bare:?} bare"
        );
    }
    Ok(())
}
