//! `bench load` from outside: which figures it gives, and that it leaves nothing behind.
use super::{bench, build_dir};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope_bin, scratch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const NEEDS: [Requirement; 3] = [Requirement::Root, Requirement::Netns, Requirement::Gcc];

pub(super) fn register(suite: &mut Suite) {
    suite
        .case("bench_harness::load_gives_its_figures", &NEEDS, figures)
        .in_turn()
        // The load generator itself has tests of its own, and the one below starts the bench.
        .soak();
    suite
        .case(
            "bench_harness::a_killed_load_bench_leaves_no_network",
            &NEEDS,
            killed,
        )
        .in_turn()
        .watchdog(60);
}

fn figures() -> Result<()> {
    let dir = scratch().join("results");
    let saved = dir.display().to_string();
    let before = devices()?;
    let out = bench("load", &["--save", &saved])?;
    let last = out.stdout.lines().last().context("nothing was printed")?;
    let summary: Value = serde_json::from_str(last)?;
    // Times are the machine's own affair; that there are figures, and of what, is not.
    for field in [
        "tx_stamped_pps",
        "matched_pps",
        "inmem_pps",
        "rr_overhead_vs_c",
        "delay_error_ns",
        "delay_band_ns",
    ] {
        ensure!(
            summary[field].is_number(),
            "no {field} in {summary}\n{}",
            out.stderr
        );
    }
    ensure!(summary["type"] == "summary" && summary["bench"] == "load");
    ensure!(
        out.code == Some(0),
        "exit code {:?}\n{}",
        out.code,
        out.stderr
    );
    let samples = out.stdout.lines().filter(|l| l.contains("\"sample\""));
    let of_delay = samples.filter(|l| l.contains("\"what\":\"delay\""));
    for line in of_delay {
        let sample: Value = serde_json::from_str(line)?;
        let (asked, found) = (&sample["asked_ns"], &sample["latency_p50_ns"]);
        let late_at_least = found.as_f64() >= asked.as_f64();
        ensure!(late_at_least, "a packet overtook its delay: {sample}");
    }
    ensure!(dir.join("load.md").exists() && dir.join("load.jsonl").exists());
    ensure!(devices()? == before, "devices are left: {:?}", devices()?);
    Ok(())
}

/// Network devices of this namespace.
fn devices() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/sys/class/net")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Every namespace hangs on a process that reads from the bench: when that is gone, so are they.
fn killed() -> Result<()> {
    let mut bench = Command::new(hopscope_bin())
        .args(["bench", "load", super::size(), "--json", "--build-dir"])
        .arg(build_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout = bench.stdout.take().context("asked for as a pipe")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    ensure!(line.contains("sample"), "{line}");
    let own = std::fs::read_link("/proc/self/ns/net")?;
    let holders = |pid: i32| -> Result<Vec<Pid>> {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let elsewhere =
            |pid: &i32| std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|ns| ns != own);
        let pids = children.split_whitespace().filter_map(|p| p.parse().ok());
        Ok(pids.filter(elsewhere).map(Pid::from_raw).collect())
    };
    let pid = i32::try_from(bench.id())?;
    let held = loop {
        let held = holders(pid)?;
        if !held.is_empty() {
            break held;
        }
        ensure!(bench.try_wait()?.is_none(), "the bench ended by itself");
        std::thread::yield_now();
    };
    kill(Pid::from_raw(pid), Signal::SIGKILL)?;
    bench.wait()?;
    // Whoever hangs here is killed by the runner's watchdog and fails.
    while held.iter().any(|pid| is_running(*pid)) {
        std::thread::yield_now();
    }
    Ok(())
}

fn is_running(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
