//! `bench recorder`: how many records a second get into the file and onto the disk.
use crate::Settings;
use crate::error::{Error, Result};
use crate::hopscope::{Hopscope, beside_short_functions};
use crate::program::{Program, Target};
use crate::table::Table;
use hopscope_compare::host::Host;
use hopscope_compare::output::{Output, Summary};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::Path;
use std::time::Instant;

/// Calls a second offered by one thread in a hot loop (each call is two records), and the ring's
/// size. The last rate is more than any machine does: as fast as it goes.
const OFFERS: [(f64, &str); 5] = [
    (10e6, "4M"),
    (10e6, "64M"),
    (12.5e6, "64M"),
    (15e6, "64M"),
    (UNPACED, "64M"),
];
const OFFERS_QUICK: [(f64, &str); 3] = [(10e6, "4M"), (12.5e6, "64M"), (UNPACED, "64M")];
const UNPACED: f64 = 1e9;
const PATTERN: &str = "hopscope-bench-program!e5_0000";
const GOAL_RECORDS_PER_S: f64 = 20e6;
const GOAL_BYTES_PER_RECORD: f64 = 8.0;
/// At least this share of the records offered must be kept for a rate to count as sustained.
const SUSTAINED: f64 = 0.999;

/// One rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Case {
    /// `None`: as fast as the loop goes.
    calls_per_s_asked: Option<f64>,
    ring: &'static str,
    records_per_s_offered: f64,
    /// Recorded, over the time from the first call to the end of fdatasync.
    records_per_s_kept: f64,
    recorded: f64,
    lost: f64,
    torn: f64,
    /// Recorded, lost and torn together are what the program's calls make.
    complete: bool,
    bytes_per_record: f64,
    /// Of the recorder over the wall time, in percent of one CPU.
    recorder_cpu_percent: f64,
    /// Recorded in each second of the recorder's own CPU time: what it could keep of a CPU alone.
    records_per_cpu_s: f64,
    /// Plain write and fdatasync of as many bytes of the same content.
    disk_floor_mib_s: f64,
    /// What the recording itself wrote.
    written_mib_s: f64,
    seconds: f64,
    ended_because: Option<String>,
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let (hopscope, program) = beside_short_functions(settings)?;
    let host = Host::look(Some(Target::start(&program)?.tsc_hz));
    let (rates, milliseconds) = if settings.quick {
        (OFFERS_QUICK.as_slice(), 5_000)
    } else {
        (OFFERS.as_slice(), 30_000)
    };
    let mut cases = Vec::new();
    for (rate, ring) in rates {
        settings.say(&format!(
            "{} for {} s",
            asked(*rate).map_or("as fast as it goes".into(), |r| format!(
                "{:.1} M calls/s, ring {ring}",
                r / 1e6
            )),
            milliseconds / 1000
        ));
        let case = measure(&hopscope, &program, (*rate, ring), milliseconds)?;
        output.sample(json!(case))?;
        cases.push(case);
    }
    Ok(output.summary(&host, summarise(&cases))?)
}

fn asked(rate: f64) -> Option<f64> {
    (rate < UNPACED).then_some(rate)
}

fn measure(
    hopscope: &Hopscope,
    program: &Program,
    (rate, ring): (f64, &'static str),
    milliseconds: u64,
) -> Result<Case> {
    let mut target = Target::start(program)?;
    let recording = hopscope.record(target.pid, &[PATTERN], &["--buffer", ring])?;
    let path = recording.file.clone();
    let start = Instant::now();
    let paced = target.pace("hot_e5", rate, milliseconds)?;
    let recorded = recording.stop()?;
    let file = File::open(&path).map_err(Error::file("open", &path))?;
    file.sync_data().map_err(Error::file("sync", &path))?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes = file
        .metadata()
        .map_err(Error::file("look at", &path))?
        .len();
    drop(file);
    let disk_floor_mib_s = disk_floor(&path, bytes)?;
    let [kept, lost, torn] = [
        recorded.number("recorded")?,
        recorded.number("lost")?,
        recorded.number("torn")?,
    ];
    let cpu_s = recorded.number("recorder_cpu_ns")? / 1e9;
    let offered = 2.0 * paced.calls as f64;
    Ok(Case {
        calls_per_s_asked: asked(rate),
        ring,
        records_per_s_offered: offered / (paced.wall_ns as f64 / 1e9),
        records_per_s_kept: kept / seconds,
        recorded: kept,
        lost,
        torn,
        complete: kept + lost + torn == offered,
        bytes_per_record: bytes as f64 / kept,
        recorder_cpu_percent: cpu_s / seconds * 100.0,
        records_per_cpu_s: kept / cpu_s,
        disk_floor_mib_s,
        written_mib_s: bytes as f64 / seconds / f64::from(1 << 20),
        seconds,
        ended_because: recorded.text("ended_because"),
    })
}

/// Replaces the recording by as many bytes of its own content, written plainly; removes it.
fn disk_floor(path: &Path, bytes: u64) -> Result<f64> {
    const BLOCK: usize = 1 << 20;
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(64 << 20).read_to_end(&mut content))
        .map_err(Error::file("read", path))?;
    std::fs::remove_file(path).map_err(Error::file("remove", path))?;
    let start = Instant::now();
    let write = || {
        let mut file = File::create(path)?;
        let mut left = bytes as usize;
        for block in content.chunks(BLOCK).cycle() {
            let now = &block[..block.len().min(left)];
            file.write_all(now)?;
            left -= now.len();
            if left == 0 {
                break;
            }
        }
        file.sync_data()
    };
    write().map_err(Error::file("write", path))?;
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_file(path).map_err(Error::file("remove", path))?;
    Ok(bytes as f64 / seconds / f64::from(1 << 20))
}

