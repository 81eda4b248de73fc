//! Where things lie.
use hopscope_guest::Kernel;
use std::path::{Path, PathBuf};

/// Without `..` in it: chromedriver reads no file below such a path (`base::ReadFileToString`).
pub fn repository() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

/// Sources of target programs.
pub fn programs() -> PathBuf {
    repository().join("tests/programs")
}

pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => repository().join(dir),
        None => repository().join("target"),
    }
}

/// Compiled target programs. The word hopscope is in the path, as it is in that of most clones: whoever looks for
/// it where the names of memfds are to be compared fails here.
pub fn built_programs() -> PathBuf {
    target_dir().join("hopscope-programs")
}

/// Whatever cases write.
pub fn scratch_root() -> PathBuf {
    target_dir().join("hopscope-scratch")
}

/// The Python that `scripts/install-readers` makes (or `HOPSCOPE_READERS`).
pub fn readers_python() -> PathBuf {
    match std::env::var_os("HOPSCOPE_READERS") {
        Some(path) => path.into(),
        None => target_dir().join("readers/bin/python"),
    }
}

/// What `scripts/install-vm` unpacks.
///
/// # Errors
/// What is not there, and how to get it.
pub fn vm_kernel() -> hopscope_guest::Result<Kernel> {
    Kernel::find(&target_dir().join("vm"))
}

/// The release binary (or `HOPSCOPE_BIN`); the runner has built it before the first case.
pub fn hopscope_bin() -> PathBuf {
    match std::env::var_os("HOPSCOPE_BIN") {
        Some(path) => path.into(),
        None => target_dir().join("release/hopscope"),
    }
}

/// An empty directory of this case's own, removed by the next run of the same case: what a failed
/// case left can be looked at.
pub fn scratch() -> PathBuf {
    let case = std::env::var("HOPSCOPE_CASE").unwrap_or_else(|_| "none".into());
    let dir = scratch_root().join(case.replace([':', '/', ' '], "_"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("scratch directory in target/");
    dir
}

/// Where control groups of version 2 are mounted.
pub fn cgroup2() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    mounts.find_map(|mut fields| {
        let (_, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| at.into())
    })
}
