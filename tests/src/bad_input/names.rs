//! A program that calls itself and its functions what would steer a terminal.
use super::steady::Steady;
use anyhow::{Context, Result, ensure};
use hopscope_event::text::is_steering;
use hopscope_tests::{Requirement, Suite, Target, compile_c, scratch};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "bad_input::names_from_a_target_steer_no_terminal",
        &[Requirement::Gcc],
        names,
    );
}

/// As long as what they replace: ESC sequences, C1, a line end, an override of direction.
const NAMES: [(&[u8], &[u8]); 2] = [
    (b"steady_mix\0", b"st\x1b]0;x\x07\xc2\x9b\0"),
    (b"steady_step\0", b"s\x1b[2J\xe2\x80\xae\npp\0"),
];
/// Of the program's file, so of the process, its thread and its module; not UTF-8.
const FILE: &[u8] = b"s\x1b[31m\n\xe2\x80\xae\xff";
const BOTH: &str = "s*!s*";

fn program(dir: &Path) -> Result<PathBuf> {
    let mut bytes = std::fs::read(compile_c(&["steady.c"], &["-O2"])?)?;
    for (name, hostile) in NAMES {
        let places: Vec<usize> = (0..bytes.len() - name.len())
            .filter(|at| bytes[*at..].starts_with(name))
            .collect();
        ensure!(!places.is_empty() && name.len() == hostile.len());
        for at in places {
            bytes[at..at + hostile.len()].copy_from_slice(hostile);
        }
    }
    let path = dir.join(OsStr::from_bytes(FILE));
    std::fs::write(&path, bytes)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode)?;
    Ok(path)
}

fn names() -> Result<()> {
    let dir = scratch();
    let path = program(&dir)?;
    let mut command = Command::new(&path);
    command.arg("a\x1b[5m\u{9b}b").stdout(Stdio::piped());
    let steady = Steady {
        target: Target::spawn(&mut command)?,
    };
    let pid = steady.pid();
    let trace = dir.join("out.hop");
    let trace = trace.to_str().context("path")?;
    let missing = "/no\x1b[31m/\u{202e}such";

    said(0, &["functions", "-p", &pid, "-f", BOTH])?;
    said(2, &["functions", "-p", &pid, "-f", "st\x1b_mix"])?;
    let of_file: [&OsStr; 3] = ["functions".as_ref(), "-b".as_ref(), path.as_ref()];
    said_of(0, &of_file)?;
    said(0, &["record", "--dry-run", "-p", &pid, "-f", BOTH])?;
    let recording = ["-c", "5000", "--no-calibration", "-o", trace];
    let record = ["record", "-p", &pid, "-f", BOTH];
    // Its summary holds no names.
    steers_nothing(0, &[&record[..], &recording].concat().map_os())?;
    for by in ["function", "module", "thread", "process", "tree"] {
        said(0, &["report", trace, "--by", by])?;
    }
    said(0, &["report", trace, "--events"])?;
    said(0, &["info", trace])?;
    said(0, &["diff", trace, trace])?;
    for format in ["folded", "hdr"] {
        said(0, &["export", trace, "--format", format])?;
    }
    said(2, &["report", missing])?;
    said(2, &["export", trace, "--format", "csv", "-o", missing])?;
    steady.unharmed()
}

trait MapOs {
    fn map_os(&self) -> Vec<&OsStr>;
}

impl MapOs for Vec<&str> {
    fn map_os(&self) -> Vec<&OsStr> {
        self.iter().map(|word| OsStr::new(*word)).collect()
    }
}

fn said(code: i32, words: &[&str]) -> Result<()> {
    said_of(code, &words.to_vec().map_os())
}

/// The names are there, escaped.
fn said_of(code: i32, words: &[&OsStr]) -> Result<()> {
    let escaped = steers_nothing(code, words)?;
    ensure!(escaped > 0, "{words:?} names nothing");
    Ok(())
}

/// Both streams are valid UTF-8 in which only line ends steer. How often ESC is shown escaped.
fn steers_nothing(code: i32, words: &[&OsStr]) -> Result<usize> {
    let out = Command::new(hopscope_tests::hopscope_bin())
        .args(words.iter().map(OsString::from))
        .stdin(Stdio::null())
        .output()?;
    let mut escaped = 0;
    let all = || format!("{words:?}: {out:?}");
    ensure!(out.status.code() == Some(code), all());
    for bytes in [&out.stdout, &out.stderr] {
        let text = std::str::from_utf8(bytes).with_context(all)?;
        let steering = |line: &&str| line.chars().any(is_steering);
        if let Some(line) = text.split('\n').find(steering) {
            anyhow::bail!("{words:?} printed {line:?}");
        }
        escaped += text.matches(r"\x1b").count();
    }
    Ok(escaped)
}
