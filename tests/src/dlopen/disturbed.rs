//! What happens to modules, and to their code, while they are looked at and measured.
use super::{SHARED, call, expect, following, load, plug_in, start};
use crate::called::Conversation;
use crate::recording::{Recording, Report, command};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c, counts, scratch};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root, Uprobes};
    suite.case("dlopen::slots_of_another_file", &[Gcc], || turns(true));
    suite.case("dlopen::slots_of_another_file_not_followed", &[Gcc], || {
        turns(false)
    });
    suite.case("dlopen::gone_during_the_attach", &[Gcc], comes_and_goes);
    suite.case(
        "dlopen::uprobe_on_what_was_added",
        &[Root, Gcc, Uprobes],
        uprobe,
    );
}

/// Two plug-ins of one layout.
fn alike(dir: &Path) -> Result<(PathBuf, PathBuf)> {
    let (first, second) = (dir.join("lazy_a.so"), dir.join("lazy_b.so"));
    let flags = [&SHARED[..], &["-fno-builtin", "-Wl,-z,lazy"]].concat();
    std::fs::copy(compile_c(&["dlopen/lazy.c"], &flags)?, &first)?;
    let flags = [&flags[..], &["-DSECOND"]].concat();
    std::fs::copy(compile_c(&["dlopen/lazy.c"], &flags)?, &second)?;
    Ok((first, second))
}

/// Slots that are not bound yet lie, and read, as those of the file that was there before, and are of another function.
fn turns(follow: bool) -> Result<()> {
    const ROUNDS: u64 = 12;
    let (mut target, dir) = (start()?, scratch());
    let (first, second) = alike(&dir)?;
    let file = dir.join("turns.hop");
    // What is there at the attach goes when the first turn begins.
    expect(
        &mut target,
        &format!("load 0 {}", first.display()),
        "loaded",
    )?;
    let patterns = ["lazy_?.so->libc.so.6!atol", "lazy_?.so->libc.so.6!a64l"];
    let record = match follow {
        true => following(target.pid(), &patterns, &file),
        false => command(target.pid(), &patterns, &file),
    };
    let recording = Recording::start_command(record, &file)?;
    expect(&mut target, "unload 0", "unloaded")?;
    let turns = format!("turns {ROUNDS} {} {}", first.display(), second.display());
    expect(&mut target, &turns, "0 wrong")?;
    recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    for (function, module) in [("atol", "lazy_a.so"), ("a64l", "lazy_b.so")] {
        let calls = report.entries(&format!("{function} [called from {module}]"));
        ensure!(calls <= 10 * ROUNDS, "{module}: {calls}");
    }
    target.expect_clean()
}

/// Recordings begin while they come and go: what is gone by then is as if it had not come.
fn comes_and_goes() -> Result<()> {
    let (mut target, dir) = (start()?, scratch());
    let (first, second) = alike(&dir)?;
    target.tell(&format!(
        "turns 30 {} {}",
        first.display(),
        second.display()
    ))?;
    let file = dir.join("comes.hop");
    for n in 0..counts().pick(4, 8) {
        // Calibrating takes longer than many of the turns, and lies between the look and the attach.
        let mut record = Command::new(hopscope_tests::hopscope_bin());
        record
            .args(["record", "--json", "--follow-dlopen", "-d", "200ms"])
            .args(["-p", &target.pid().to_string(), "-f", "lazy_?.so!*", "-o"])
            .arg(&file);
        let out = run(&mut record)?;
        ensure!(out.code == Some(0), "{n}: {}", out.stderr);
    }
    let said = target.told("own 1")?;
    ensure!(said == "0 wrong", "{said}");
    target.expect_clean()
}

/// The kernel goes on behind the instruction that it takes from the file: amid a jump, if one stayed.
fn uprobe() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("uprobe.hop"));
    let record = following(target.pid(), &["plug_*"], &file);
    let recording = Recording::start_command(record, &file)?;
    load(&mut target, 0, &plug_in)?;
    call(&mut target, 0, 100)?;
    let offset = target.told("offset 0")?;
    let setter = compile_c(&["uprobe.c"], &["-O1"])?;
    let mut command = Command::new(setter);
    command
        .arg(&plug_in)
        .args([offset, target.pid().to_string()]);
    let mut uprobe = Conversation::start(&mut command)?;
    let answer = uprobe.line()?;
    ensure!(answer == "set", "the uprobe: {answer}");
    expect(&mut target, "given 0", "given back")?;
    call(&mut target, 0, 100)?;
    uprobe.end()?;
    let said = recording.stop()?;
    let note = "plug_step: measured only until another tool set a breakpoint";
    ensure!(said["notes"].to_string().contains(note), "{said}");
    let report = Report::read(&file)?;
    report.expect_whole()?;
    ensure!(report.entries("plug_step") == 100);
    target.expect_clean()
}
