//! The binaries run on a machine that has only the C library.
use anyhow::{Result, ensure};
use hopscope_tests::{Suite, hopscope_bin};
use std::path::Path;
use std::process::Command;

const ALLOWED: &[&str] = &[
    "linux-vdso.so.1",
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
];

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::links_only_the_c_library", &[], links_only);
}

fn links_only() -> Result<()> {
    let hopscope = hopscope_bin();
    needs_only(&hopscope)?;
    needs_only(&hopscope.with_file_name("hopscope-bench"))?;
    needs_only(&hopscope.with_file_name("libhopscope_preload.so"))
}

fn needs_only(program: &Path) -> Result<()> {
    let out = Command::new("ldd").arg(program).output()?;
    ensure!(out.status.success(), "ldd: {}", out.status);
    let text = String::from_utf8(out.stdout)?;
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|path| path.rsplit('/').next().unwrap_or(path))
        .collect();
    ensure!(names.contains(&"libc.so.6"), "ldd said: {text}");
    for name in names {
        ensure!(ALLOWED.contains(&name), "{program:?} needs {name}");
    }
    Ok(())
}
