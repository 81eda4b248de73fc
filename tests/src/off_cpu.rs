//! When a call's thread did not run, against the kernel's own account of the thread.
use crate::recording::{Recording, command};
use anyhow::{Context, Result, ensure};
use hopscope_event::{OffCpu, RecordKind, ThreadIx};
use hopscope_tests::Requirement::{Fsgsbase, Gcc, Root, Schedstat};
use hopscope_tests::{Suite, Target, compile_c, counts, hopscope, scratch};
use hopscope_trace::TraceReader;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Root, Gcc, Fsgsbase, Schedstat];
    suite
        .case("off_cpu::a_busy_neighbour_preempts", needs, || {
            against_the_kernel("preempted", true, false)
        })
        .alone();
    suite
        .case("off_cpu::sleep_is_no_preemption", needs, || {
            against_the_kernel("asleep", false, false)
        })
        .alone();
    suite
        .case("off_cpu::threads_started_later", needs, || {
            against_the_kernel("thread", false, true)
        })
        .alone();
    suite.case("off_cpu::left_out_when_asked", needs, left_out);
}

/// What the program says of each call, in order.
struct Truth {
    calls: HashMap<String, Vec<Said>>,
}

/// In ns.
#[derive(Debug)]
struct Said {
    wall: u64,
    waited: u64,
    /// How long it took to read the account of the waiting, before and after.
    reading: u64,
}

fn run_program(name: &str, busy: bool, thread: bool, record: &[&str]) -> Result<(Truth, PathBuf)> {
    let program = compile_c(&["off_cpu.c"], &["-O2", "-lpthread"])?;
    let dir = scratch().join(format!("off_cpu-{name}"));
    std::fs::create_dir_all(&dir)?;
    let (said, file) = (dir.join("calls.txt"), dir.join("calls.hop"));
    let calls = counts().pick("150", "1500");
    let mut target = Command::new(program);
    target.args(["0", calls]).arg(&said).stdout(Stdio::piped());
    if thread {
        target.arg("thread");
    }
    // Longer than the scheduler lets a thread run while another waits: some calls are preempted.
    if busy {
        target.arg("long");
    }
    let mut target = Target::spawn(&mut target)?;
    let neighbour = match busy {
        true => {
            let mut spin = Command::new("taskset");
            spin.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
            Some(Target::spawn_now(&mut spin)?)
        }
        false => None,
    };
    let mut command = command(target.pid(), &["compute", "doze"], &file);
    command.args(record);
    let recording = Recording::start_command(command, &file)?;
    target.signal(Signal::SIGUSR1)?;
    let out = target.child().stdout.take().context("a pipe")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    ensure!(line == "done\n", "the program said {line:?}");
    recording.stop()?;
    drop(neighbour);
    Ok((truth(&said)?, file))
}

fn truth(said: &Path) -> Result<Truth> {
    let mut calls: HashMap<String, Vec<Said>> = HashMap::new();
    for line in std::fs::read_to_string(said)?.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [name, wall, waited, reading] = words[..] else {
            anyhow::bail!("{line:?}");
        };
        let call = Said {
            wall: wall.parse()?,
            waited: waited.parse()?,
            reading: reading.parse()?,
        };
        calls.entry(name.into()).or_default().push(call);
    }
    Ok(Truth { calls })
}

/// Of one call as recorded, in ns: off CPU, preempted.
type Found = (u64, u64);

/// By looking at every interval, which the analysis does not do.
fn found(file: &Path) -> Result<HashMap<String, Vec<Found>>> {
    let reader = TraceReader::open(file)?;
    let tables = reader.tables();
    let mut rows: HashMap<ThreadIx, Vec<OffCpu>> = HashMap::new();
    for batch in reader.off_cpu() {
        let batch = batch?;
        ensure!(batch.lost_before == 0, "switches were lost");
        rows.entry(batch.thread).or_default().extend(batch.rows);
    }
    let mut calls: HashMap<String, Vec<Found>> = HashMap::new();
    let mut entry = HashMap::new();
    for batch in reader.batches() {
        let batch = batch?;
        for r in &batch.records {
            let key = (batch.thread, r.function());
            match r.kind() {
                Some(RecordKind::Entry) => drop(entry.insert(key, r.tsc)),
                Some(RecordKind::Exit) => {
                    let from = entry.remove(&key).context("an exit without an entry")?;
                    let name = &tables.functions[r.function().0 as usize].name;
                    let rows = rows.get(&batch.thread).map_or(&[][..], Vec::as_slice);
                    let frequency = tables.meta.tsc_frequency;
                    let ns = |ticks: u64| frequency.ns(ticks as i64) as u64;
                    let (off, preempted) = overlap(rows, from, r.tsc);
                    calls
                        .entry(name.clone())
                        .or_default()
                        .push((ns(off), ns(preempted)));
                }
                other => anyhow::bail!("a record of kind {other:?}"),
            }
        }
    }
    Ok(calls)
}

fn overlap(rows: &[OffCpu], from: u64, to: u64) -> (u64, u64) {
    let part = |r: &&OffCpu| r.back.0.min(to).saturating_sub(r.out.0.max(from));
    let preempted = rows.iter().filter(|r| r.preempted);
    (
        rows.iter().map(|r| part(&r)).sum(),
        preempted.map(|r| part(&r)).sum(),
    )
}

