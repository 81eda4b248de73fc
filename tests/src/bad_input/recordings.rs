//! Recordings that were damaged, and recordings that cannot be written.
use super::steady::Steady;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, hopscope, hopscope_bin, scratch};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root};
    suite.case("bad_input::recording_cut_anywhere", &[Gcc], cut_anywhere);
    suite.case("bad_input::recording_with_wrong_bytes", &[Gcc], wrong_bytes);
    suite.case("bad_input::output_in_no_directory", &[Gcc], no_directory);
    suite.case("bad_input::disk_full", &[Gcc, Root], disk_full);
}

const CALLS: &str = "20000";

fn recording(dir: &Path) -> Result<Vec<u8>> {
    let steady = Steady::start(&[])?;
    let path = dir.join("whole.hop");
    // Each damaged copy is read as a whole.
    let words = ["-c", CALLS, "--no-calibration", "-f", "steady_mix"];
    let (pid, file) = (steady.pid(), path.to_str().context("path")?);
    hopscope(&[&["record", "-p", &pid, "-o", file], &words[..]].concat())?.expect_code(0)?;
    steady.unharmed()?;
    let bytes = std::fs::read(&path)?;
    ensure!(bytes.len() > 10_000, "only {} bytes recorded", bytes.len());
    Ok(bytes)
}

/// Whatever is in the file: a report or a refusal, never a crash, and damage is named.
fn read_damaged(path: &Path) -> Result<()> {
    let name = path.to_str().context("path")?;
    let out = hopscope(&["report", name])?;
    match out.code {
        Some(0) => Ok(()),
        Some(2) => out.expect_refusal(&["damaged.hop"]),
        code => Err(anyhow::anyhow!(
            "report ended with {code:?}: {}",
            out.stderr
        )),
    }
}

fn cut_anywhere() -> Result<()> {
    let dir = scratch();
    let whole = recording(&dir)?;
    let path = dir.join("damaged.hop");
    let steps = counts().pick(20, 500);
    for step in 0..steps {
        let length = whole.len() * step / steps;
        std::fs::write(&path, &whole[..length])?;
        read_damaged(&path).with_context(|| format!("cut after {length} bytes"))?;
    }
    // Without its last byte it is no longer whole, and a report must say so.
    std::fs::write(&path, &whole[..whole.len() - 1])?;
    let out = hopscope(&["report", path.to_str().context("path")?])?.expect_code(0)?;
    let said = format!("{}{}", out.stdout, out.stderr);
    let named = ["damage", "cut", "killed", "incomplete", "not whole"];
    ensure!(
        named.iter().any(|word| said.contains(word)),
        "a cut recording is reported as if it were whole: {said}"
    );
    Ok(())
}

fn wrong_bytes() -> Result<()> {
    let dir = scratch();
    let whole = recording(&dir)?;
    let path = dir.join("damaged.hop");
    let steps = counts().pick(40, 1000);
    for step in 0..steps {
        let mut bytes = whole.clone();
        // The first kilobytes hold the tables, where a wrong length could lead far away.
        let at = match step % 2 {
            0 => step * 97 % 4096.min(bytes.len()),
            _ => bytes.len() * step / steps,
        };
        bytes[at] ^= 1 << (step % 8);
        std::fs::write(&path, &bytes)?;
        read_damaged(&path).with_context(|| format!("bit {} of byte {at}", step % 8))?;
    }
    Ok(())
}

fn no_directory() -> Result<()> {
    let steady = Steady::start(&[])?;
    let path = Path::new("/no/such/directory/out.hop");
    steady
        .record_to(path, &["steady_mix"])?
        .expect_refusal(&["/no/such/directory"])?;
    steady.unharmed()
}

/// A file system of one megabyte, in a mount namespace that ends with the command.
fn disk_full() -> Result<()> {
    let steady = Steady::start(&[])?;
    let dir = scratch();
    let script = format!(
        "mount -t tmpfs -o size=1m none {0} || exit 9
        {1} record --json --no-calibration -p {2} -f steady_mix -d 20s -o {0}/out.hop; code=$?
        {1} info --json {0}/out.hop; exit $code",
        dir.display(),
        hopscope_bin().display(),
        steady.pid()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]);
    let out = hopscope_tests::command::run(&mut command)?.expect_code(2)?;
    let last = out.stderr.lines().last().unwrap_or("");
    ensure!(last.starts_with("hopscope: "), "{}", out.stderr);
    ensure!(last.contains("No space left"), "{}", out.stderr);
    let lines: Result<Vec<Value>, _> = out.stdout.lines().map(serde_json::from_str).collect();
    let lines = lines.with_context(|| out.stdout.clone())?;
    let [summary, info] = &lines[..] else {
        anyhow::bail!("not a summary and what the file is: {}", out.stdout);
    };
    let (there, of) = (&summary["records_in_file"], &summary["recorded"]);
    ensure!(
        there.as_u64() > Some(0) && *there == info["records"] && there.as_u64() <= of.as_u64(),
        "{}",
        out.stdout
    );
    steady.unharmed()
}
