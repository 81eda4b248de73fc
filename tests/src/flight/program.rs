//! The program whose passes are numbered, and what a recording holds of them.
use anyhow::{Context, Result, bail, ensure};
use hopscope_event::{Content, FlightEntry, FunctionId, Kind, Record, ThreadIx};
use hopscope_tests::{Target, compile};
use hopscope_trace::TraceReader;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
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

/// A saved file, with the rules that hold for each.
pub(super) struct Saved {
    pub(super) path: PathBuf,
    pub(super) reader: TraceReader,
    pub(super) flight: FlightEntry,
}

impl Saved {
    pub(super) fn open(path: &Path) -> Result<Saved> {
        let reader = TraceReader::open(path)?;
        let t = reader.tables();
        ensure!(t.damage.is_none(), "damaged: {:?}", t.damage);
        ensure!(t.unknown_chunks == 0, "{} unknown chunks", t.unknown_chunks);
        let flight = t.flight.clone().context("no word of the flight recorder")?;
        let summary = t.summary.as_ref().context("no summary")?;
        ensure!(
            (t.meta.start.tsc, summary.end.tsc) == (flight.from, flight.until),
            "the file is not as long as its window: {flight:?}"
        );
        ensure!(
            !t.clocks.is_empty() && t.off_cpu.is_some(),
            "tables are missing"
        );
        ensure!(t.captures.len() == 1, "{} captures", t.captures.len());
        ensure!(flight.fired as usize == t.triggers.len(), "{flight:?}");
        let heads: u64 = reader.heads().map(|h| u64::from(h.records)).sum();
        ensure!(
            heads == summary.recorded,
            "{heads} records, not {}",
            summary.recorded
        );
        let saved = Saved {
            path: path.into(),
            reader,
            flight,
        };
        saved.holds_its_window_only()?;
        Ok(saved)
    }

    fn holds_its_window_only(&self) -> Result<()> {
        let window = self.flight.from.0..=self.flight.until.0;
        for batch in self.reader.batches() {
            let batch = batch?;
            ensure!(
                batch.lost_before + batch.torn_before == 0,
                "records were lost"
            );
            let timed = batch.records.iter().filter(|r| r.value().is_none());
            for r in timed {
                ensure!(window.contains(&r.tsc), "{r:?} is not in {window:?}");
            }
        }
        Ok(())
    }

    pub(super) fn function(&self, name: &str) -> Result<FunctionId> {
        let all = &self.reader.tables().functions;
        let found = all.iter().find(|f| f.name == name);
        Ok(found.with_context(|| format!("no {name}"))?.id)
    }

    /// Numbers of the passes that begin in the file, by thread.
    pub(super) fn passes(&self) -> Result<BTreeMap<ThreadIx, Vec<u64>>> {
        passes(&self.reader)
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
pub(super) fn shape(records: &[Record]) -> Vec<(FunctionId, Kind)> {
    let known = |r: &Record| Some((r.function(), r.kind()?));
    records.iter().filter_map(known).collect()
}

/// One after the other, none missing.
pub(super) fn expect_contiguous(numbers: &[u64]) -> Result<()> {
    let hole = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1);
    ensure!(hole.is_none(), "passes are missing: {hole:?}");
    Ok(())
}
