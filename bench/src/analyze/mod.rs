//! `bench analyze`: how fast a recording becomes a report, and in how much memory. A program's tree of
//! 31 calls is recorded until the file is as large as wanted; then each view reads all of it, in turn.
mod report;
mod resource_usage;

use crate::Settings;
use crate::error::{Error, Result};
use crate::hopscope::{Hopscope, Recorded, beside_short_functions};
use crate::program::{Program, Target};
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use report::{Figures, Recording, View};
use serde_json::json;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Arguments behind `hopscope report FILE --json`; the first is the headline.
const VIEWS: [(&str, &[&str]); 3] = [
    ("function", &["--by", "function"]),
    ("tree", &["--by", "tree"]),
    ("run", &["--by", "run", "--root", "tree_00"]),
];
const PATTERN: &str = "hopscope-bench-program!tree_??";
/// Each is two records: what a recorder on another processor keeps up with.
const CALLS_PER_S: f64 = 11e6;
const FILE_BYTES: u64 = 10_000_000_000;
const FILE_BYTES_QUICK: u64 = 250_000_000;
const FILE_BYTES_LEAST: u64 = 20_000_000;
const ROUNDS: usize = 3;
/// Between two looks at the size of the file.
const PIECE_MS: u64 = 200;
/// Far more pieces than a file needs; one that does not grow shall end the bench.
const PIECES_MAX: u64 = 18_000;

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let (hopscope, program) = beside_short_functions(settings)?;
    let host = Host::look(Some(Target::start(&program)?.tsc_hz));
    let bytes = settings.pick(FILE_BYTES_LEAST, FILE_BYTES_QUICK, FILE_BYTES);
    settings.say(&format!("recording {} MB", bytes / 1_000_000));
    let (recorded, recording) = record(&hopscope, &program, bytes)?;
    output.sample(json!({"recording": recording}))?;
    let path = recorded.file.display().to_string();
    let mut views: Vec<View> = VIEWS.iter().map(|(name, _)| View::new(name)).collect();
    let mut reads = Vec::new();
    let rounds = if settings.quick { 1 } else { ROUNDS };
    for round in 0..rounds {
        reads.push(read_mib_per_s(&recorded.file)?);
        for (view, (name, arguments)) in views.iter_mut().zip(VIEWS) {
            settings.say(&format!("by {name}, {} of {rounds}", round + 1));
            let mut command = Command::new(&settings.hopscope);
            command.args(["report", &path, "--json"]).args(arguments);
            let used = resource_usage::by(&mut command)?;
            output.sample(json!({"view": name, "round": round, "used": used}))?;
            view.rounds.push(used);
        }
    }
    recorded.discard()?;
    let summary = Figures {
        recording,
        views,
        reads,
    }
    .summary();
    Ok(output.summary(&host, summary)?)
}

fn record(hopscope: &Hopscope, program: &Program, bytes: u64) -> Result<(Recorded, Recording)> {
    let mut target = Target::start(program)?;
    let recording = hopscope.record(target.pid, &[PATTERN], &["--buffer", "64M"])?;
    let path = recording.file.clone();
    let size = || written(&path);
    let mut pieces = 0;
    while size()? < bytes && pieces < PIECES_MAX {
        target.pace("tree_e", CALLS_PER_S, PIECE_MS)?;
        pieces += 1;
    }
    let recorded = recording.stop()?;
    let described = Recording {
        bytes: size()?,
        records: recorded.number("recorded")?,
        lost: recorded.number("lost")?,
    };
    Ok((recorded, described))
}

/// Bytes of a recording that is there, or is being written beside its place (`NAME.partial-PID`).
fn written(path: &Path) -> Result<u64> {
    let failed = || Error::file("look at", path);
    if let Ok(metadata) = fs::metadata(path) {
        return Ok(metadata.len());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = format!("{name}.partial-");
    let folder = path.parent().unwrap_or(Path::new("."));
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if entry.file_name().to_string_lossy().starts_with(&partial) {
            return Ok(entry.metadata().map_err(failed())?.len());
        }
    }
    Err(failed()(std::io::ErrorKind::NotFound.into()))
}

/// Reading the file alone: what no report is faster than, from the disk or the page cache.
fn read_mib_per_s(path: &Path) -> Result<f64> {
    let failed = || Error::file("read", path);
    let mut file = File::open(path).map_err(failed())?;
    let mut block = vec![0; 1 << 20];
    let (start, mut bytes) = (Instant::now(), 0);
    loop {
        match file.read(&mut block).map_err(failed())? {
            0 => break,
            read => bytes += read,
        }
    }
    Ok(bytes as f64 / f64::from(1 << 20) / start.elapsed().as_secs_f64())
}
