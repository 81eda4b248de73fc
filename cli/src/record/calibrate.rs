//! What a probe costs on this machine: measured on a child of our own, by the same attach that
//! the targets get.
use anyhow::{Context, bail};
use hopscope_event::ring::Visit;
use hopscope_event::{Kind, ProbeCost, ProcessEntry, ProcessIx, Record, RecordingMeta};
use hopscope_probe::attach;
use hopscope_probe::counters::read_tsc;
use hopscope_probe::live::install::{InstallOptions, install};
use hopscope_probe::live::table::PatchTable;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::plan::Plan;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

/// What is measured: a body of a few instructions.
#[inline(never)]
fn calibration_leaf(x: u64) -> u64 {
    (x ^ 5).wrapping_mul(3)
}

const CALLS: u64 = 1_000;
const BATCHES: usize = 400;

/// Hidden subcommand: times the leaf each time a line arrives, until standard input ends.
pub(crate) fn run_child() -> anyhow::Result<ExitCode> {
    let leaf: fn(u64) -> u64 = black_box(calibration_leaf);
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let mut batches: Vec<u64> = (0..BATCHES)
            .map(|_| {
                let from = read_tsc();
                let x = (0..CALLS).fold(1, |x, _| leaf(x));
                let ticks = read_tsc() - from;
                black_box(x);
                ticks as u64
            })
            .collect();
        batches.sort_unstable();
        // In thousandths of a tick a call: batches are 1,000 calls.
        writeln!(
            out,
            "{} {} {}",
            batches[BATCHES / 20],
            batches[BATCHES / 2],
            batches[BATCHES * 9 / 10]
        )?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Leaf {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Leaf {
    fn start() -> anyhow::Result<Leaf> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("__calibrate")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the calibration process")?;
        let input = child.stdin.take().context("its input")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        let mut leaf = Leaf {
            child,
            input,
            output,
        };
        leaf.line()?;
        Ok(leaf)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the calibration process ended early");
        }
        Ok(line)
    }

    /// Thousandths of a tick a call: lowest twentieth, median, highest tenth.
    fn time(&mut self) -> anyhow::Result<[i64; 3]> {
        writeln!(self.input, "time")?;
        let line = self.line()?;
        let numbers: Vec<i64> = line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        numbers
            .try_into()
            .map_err(|_| anyhow::anyhow!("unexpected answer {line:?}"))
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        // It may hold patched code: it must not outlive us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bias and pair cost in ticks.
pub(super) fn measure(meta: &RecordingMeta, options: &InstallOptions) -> anyhow::Result<ProbeCost> {
    let mut leaf = Leaf::start()?;
    let pid = leaf.child.id() as i32;
    leaf.time()?; // warm-up
    let bare = leaf.time()?;
    let mut plan = Plan::default();
    let items = plan.add_process(pid, &[Pattern::parse("/calibration_leaf$/")?], false)?;
    if items.len() != 1 {
        let why = plan
            .refusals
            .first()
            .map(|r| r.reason.clone())
            .unwrap_or_default();
        bail!(
            "{} functions to calibrate with instead of one {why}",
            items.len()
        );
    }
    let table = PatchTable::new(
        meta.clone(),
        ProcessEntry {
            ix: ProcessIx(0),
            pid,
            comm: "calibration".into(),
            command_line: vec![],
        },
        plan.modules,
        plan.functions,
    );
    let selected: Vec<_> = items.iter().map(|i| i.selected()).collect();
    let options = InstallOptions {
        contexts: 4,
        empty_probes: false,
        ..*options
    };
    let mut installed = install(pid, selected, &options, table)?;
    leaf.time()?;
    let probed = leaf.time()?;
    let mut records = Vec::new();
    let context = installed
        .threads
        .first()
        .map_or(0, |(_, context)| *context as usize);
    if let Some(ring) = installed.pool().ring(context) {
        ring.drain(
            &mut Default::default(),
            Visit::Live,
            usize::MAX,
            &mut records,
        );
    }
    installed.detach()?;
    // Our own child's stops are nobody's pause.
    attach::ledger::take(pid);
    let pair = [0, 1, 2].map(|i| ((probed[i] - bare[1]).max(0) as u64 + 500) / 1000);
    Ok(ProbeCost {
        bias_ticks: bias(&records, bare[1] as u64 / 1000)?,
        pair_ticks: pair,
    })
}

/// What a call of the leaf reads between its own stamps, less what the call itself takes.
fn bias(records: &[Record], bare_ticks: u64) -> anyhow::Result<[u64; 3]> {
    let mut read: Vec<u64> = records
        .windows(2)
        .filter(|w| w[0].kind() == Some(Kind::Entry) && w[1].kind() == Some(Kind::Exit))
        .map(|w| w[1].tsc.saturating_sub(w[0].tsc).saturating_sub(bare_ticks))
        .collect();
    if read.len() < 1000 {
        bail!("only {} measured calls to calibrate with", read.len());
    }
    read.sort_unstable();
    Ok([5, 50, 90].map(|percent| read[read.len() * percent / 100]))
}
