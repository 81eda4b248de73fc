//! What tests kill and spoil by is not in what people install.
use anyhow::{Result, ensure};
use hopscope_tests::{Suite, command, compile_c, hopscope_bin, repository, scratch, target_dir};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    let by_manifest = "house::packages_are_built_without_fault_injection";
    suite.case(by_manifest, &[], by_manifests);
    let by_binary = "house::packages_have_no_fault_points";
    // It may have to be built.
    suite
        .case(by_binary, &[], by_binaries)
        .soak()
        .watchdog(1800);
}

/// Features of everything that `cargo build -p hopscope` builds.
fn features(more: &[&str]) -> Result<String> {
    let mut tree = Command::new(cargo());
    tree.args(["tree", "--locked", "--offline", "-p", "hopscope"])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p} {f}"])
        .args(more)
        .current_dir(repository());
    Ok(command::run(&mut tree)?.expect_code(0)?.stdout)
}

fn by_manifests() -> Result<()> {
    let (packaged, tested) = (
        features(&[])?,
        features(&["--features", "fault-injection"])?,
    );
    ensure!(!packaged.contains("fault-injection"), "{packaged}");
    for package in ["hopscope-process ", "hopscope-splice "] {
        let has = |line: &str| line.starts_with(package) && line.ends_with("fault-injection");
        ensure!(tested.lines().any(has), "{package}in\n{tested}");
    }
    Ok(())
}

/// Each hook is taken out of the packaged binary, and is in the one that other cases drive.
fn by_binaries() -> Result<()> {
    let (packaged, tested) = (packaged()?, hopscope_bin());
    for (hopscope, has) in [(&packaged, false), (&tested, true)] {
        let version = command::run(Command::new(hopscope).arg("--version"))?;
        ensure!(version.stdout.contains("test build") == has, "{version:?}");
        let recorded = recorded(hopscope)?;
        let killed = recorded.code != Some(0);
        ensure!(killed == has, "a fault point in {hopscope:?}: {recorded:?}");
    }
    for hook in [
        ["--change-each", "3"],
        ["--lose-each", "3"],
        ["--pair", "--pair-anyway"],
    ] {
        let mut attach = Command::new(&packaged);
        attach
            .args(["splice", "attach", "--cgroup", "/"])
            .args(hook);
        command::run(&mut attach)?.expect_refusal(&["built without the feature"])?;
    }
    Ok(())
}

/// With the first fault point, where the program is seized.
fn recorded(hopscope: &Path) -> Result<command::Output> {
    let program = compile_c(&["hostile/once.c"], &["-O1"])?;
    let mut record = Command::new(hopscope);
    record
        .args(["record", "--no-calibration", "-f", "called_once", "-o"])
        .arg(scratch().join("recorded.hop"))
        .arg("--")
        .arg(&program)
        .env("HOPSCOPE_FAULT_POINT", "1");
    command::run(&mut record)
}

/// `scripts/soak` names one.
fn packaged() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("HOPSCOPE_PACKAGED") {
        return Ok(path.into());
    }
    let mut build = Command::new(cargo());
    build
        .args(["build", "--release", "--locked", "-p", "hopscope"])
        .current_dir(repository());
    command::run(&mut build)?.expect_code(0)?;
    Ok(target_dir().join("release/hopscope"))
}

fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from)
}
