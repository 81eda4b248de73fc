//! Unsafe code stays in the modules that are named for it.
use anyhow::{Result, ensure};
use hopscope_tests::{Suite, repository};
use std::path::{Path, PathBuf};

/// A module is `NAME.rs` and everything under `NAME/`.
const FENCED_IN: &[&str] = &[
    "bpf/src/run_stats",
    "fastpath/serving/src/privileges",
    "fastpath/splice/src/echo/uring/submit",
    "fastpath/splice/src/programs/devices",
    "fastpath/splice/src/programs/policies",
    "fastpath/splice/src/socket_options",
    "fastpath/stack/packetdrill/src/interface",
    "fastpath/stack/preload/src/hooks",
    "fastpath/stack/preload/src/kernel",
    "fastpath/stack/preload/src/rows",
    "fastpath/vnet/src/serve/descriptors",
    "fastpath/vnet/src/serve/sigbus",
    "measure/event/src/clock",
    "measure/event/src/ring",
    "measure/probe/src/counters/perf_event",
    "measure/probe/src/memory",
    "measure/process/src/environment",
    "measure/process/src/launch",
    "measure/process/src/memfd",
    "measure/process/src/preflight",
    "measure/process/src/ptrace",
    "measure/process/src/remote_priority",
    "measure/process/src/rt_priority",
    "measure/process/src/vma_query",
    "measure/process/src/write_track",
    "measure/slice/src/filter/libpcap",
    "measure/slice/src/programs/perf_event",
    "measure/slice/src/programs/ring",
    "netio/src/sys",
];

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::unsafe_stays_in_its_modules", &[], stays_inside);
    suite.case("house::every_crate_fences_unsafe", &[], every_crate_fences);
}

fn stays_inside() -> Result<()> {
    let mut files = Vec::new();
    for dir in [
        "measure",
        "fastpath",
        "bpf",
        "check",
        "eventloop",
        "netio",
        "openloop",
        "load",
        "guest",
        "bench",
        "cli",
        "tests",
    ] {
        rust_files(&repository().join(dir), &mut files)?;
    }
    ensure!(files.len() > 20, "only {} files found", files.len());
    let mut outside = Vec::new();
    for file in files {
        let path = relative(&file);
        if FENCED_IN.iter().any(|module| is_in(&path, module)) {
            continue;
        }
        let text = std::fs::read_to_string(&file)?;
        for (number, line) in text.lines().enumerate() {
            if uses_unsafe(line) {
                outside.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    ensure!(
        outside.is_empty(),
        "unsafe outside:\n{}",
        outside.join("\n")
    );
    Ok(())
}

/// The keyword in code: comments, strings and attributes may speak of it.
fn uses_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or("");
    let mut rest = code;
    while let Some(at) = rest.find("unsafe") {
        let before = rest[..at].chars().next_back();
        let after = rest[at + 6..].chars().next();
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let quoted = rest[..at].matches('"').count() % 2 == 1;
        if !word(before) && !word(after) && !quoted {
            return true;
        }
        rest = &rest[at + 6..];
    }
    false
}

fn every_crate_fences() -> Result<()> {
    // Those with named modules deny and lift it there; all others cannot lift it at all.
    let lifted = ["event", "process", "probe", "slice"];
    for name in [
        "event", "process", "trace", "unwind", "probe", "slice", "analyze", "report", "read",
        "session",
    ] {
        let text =
            std::fs::read_to_string(repository().join(format!("measure/{name}/src/lib.rs")))?;
        let level = match lifted.contains(&name) {
            true => "#![deny(unsafe_code)]",
            false => "#![forbid(unsafe_code)]",
        };
        ensure!(
            text.contains(level),
            "measure/{name}/src/lib.rs lacks {level}"
        );
    }
    for path in [
        "bpf/src/lib.rs",
        "netio/src/lib.rs",
        "fastpath/serving/src/lib.rs",
        "fastpath/splice/src/lib.rs",
        "fastpath/vnet/src/lib.rs",
        "fastpath/stack/packetdrill/src/lib.rs",
        "fastpath/stack/preload/src/lib.rs",
    ] {
        let text = std::fs::read_to_string(repository().join(path))?;
        ensure!(
            text.contains("#![deny(unsafe_code)]"),
            "{path} lacks #![deny(unsafe_code)]"
        );
    }
    for path in [
        "check/src/lib.rs",
        "eventloop/src/lib.rs",
        "fastpath/stack/abi/src/lib.rs",
        "fastpath/stack/bypass/src/lib.rs",
        "fastpath/stack/engine/src/lib.rs",
        "fastpath/stack/instance/src/lib.rs",
        "load/src/lib.rs",
        "openloop/src/lib.rs",
        "guest/src/lib.rs",
        "bench/compare/src/lib.rs",
        "bench/flags/src/lib.rs",
        "bench/src/lib.rs",
        "bench/src/main.rs",
        "cli/src/main.rs",
        "tests/src/lib.rs",
        "tests/src/main.rs",
    ] {
        let text = std::fs::read_to_string(repository().join(path))?;
        ensure!(
            text.contains("#![forbid(unsafe_code)]"),
            "{path} lacks #![forbid(unsafe_code)]"
        );
    }
    Ok(())
}

pub(super) fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

pub(super) fn relative(file: &Path) -> String {
    let path = file.strip_prefix(repository()).unwrap_or(file);
    path.to_string_lossy().into_owned()
}

fn is_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}
