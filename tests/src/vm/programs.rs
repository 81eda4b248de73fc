//! Programs of this machine in the guest, each with the libraries that it asks for.
use super::archive::Archive;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{hopscope_bin, requirement, scratch};
use std::path::{Path, PathBuf};
use std::process::Command;

/// `busybox`, iproute2 as `ip2` (the shell takes its own `ip`, which makes neither veth pairs nor
/// namespaces, before any file of that name) and `hopscope`.
pub(super) fn add_basics(archive: &mut Archive) -> Result<()> {
    for (name, place) in [("busybox", "/bin/busybox"), ("ip", "/bin/ip2")] {
        let path = requirement::find_program(name).with_context(|| format!("no {name}"))?;
        add(archive, &path, place)?;
    }
    add(archive, &without_debug(&hopscope_bin())?, "/bin/hopscope")
}

pub(super) fn add(archive: &mut Archive, program: &Path, place: &str) -> Result<()> {
    archive.copy(program, place)?;
    for library in libraries(program)? {
        if !archive.holds(&library) {
            archive.copy(Path::new(&library), &library)?;
        }
    }
    Ok(())
}

/// Absolute paths as `ldd` gives them: `NAME => PATH (ADDRESS)`, and `PATH (ADDRESS)` for the loader.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let out = run(Command::new("ldd").arg(program))?;
    if out.code != Some(0) {
        let fixed = out.stderr.contains("not a dynamic executable");
        ensure!(fixed, "ldd {}: {}", program.display(), out.stderr);
        return Ok(Vec::new());
    }
    ensure!(!out.stdout.contains("not found"), "{}", out.stdout);
    let words = out.stdout.lines().flat_map(str::split_whitespace);
    Ok(words
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect())
}

/// What is loaded is the same; the guest's memory holds the file.
fn without_debug(program: &Path) -> Result<PathBuf> {
    let stripped = scratch().join("hopscope");
    let out = run(Command::new("strip")
        .args(["--strip-debug", "-o"])
        .arg(&stripped)
        .arg(program))?;
    ensure!(out.code == Some(0), "strip: {}", out.stderr);
    Ok(stripped)
}
