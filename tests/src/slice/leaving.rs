//! Whatever ends the process, its programs, maps and links go with it.
use super::live::Live;
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::compile_c;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Freed when no processor can be in them any more.
const LOOKS: u32 = 2_000;

pub(super) fn run() -> Result<()> {
    let objects = compile_c(&["slice/bpf_objects.c"], &["-O2", "-Wall"])?;
    for ends in [Live::kill, |live: Live| live.stop().map(drop)] {
        let live = Live::start(&[])?;
        let own = own(live.pid())?;
        ensure!(
            own.iter().any(|id| id.starts_with("prog "))
                && own.iter().any(|id| id.starts_with("link ")),
            "{own:?}"
        );
        let missing: Vec<_> = own.difference(&all(&objects)?).cloned().collect();
        ensure!(missing.is_empty(), "not in the kernel: {missing:?}");
        ends(live)?;
        gone(&objects, &own)?;
    }
    Ok(())
}

/// `prog 12`, `map 3`, `link 4` behind the process's descriptors. Numbers are not given out again.
fn own(pid: i32) -> Result<BTreeSet<String>> {
    let mut own = BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let text = std::fs::read_to_string(entry?.path())?;
        for line in text.lines() {
            let Some((key, id)) = line.split_once(":\t") else {
                continue;
            };
            if let Some(kind @ ("prog" | "map" | "link")) = key.strip_suffix("_id") {
                own.insert(format!("{kind} {id}"));
            }
        }
    }
    Ok(own)
}

fn all(objects: &Path) -> Result<BTreeSet<String>> {
    let out = command(&mut Command::new(objects))?.expect_code(0)?;
    let ids = out.stdout.lines().map(|line| {
        let end = line.rfind(' ').context("a name")?;
        Ok(line[..end].to_owned())
    });
    ids.collect()
}

fn gone(objects: &Path, own: &BTreeSet<String>) -> Result<()> {
    for _ in 0..LOOKS {
        if all(objects)?.is_disjoint(own) {
            return Ok(());
        }
    }
    let left: Vec<_> = own.intersection(&all(objects)?).cloned().collect();
    bail!("left behind: {left:?}")
}