fn summarise(cases: &[Case]) -> Summary {
    // The best that was kept for the whole time; sustained rates, which lost next to nothing, are
    // told apart from what is left of an overload.
    let best = cases
        .iter()
        .max_by(|a, b| a.records_per_s_kept.total_cmp(&b.records_per_s_kept));
    let sustained = cases
        .iter()
        .filter(|c| c.recorded >= SUSTAINED * (c.recorded + c.lost + c.torn))
        .map(|c| c.records_per_s_kept)
        .max_by(f64::total_cmp);
    let fields = json!({
        "records_per_s_kept": best.map(|c| c.records_per_s_kept),
        "records_per_s_sustained": sustained,
        "records_per_s_goal": GOAL_RECORDS_PER_S,
        "bytes_per_record": best.map(|c| c.bytes_per_record),
        "bytes_per_record_goal": GOAL_BYTES_PER_RECORD,
        "disk_floor_mib_s": best.map(|c| c.disk_floor_mib_s),
        "records_per_cpu_s": best.map(|c| c.records_per_cpu_s),
        "recorder_cpu_percent": best.map(|c| c.recorder_cpu_percent),
        "seconds": best.map(|c| c.seconds),
        "cases": cases,
    });
    Summary {
        unit: json!({
            "records_per_s_kept": "1/s", "bytes_per_record": "B", "disk_floor_mib_s": "MiB/s",
            "records_per_cpu_s": "1/s",
            "recorder_cpu_percent": "% of one CPU", "seconds": "s",
        }),
        fields,
        table: table(cases, best, sustained),
        complete: best.is_some() && cases.iter().all(|c| c.complete),
    }
}

fn table(cases: &[Case], best: Option<&Case>, sustained: Option<f64>) -> String {
    let head = [
        "asked calls/s",
        "ring",
        "offered M/s",
        "kept M/s",
        "lost %",
        "B/record",
        "CPU %",
        "M/CPU s",
        "written MiB/s",
        "floor MiB/s",
        "seconds",
        "",
    ];
    let mut rows = Table::new(0, head);
    for c in cases {
        let all = c.recorded + c.lost + c.torn;
        let rate = c.calls_per_s_asked;
        let warning = if c.complete {
            ""
        } else {
            "WARNING: records and calls do not agree"
        };
        rows.row([
            rate.map_or("unpaced".into(), |r| format!("{:.1} M", r / 1e6)),
            c.ring.to_string(),
            format!("{:.2}", c.records_per_s_offered / 1e6),
            format!("{:.2}", c.records_per_s_kept / 1e6),
            format!("{:.3}", 100.0 * (c.lost + c.torn) / all.max(1.0)),
            format!("{:.2}", c.bytes_per_record),
            format!("{:.1}", c.recorder_cpu_percent),
            format!("{:.1}", c.records_per_cpu_s / 1e6),
            format!("{:.0}", c.written_mib_s),
            format!("{:.0}", c.disk_floor_mib_s),
            format!("{:.1}", c.seconds),
            warning.to_owned(),
        ]);
    }
    let mut out = rows.to_string();
    let verdict = |met| if met { "met" } else { "missed" };
    if let Some(c) = best {
        let _ = writeln!(
            out,
            "\nrecords_per_s_kept {:.2} M/s, goal >= 20 M/s: {}\nbytes_per_record {:.2}, goal <= 8: {}",
            c.records_per_s_kept / 1e6,
            verdict(c.records_per_s_kept >= GOAL_RECORDS_PER_S),
            c.bytes_per_record,
            verdict(c.bytes_per_record <= GOAL_BYTES_PER_RECORD)
        );
    }
    let _ = match sustained {
        Some(rate) => writeln!(out, "kept with less than 0.1 % lost: {:.2} M/s", rate / 1e6),
        None => writeln!(out, "no rate was kept with less than 0.1 % lost"),
    };
    out
}
