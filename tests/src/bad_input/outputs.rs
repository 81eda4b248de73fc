//! What `-o` names, before and after a recording.
use super::steady::Steady;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, hopscope, hopscope_bin, scratch};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root};
    suite.case(
        "bad_input::a_failed_attach_leaves_what_the_output_was",
        &[Gcc],
        failed_attach,
    );
    suite.case(
        "bad_input::a_device_as_output_is_written_and_stays",
        &[Gcc, Root],
        device,
    );
    suite.case(
        "bad_input::only_its_owner_reads_a_recording",
        &[Gcc],
        permissions,
    );
}

/// The attach fails when all threads are stopped and the output has been begun.
fn failing(steady: &Steady, output: &Path) -> Result<()> {
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--no-calibration", "-f", "steady_mix", "-p"]);
    record.arg(steady.pid()).arg("-o").arg(output);
    let refused = run(record.env("HOPSCOPE_FAILURE_POINT", "15"))?;
    refused.expect_refusal(&["the test wants it to fail"])
}

fn failed_attach() -> Result<()> {
    let steady = Steady::start(&[])?;
    let dir = scratch();
    let output = dir.join("kept.hop");
    std::fs::write(&output, "of last week")?;
    failing(&steady, &output)?;
    ensure!(std::fs::read(&output)? == b"of last week", "overwritten");
    let left: Vec<_> = std::fs::read_dir(&dir)?
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains(".hop"))
        .collect();
    ensure!(left == ["kept.hop"], "{left:?}");
    steady.unharmed()
}

/// A device like /dev/null, but not the machine's own.
fn device() -> Result<()> {
    let steady = Steady::start(&[])?;
    let null = scratch().join("null");
    mknod(
        &null,
        SFlag::S_IFCHR,
        Mode::S_IRUSR | Mode::S_IWUSR,
        makedev(1, 3),
    )?;
    failing(&steady, &null)?;
    let said = steady.record_to(&null, &["steady_mix"])?.expect_code(0)?;
    ensure!(!said.stdout.contains("next:"), "{}", said.stdout);
    let kind = std::fs::symlink_metadata(&null)?.file_type();
    ensure!(kind.is_char_device(), "{kind:?}");
    steady.unharmed()
}

fn permissions() -> Result<()> {
    let steady = Steady::start(&[])?;
    let output = scratch().join("secret.hop");
    let mode = || Ok::<_, std::io::Error>(std::fs::metadata(&output)?.mode() & 0o777);
    // Also where a file that all may read was there.
    std::fs::write(&output, "old")?;
    steady.record_to(&output, &["steady_mix"])?.expect_code(0)?;
    ensure!(mode()? == 0o600, "{:o}", mode()?);
    let (pid, path) = (steady.pid(), output.to_str().context("path")?);
    let words = [
        "record",
        "--no-calibration",
        "-f",
        "steady_mix",
        "-c",
        "100",
        "-p",
        &pid,
        "-o",
        path,
    ];
    hopscope(&[&words[..], &["--mode", "0640"]].concat())?.expect_code(0)?;
    ensure!(mode()? == 0o640, "{:o}", mode()?);
    hopscope(&[&words[..], &["--mode", "8"]].concat())?.expect_code(2)?;
    let page = output.with_extension("html");
    let page = page.to_str().context("path")?;
    hopscope(&["report", path, "--html", page])?.expect_code(0)?;
    ensure!(std::fs::metadata(page)?.mode() & 0o777 == 0o600, "the page");
    steady.unharmed()
}
