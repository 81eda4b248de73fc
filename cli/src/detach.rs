//! `hopscope detach`: undoes what a killed recorder left behind, in forked children too, and
//! saves the records that are still in its rings.
use anyhow::{Context, bail};
use clap::Args;
use hopscope_probe::attach::memory::TargetMemory;
use hopscope_probe::live::found::{self, Found};
use hopscope_probe::live::leftover;
use hopscope_probe::live::remove::{self, Extent};
use hopscope_probe::live::table::{PatchTable, State};
use hopscope_probe::recorder::salvage;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
#[group(required = true)]
pub struct Targets {
    /// Process to clean
    #[arg(short, long, value_name = "PID")]
    pid: Option<i32>,
    /// Every process that carries probes of a recorder that is gone
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub struct DetachArgs {
    #[command(flatten)]
    targets: Targets,
    /// Search all memory for references to unused copies, not 16 MiB at most; the process stands
    /// still meanwhile, some hundred milliseconds a GiB
    #[arg(long)]
    search_all: bool,
    /// Save the records still in the rings to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object a line on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct How {
    json: bool,
    search_all: bool,
}

impl How {
    fn extent(&self) -> Extent {
        match self.search_all {
            true => Extent::All,
            false => Extent::Limited,
        }
    }
}

impl DetachArgs {
    fn how(&self) -> How {
        How {
            json: self.json,
            search_all: self.search_all,
        }
    }
}

pub fn run(args: DetachArgs) -> anyhow::Result<ExitCode> {
    hopscope_probe::attach::fault::arm();
    let mut found = match args.targets.pid {
        Some(pid) => {
            if !std::fs::exists(format!("/proc/{pid}")).unwrap_or(false) {
                bail!("no process {pid}");
            }
            finish_calls(&[pid]);
            found::in_process(pid)
        }
        None => found::everywhere(),
    };
    found.retain(|f| f.header.is_some());
    let only_descriptors = close_descriptors(args.targets.pid)?;
    if only_descriptors {
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        match args.targets.pid {
            Some(pid) => eprintln!("hopscope: process {pid} carries no probes"),
            None => eprintln!("hopscope: no process carries probes"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let done = clean(&found, None, args.output.as_deref(), &args.how())?;
    Ok(if done.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

/// The guardian's call: cleans what the recorder with this pid left in `targets` and their children.
pub fn after_recorder(recorder: i32, targets: &[i32], output: Option<&Path>) -> anyhow::Result<()> {
    finish_calls(targets);
    let mut found = found::everywhere();
    found.retain(|f| f.header.is_some());
    clean(&found, Some(recorder), output, &How::default())?;
    close_descriptors(None).map(drop)
}

/// A recorder killed early leaves nothing to see in a target that is yet to make its first call.
fn finish_calls(pids: &[i32]) {
    for &pid in pids {
        let seen = !found::in_process(pid).is_empty() || found::has_descriptors(pid);
        if seen || !found::may_be_in_a_call(pid) {
            continue;
        }
        if let Err(e) = remove::finish_call(pid) {
            eprintln!("hopscope: not known whether a killed recorder left a call unfinished: {e}");
        }
    }
}

/// What is left of an attach that was killed before it mapped anything; true when there was any.
fn close_descriptors(pid: Option<i32>) -> anyhow::Result<bool> {
    let mut pids = found::with_descriptors_only();
    pids.retain(|p| pid.is_none_or(|pid| pid == *p));
    for pid in &pids {
        remove::close_descriptors(*pid)?;
        println!("process {pid}: descriptors of an unfinished attach closed");
    }
    Ok(!pids.is_empty())
}

#[derive(Default)]
struct Done {
    failed: usize,
}

fn clean(
    found: &[Found],
    of: Option<i32>,
    output: Option<&Path>,
    how: &How,
) -> anyhow::Result<Done> {
    let mut done = Done::default();
    let mut salvaged: Vec<u64> = Vec::new();
    // The process that was attached to first: its restoration covers its forked children.
    let mut tables = Vec::new();
    for f in found {
        let Ok(memory) = TargetMemory::open(f.pid) else {
            // Gone meanwhile, or not ours to touch.
            if std::fs::exists(format!("/proc/{}/maps", f.pid)).unwrap_or(false) && of.is_none() {
                done.failed += 1;
                eprintln!("hopscope: no permission to restore process {}", f.pid);
            }
            continue;
        };
        match f.table(&memory) {
            Ok((table, _)) if of.is_some_and(|recorder| table.recorder != recorder) => {}
            Ok((table, state)) => tables.push((f, memory, table, state)),
            Err(e) => {
                done.failed += 1;
                eprintln!("hopscope: {e}");
            }
        }
    }
    tables.sort_by_key(|(f, _, table, _)| (f.pid != table.target, f.pid));
    let (unused, tables): (Vec<_>, Vec<_>) = tables
        .into_iter()
        .partition(|(_, _, table, state)| leftover::is_retired(table, *state));
    for (f, memory, table, state) in &tables {
        if of.is_none() && found::recorder_alive(table) {
            done.failed += 1;
            let (pid, recorder) = (f.pid, table.recorder);
            eprintln!(
                "hopscope: process {pid} is being recorded by hopscope, pid {recorder}; stop that one instead"
            );
            continue;
        }
        // Before the first byte changed there was nothing to record; retired copies have no rings.
        let has_records =
            *state != State::Prepared && table.pool.len > 0 && !salvaged.contains(&f.inode);
        let path = output
            .filter(|_| has_records)
            .map(|path| match salvaged.len() {
                0 => path.to_owned(),
                n => path.with_extension(format!("{n}.hop")),
            });
        salvaged.push(f.inode);
        if let Err(e) = restore(f, memory, table, *state, path.as_deref(), how) {
            done.failed += 1;
            eprintln!("hopscope: process {}: {e:#}", f.pid);
        }
    }
    let unused: BTreeSet<i32> = unused.iter().map(|(f, ..)| f.pid).collect();
    for pid in unused {
        if let Err(e) = take_away(pid, how) {
            done.failed += 1;
            eprintln!("hopscope: process {pid}: {e:#}");
        }
    }
    Ok(done)
}

/// Copies that were in use, or seemed to be, when their recording ended.
fn take_away(pid: i32, how: &How) -> anyhow::Result<()> {
    let taken = leftover::take_away(pid, how.extent())?;
    if how.json {
        let line = serde_json::json!({
            "type": "taken_away", "schema": 1, "pid": pid, "recordings": taken.recordings,
            "bytes": taken.bytes, "pause_ns": taken.pause.as_nanos() as u64, "notes": taken.notes,
        });
        println!("{line}");
    } else {
        println!(
            "process {pid}: unused copies of {} recordings taken away ({} KiB)",
            taken.recordings,
            taken.bytes >> 10
        );
        for note in &taken.notes {
            println!("  {note}");
        }
    }
    Ok(())
}

fn save(table: &PatchTable, memory: &TargetMemory, path: &Path) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let saved = salvage::salvage(table, memory, BufWriter::new(file))
        .with_context(|| format!("saving records to {}", path.display()))?;
    eprintln!(
        "hopscope: salvaged {} records into {} ({} lost, {} torn)",
        saved.recorded,
        path.display(),
        saved.lost,
        saved.torn
    );
    Ok(())
}

/// Entries first, then the records (nothing writes any more), then what is mapped.
fn restore(
    f: &Found,
    memory: &TargetMemory,
    table: &PatchTable,
    state: State,
    output: Option<&Path>,
    how: &How,
) -> anyhow::Result<()> {
    if found::in_process(f.pid)
        .iter()
        .all(|now| now.inode != f.inode)
    {
        return Ok(()); // went with its parent
    }
    let mut detached = remove::restore_all(f.pid, memory, table, f.inode, state)?;
    if let Some(path) = output {
        save(table, memory, path)?;
    }
    let searched = remove::reap_noted(f.pid, memory, table, how.extent(), &mut detached.notes);
    detached.pause = detached.pause.max(searched);
    if how.json {
        let line = serde_json::json!({
            "type": "detached", "schema": 1, "pid": f.pid,
            "functions": detached.restored, "pause_ns": detached.pause.as_nanos() as u64,
            "notes": detached.notes,
        });
        println!("{line}");
    } else {
        println!(
            "process {}: {} functions put back",
            f.pid, detached.restored
        );
        for note in &detached.notes {
            println!("  {note}");
        }
    }
    Ok(())
}
