//! `bench coverage`: how many functions of large programs can be measured, and whether the programs give the same output
//! with all of them measured at once.
mod place;
mod programs;
mod recorded;
mod report;
mod run;

use crate::Settings;
use crate::error::{Error, Result};
use crate::hopscope::Hopscope;
use crate::not_measured::NotMeasured;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use programs::{INPUTS, PROGRAMS, Program};
use recorded::Recorded;
use report::Row;
use run::Ran;
use serde_json::json;
use std::path::Path;
use std::process::Command;

pub fn run(settings: &Settings, only: &[String], mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let hopscope = Hopscope::of(settings);
    let dir = settings.build_dir.join("coverage");
    let dir = std::path::absolute(&dir).map_err(Error::file("find", &dir))?;
    std::fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
    for (name, text) in INPUTS {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(Error::file("write", &path))?;
    }
    let (mut rows, mut not_measured) = (Vec::new(), Vec::new());
    let wanted = |p: &&Program| only.is_empty() || only.iter().any(|name| name == p.name);
    // Few are enough to see that the bench works.
    let count = settings.pick(2, PROGRAMS.len(), PROGRAMS.len());
    for program in PROGRAMS.iter().filter(wanted).take(count) {
        settings.say(program.name);
        match measure(&hopscope, program, &dir)? {
            Ok(row) => {
                output.sample(json!(row))?;
                rows.push(row);
            }
            Err(reason) => not_measured.push(NotMeasured::new(program.name, reason)),
        }
    }
    Ok(output.summary(&host, report::summary(&rows, &not_measured))?)
}

/// The reason when it cannot be measured.
fn measure(
    hopscope: &Hopscope,
    program: &Program,
    dir: &Path,
) -> Result<std::result::Result<Row, String>> {
    let (scripts, dir) = (dir, &place::of(program, dir)?);
    let Some((file, arguments)) = program.command(dir) else {
        return Ok(Err("not installed".to_owned()));
    };
    let (ready, recording) = (dir.join("ready"), dir.join(format!("{}.hop", program.name)));
    for old in [&ready, &recording] {
        match std::fs::remove_file(old) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::file("remove", old)(e));
            }
            _ => {}
        }
    }
    let to_its_end = |command: &mut Command| -> Result<Ran> {
        let mut load = place::prepared(program, scripts, dir)?;
        place::as_its_user(program, command)?;
        run::to_its_end(command, load.as_mut(), dir, &ready)
    };
    let bare = to_its_end(Command::new(&file).args(&arguments))?;
    let mut record = Command::new(&hopscope.binary);
    record.args([
        "record",
        "-f",
        "*",
        "--no-calibration",
        "--max-overhead",
        "1e9",
    ]);
    record.args(["--threads", "256", "--buffer", "1M"]);
    record
        .arg("--ready-file")
        .arg(&ready)
        .arg("-o")
        .arg(&recording);
    record.arg("--").arg(&file).args(&arguments);
    let measured = to_its_end(&mut record)?;
    if bare.exit_code.is_none() {
        return Ok(Err("did not end by itself, or was not loaded".to_owned()));
    }
    if !bare.ended_in_time || !measured.ended_in_time {
        return Ok(Err("did not end in time".to_owned()));
    }
    if !recording.exists() {
        let said = std::fs::read_to_string(dir.join("stderr")).unwrap_or_default();
        return Ok(Err(crate::program::last_words(&said)));
    }
    let recorded = Recorded::read(hopscope, &recording)?;
    let row = Row {
        program: program.name,
        identical: bare.output == measured.output && bare.exit_code == measured.exit_code,
        own_percent: recorded.own_percent(),
        attach_s: measured.ready_s,
        bare_s: bare.wall_s,
        measured_s: measured.ready_s.map(|ready| measured.wall_s - ready),
        recorder_peak_rss_mib: measured.peak_rss_mib,
        recorded,
    };
    std::fs::remove_file(&recording).map_err(Error::file("remove", &recording))?;
    Ok(Ok(row))
}
