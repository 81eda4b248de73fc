//! A program whose passes are numbered, and what a recording holds of them.
use anyhow::{Context, Result, bail, ensure};
use hopscope_event::{Content, FunctionId, Record, RecordKind, ThreadIx};
use hopscope_tests::{Target, compile};
use hopscope_trace::TraceReader;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// What is measured of it. `pass` leaves by a jump to `done`.
pub(super) const FUNCTIONS: &[&str] = &["pass(number)", "look", "done", "idle"];
/// Records of a pass: entry, its value, four calls, its end, the call it jumps to.
pub(super) const RECORDS_A_PASS: u64 = 2 + 8 + 1 + 2;
/// Of `idle`, after each pass.
pub(super) const RECORDS_BETWEEN: u64 = 2;

pub(super) struct Program {
    target: Target,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) passes: u64,
    /// The pass that was slow.
    pub(super) slow: u64,
}

pub(super) fn binary() -> Result<PathBuf> {
    compile("gcc", &["flight/passes.c"], &["-O2", "-g"])
}

impl Program {
    pub(super) fn start() -> Result<Program> {
        let mut command = Command::new(binary()?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn(&mut command)?;
        let input = target.child().stdin.take().context("its input")?;
        let output = target.child().stdout.take().context("its output")?;
        Ok(Program {
            target,
            input,
            output: BufReader::new(output),
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    /// When it is done. Every result that the program checked was right.
    pub(super) fn command(&mut self, command: &str) -> Result<Answer> {
        writeln!(self.input, "{command}").context("the program is gone")?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the program ended: {}", self.target.child().wait()?);
        }
        let numbers = line.split_whitespace().map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
        let [passes, slow, wrong] = numbers[..] else {
            bail!("the program said {line:?}");
        };
        ensure!(wrong == 0, "{wrong} passes gave a wrong result");
        Ok(Answer { passes, slow })
    }

    /// Ends as asked, and says whether all results were right.
    pub(super) fn end(self) -> Result<()> {
        drop(self.input);
        let status = self.target.wait()?;
        ensure!(status.success(), "the program: {status}");
        Ok(())
    }

    /// Passes go on for so long at least: each rests for 100 us.
    pub(super) fn rest(&mut self, seconds: u64) -> Result<Answer> {
        self.command(&format!("rest {}", seconds * 10_000))
    }

    pub(super) fn terminate(self) -> Result<()> {
        self.target.signal(Signal::SIGTERM)?;
        self.end()
    }
}

pub(super) fn passes(reader: &TraceReader) -> Result<BTreeMap<ThreadIx, Vec<u64>>> {
    let mut passes: BTreeMap<ThreadIx, Vec<u64>> = BTreeMap::new();
    for batch in reader.batches() {
        let batch = batch?;
        let values = batch.records.iter().filter_map(|r| r.value());
        let numbers = values.filter_map(|v| match v.content {
            Content::Value(number) => Some(number),
            _ => None,
        });
        passes.entry(batch.thread).or_default().extend(numbers);
    }
    Ok(passes)
}

/// All of a pass, in order: kinds and functions of its records, as recorded.
pub(super) fn shape(records: &[Record]) -> Vec<(FunctionId, RecordKind)> {
    let known = |r: &Record| Some((r.function(), r.kind()?));
    records.iter().filter_map(known).collect()
}

/// One after the other, none missing.
pub(super) fn expect_contiguous(numbers: &[u64]) -> Result<()> {
    let hole = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1);
    ensure!(hole.is_none(), "passes are missing: {hole:?}");
    Ok(())
}
