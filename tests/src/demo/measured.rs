//! While hopscope measures it.
use super::build::Build;
use super::forwarding::{NEEDS, Running, check};
use super::{number, parse};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{
    Requirement, Suite, Target, counts, hopscope, hopscope_bin, repository, scratch,
};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) const MODULES: [&str; 10] = [
    "ethernet_input",
    "l2_input",
    "feature_arc_in",
    "acl_match",
    "feature_arc_out",
    "l2_learn",
    "l2_forward",
    "l2_output",
    "interface_output",
    "device_output",
];

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "demo::network_is_forwarded_as_ruled_with_every_function_measured",
            NEEDS,
            every_function,
        )
        .in_turn();
    suite
        .case("demo::run_shows_a_report_of_ten_modules", NEEDS, || {
            demo_run("packet")
        })
        .in_turn();
    suite
        .case(
            "demo::run_works_on_packets_from_memory",
            // Root: Yama may forbid anybody else to attach to a process that isn't a child.
            &[Requirement::Gcc, Requirement::Root],
            || demo_run("memory"),
        )
        .in_turn();
}

/// The lines of `report --json`: calls by function, and the summary.
fn report(trace: &Path) -> Result<(HashMap<String, u64>, Value)> {
    let out = hopscope(&["report", &trace.to_string_lossy(), "--json"])?.expect_code(0)?;
    let mut calls = HashMap::new();
    let mut summary = None;
    for line in out.stdout.lines() {
        let line = parse(line)?;
        match line["type"].as_str() {
            Some("function") => {
                let name = line["function"].as_str().context("a function's name")?;
                calls.insert(name.to_string(), number(&line, "/calls")?);
            }
            Some("summary") => summary = Some(line),
            _ => {}
        }
    }
    Ok((calls, summary.context("no summary")?))
}

fn check_balance(summary: &Value) -> Result<()> {
    let balance = |name: &str| number(summary, &format!("/balance/{name}"));
    let ends = balance("exits")?
        + balance("tail_exits")?
        + balance("open_at_end")?
        + balance("declared_lost")?
        + balance("cut_by_loss")?
        + balance("unwound")?
        + balance("moved")?;
    ensure!(balance("entries")? == ends, "{summary}");
    Ok(())
}

/// No packet passes before hopscope is attached nor after it left, and its rings are larger than all
/// there is to record. So the numbers of calls are not near the firewall's own counters: they are equal.
fn every_function() -> Result<()> {
    let packets = counts().pick(30_000, 300_000);
    let running = Running::start(Build::Plain, 2)?;
    let (trace, ready) = (
        running.directory().join("demo.hop"),
        running.directory().join("recording"),
    );
    let mut command = Command::new(hopscope_bin());
    command
        .args(["record", "-p", &running.pid().to_string()])
        .args(["-f", "hopscope-demo!*", "-f", "feature.so!*"])
        .args(["-f", "acl.so!*", "-f", "l2.so!*"])
        .args(["--buffer", "256M", "--threads", "4"])
        .args(["--max-overhead", "1000000", "--ready-file"])
        .arg(&ready)
        .arg("-o")
        .arg(&trace)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let recorder = Target::spawn_with_ready_file(&mut command, &ready)?;
    let sent = running.paced_traffic(packets)?;
    recorder.signal(Signal::SIGINT)?;
    let recorded = recorder.output()?;
    ensure!(recorded.status.success(), "{recorded:?}");
    let counted = running.stop()?;
    check(&sent, &counted, packets)?;

    let (calls, summary) = report(&trace)?;
    check_balance(&summary)?;
    ensure!(number(&summary, "/lost")? == 0, "{summary}");
    let frames = number(&counted, "/total/frames")?;
    for module in MODULES.iter().chain(&["pipeline_run"]) {
        ensure!(
            calls.get(*module) == Some(&frames),
            "{module}: {:?} calls for {frames} frames",
            calls.get(*module)
        );
    }
    let drops = counted["total"]["drops"].as_object().context("drops")?;
    let dropped: u64 = drops.values().filter_map(Value::as_u64).sum();
    ensure!(
        calls.get("packet_drop") == Some(&dropped),
        "{:?} calls of packet_drop for {dropped}",
        calls.get("packet_drop")
    );
    Ok(())
}

/// What `make demo` runs. Its own exit code says that no packet went wrong.
fn demo_run(source: &str) -> Result<()> {
    Build::Plain.network_function()?;
    let trace = scratch().join("demo.hop");
    let mut command = Command::new(repository().join("demo/run"));
    command
        .args(["--time", "1", "--source", source, "--output"])
        .arg(&trace)
        .env("HOPSCOPE_BIN", hopscope_bin());
    let out = run(&mut command)?.expect_code(0)?;
    for module in MODULES {
        ensure!(out.stdout.contains(module), "no {module} in {}", out.stdout);
    }
    let (calls, summary) = report(&trace)?;
    check_balance(&summary)?;
    for module in MODULES {
        let calls = calls.get(module).copied().unwrap_or(0);
        ensure!(calls > 0, "{module} was never called: {summary}");
    }
    Ok(())
}
