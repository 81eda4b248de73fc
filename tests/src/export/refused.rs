//! What is not written, and what is left alone then.
use super::tricky;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, hopscope, hopscope_bin, scratch};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case("export::refusals_are_one_line", &[], refusals);
    suite.case(
        "export::binary_never_reaches_a_terminal",
        &[Requirement::Python3],
        terminal,
    );
    suite.case("export::a_failed_export_leaves_the_old_file", &[], failed);
}

fn refusals() -> Result<()> {
    let recording = tricky().display().to_string();
    let refused = |words: &[&str], said: &[&str]| -> Result<()> {
        hopscope(&[&["export", &recording], words].concat())?
            .expect_refusal(said)
            .with_context(|| format!("{words:?}"))
    };
    refused(
        &["--format", "folded", "--what", "calls"],
        &["--what", "csv, json and parquet"],
    )?;
    refused(&["--format", "csv", "--count"], &["--count", "folded"])?;
    refused(
        &["--format", "csv", "--thread", "1"],
        &["no thread 1", "hopscope info"],
    )?;
    refused(
        &["--format", "csv", "-o", "/nowhere/out.csv"],
        &["cannot write /nowhere/out.csv"],
    )?;
    hopscope(&["export", "/nowhere.hop", "--format", "csv"])?.expect_refusal(&["/nowhere.hop"])
}

/// Python has a terminal to give; the program's words come out of it.
fn terminal() -> Result<()> {
    let program =
        "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    for format in ["parquet", "perfetto"] {
        let out = run(Command::new("python3")
            .args(["-c", program])
            .arg(hopscope_bin())
            .arg("export")
            .arg(tricky())
            .args(["--format", format]))?
        .expect_code(2)?;
        let said: Vec<&str> = out.stdout.lines().collect();
        ensure!(
            said.len() == 1 && said[0].contains("-o FILE"),
            "not one line with a way out: {out:?}"
        );
    }
    Ok(())
}

fn failed() -> Result<()> {
    let dir = scratch();
    let (recording, out) = (dir.join("r.hop"), dir.join("out.csv"));
    let mut bytes = std::fs::read(tricky())?;
    std::fs::write(&recording, &bytes)?;
    let (name, out_name) = (recording.display().to_string(), out.display().to_string());
    let itself = ["export", &name, "--format", "csv", "-o", &name];
    hopscope(&itself)?.expect_refusal(&["is the recording itself"])?;
    ensure!(std::fs::read(&recording)? == bytes, "the recording changed");

    let full = ["export", &name, "--format", "json", "-o", "/dev/full"];
    hopscope(&full)?.expect_refusal(&["No space left"])?;

    std::fs::write(&out, "what was there")?;
    // It has begun to write when it finds that there are no packets.
    let late = ["export", &name, "--format", "pcapng", "-o", &out_name];
    hopscope(&late)?.expect_refusal(&["no generated packets"])?;
    bytes.truncate(8);
    std::fs::write(&recording, &bytes)?;
    hopscope(&["export", &name, "--format", "csv", "-o", &out_name])?.expect_refusal(&["r.hop"])?;
    ensure!(std::fs::read_to_string(&out)? == "what was there");
    let names: Vec<_> = std::fs::read_dir(&dir)?.collect::<Result<_, _>>()?;
    ensure!(names.len() == 2, "left behind: {names:?}");
    Ok(())
}