/// A call that computes is off the processor while it waits for one; one that sleeps, while it
/// sleeps and then waits. What a switch itself takes, the kernel books on either side of it. Where the
/// thread was taken off while it read the account, that wait is in it and not in the call: such
/// calls say nothing, and most are none. Alone, because beside real-time processes that move packets
/// the account was seen to say up to 0.4 ms a call more, and more than the call had left.
fn against_the_kernel(name: &str, busy: bool, thread: bool) -> Result<()> {
    const SWITCH_NS: u64 = 60_000;
    const SLEPT_NS: u64 = 700_000;
    const READING_NS: u64 = 40_000;
    let (truth, file) = run_program(name, busy, thread, &[])?;
    let found = found(&file)?;
    for (function, said) in &truth.calls {
        let recorded = found.get(function).context("calls of each function")?;
        ensure!(
            recorded.len() == said.len(),
            "{function}: calls are missing"
        );
        let sleeps = function == "doze";
        let calls: Vec<_> = said.iter().zip(recorded).collect();
        let clear: Vec<_> = (calls.iter())
            .filter(|(said, _)| said.reading < READING_NS)
            .collect();
        let odd: Vec<_> = (clear.iter())
            .filter(|(said, (off, _))| match sleeps {
                true => {
                    let least = SLEPT_NS + said.waited;
                    *off + SWITCH_NS < least || *off >= said.wall
                }
                false => said.waited.abs_diff(*off) >= SWITCH_NS,
            })
            .collect();
        let sum = |of: &dyn Fn(&Found) -> u64| recorded.iter().map(of).sum::<u64>();
        let (off_ns, preempted_ns) = (sum(&|f| f.0), sum(&|f| f.1));
        println!(
            "{name} {function}: {} of {} calls read without a break, {} of them off by {SWITCH_NS} ns; \
             recorded {off_ns} ns, of it preempted {preempted_ns} ns",
            clear.len(),
            calls.len(),
            odd.len(),
        );
        ensure!(clear.len() * 2 > calls.len(), "the account says too little");
        ensure!(odd.len() * 20 <= clear.len(), "{function}: {odd:?}");
        // The odd ones may not be odd by anything.
        let slept_ns = if sleeps { SLEPT_NS } else { 0 };
        let expected_ns: u64 = clear.iter().map(|(said, _)| said.waited + slept_ns).sum();
        let clear_ns: u64 = clear.iter().map(|(_, (off, _))| *off).sum();
        let about_ns = expected_ns / 4 + 50 * SWITCH_NS;
        // A sleep is as long as the machine makes it: at most as long as the program itself saw it take.
        let most_ns = match sleeps {
            true => clear.iter().map(|(said, _)| said.wall).sum(),
            false => expected_ns + about_ns,
        };
        ensure!(
            expected_ns < clear_ns + about_ns && clear_ns < most_ns,
            "{function}: {clear_ns} ns off the processor, not about {expected_ns}, at most {most_ns}"
        );
        match sleeps {
            // Being woken late is not being taken off.
            true => ensure!(preempted_ns * 10 < off_ns, "sleep was taken for preemption"),
            false => ensure!(preempted_ns == off_ns, "it never sleeps by itself"),
        }
        ensure!(
            !busy || sleeps || off_ns > 0,
            "the neighbour never had the processor"
        );
    }
    reported(&file, &found)
}

/// The report's sums, computed in another way, are the same to the rounding of each call.
fn reported(file: &Path, found: &HashMap<String, Vec<Found>>) -> Result<()> {
    let path = file.to_str().context("path")?;
    let out = hopscope(&["report", path, "--json"])?.expect_code(0)?;
    let mut seen = 0;
    for line in out.stdout.lines() {
        let line: Value = serde_json::from_str(line)?;
        let Some(calls) = line["function"].as_str().and_then(|name| found.get(name)) else {
            continue;
        };
        seen += 1;
        let of = |field: &str| line[field].as_f64().context("times of each function");
        let (off, preempted) = (of("off_cpu_ns")?, of("preempted_ns")?);
        let sums = calls
            .iter()
            .fold((0, 0), |sum, c| (sum.0 + c.0, sum.1 + c.1));
        let near = |a: f64, b: u64| (a - b as f64).abs() <= calls.len() as f64 + 1.0;
        ensure!(near(off, sums.0) && near(preempted, sums.1), "{line}");
    }
    ensure!(seen == found.len(), "functions are missing: {}", out.stdout);
    Ok(())
}

fn left_out() -> Result<()> {
    let (_, file) = run_program("left_out", false, false, &["--no-off-cpu"])?;
    let reader = TraceReader::open(&file)?;
    let entry = reader.tables().off_cpu.clone().context("it is said")?;
    let why_not = entry.why_not.context("a reason")?;
    ensure!(why_not.contains("--no-off-cpu"), "{why_not}");
    ensure!(reader.off_cpu().next().is_none(), "switches were recorded");
    let path = file.to_str().context("path")?;
    let out = hopscope(&["report", path])?.expect_code(0)?;
    ensure!(
        out.stdout
            .contains("off CPU    not recorded: disabled by --no-off-cpu"),
        "{}",
        out.stdout
    );
    Ok(())
}
