//! Programs that have another library preloaded: an allocator in the place of the C library's.
use super::super::running::PRELOADED;
use anyhow::{Result, ensure};
use hopscope_tests::requirement::JEMALLOC;
use hopscope_tests::{Requirement, Suite, compile_c};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// In the names of the cases that are run again.
const PROGRAMS: [&str; 13] = [
    "haproxy",
    "http_server",
    "iperf3",
    "memcached",
    "openssl",
    "postgres",
    "python_asyncio",
    "redis",
    "ssh",
    "with_curl",
    "with_nginx",
    "upgrades_nginx",
    "with_wrk",
];

/// Of those, at reduced counts, too.
const KEPT: [&str; 9] = [
    "run_proxies_with_haproxy",
    "run_serves_http2_with_nginx",
    "run_serves_with_memcached",
    "run_serves_with_redis",
    "pipeline_serves_http2_with_nginx",
    "pipeline_serves_with_memcached",
    "pipeline_serves_with_postgres",
    "pipeline_serves_with_redis",
    "pipeline_serves_with_sshd",
];

pub(crate) fn register_again(suite: &mut Suite) {
    for of in ["run_", "pipeline_"] {
        let names = (&*format!("stack::{of}"), &*format!("stack::jemalloc_{of}"));
        let needs = &[Requirement::Jemalloc, Requirement::Gcc];
        let which = |rest: &str| {
            let is_one =
                PROGRAMS.iter().any(|name| rest.contains(name)) && !rest.contains("datagrams");
            is_one.then(|| !KEPT.contains(&&*format!("{of}{rest}")))
        };
        suite.again(names, needs, which, beside_jemalloc);
    }
}

struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// `case`, and each program of it that is on the stack has both libraries.
fn beside_jemalloc(case: &dyn Fn() -> Result<()>) -> Result<()> {
    let library = compile_c(&["stack/run/beside.c"], &["-shared", "-fPIC", "-O1"])?;
    let name = Path::new(JEMALLOC).file_name().unwrap_or_default();
    // Programs of other users write into it, too.
    let to = format!("hopscope-{}.beside", std::process::id());
    let to = RemovedAtEnd(std::env::temp_dir().join(to));
    std::fs::write(&to.0, "")?;
    std::fs::set_permissions(&to.0, PermissionsExt::from_mode(0o666))?;
    let environment = vec![
        ("LD_PRELOAD", format!("{JEMALLOC}:{}", library.display())),
        ("BESIDE", name.to_string_lossy().into_owned()),
        ("BESIDE_TO", to.0.display().to_string()),
    ];
    ensure!(PRELOADED.set(environment).is_ok(), "preloaded twice");
    case()?;
    let said = std::fs::read_to_string(&to.0)?;
    ensure!(!said.is_empty(), "no program has had it");
    ensure!(said.lines().all(|line| line.ends_with(": both")), "{said}");
    Ok(())
}
