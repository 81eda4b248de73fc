//! Passes of the firewall's pipeline and the generated packets that they handled, end to end.
use super::build::Build;
use super::measured::MODULES;
use super::{number, parse};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts, hopscope, hopscope_bin, scratch};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "demo::each_run_has_ten_modules_and_each_packet_its_run",
            &[Requirement::Root, Requirement::Netns, Requirement::Gcc],
            runs_and_packets,
        )
        .alone();
}

struct Recorded {
    process: PathBuf,
    packets: PathBuf,
    /// The firewall's own.
    counted: Value,
    sent: u64,
    received: u64,
}

/// Packets out of one cable, through the firewall, into another.
fn record(count: u64) -> Result<Recorded> {
    // Nothing is left behind: the namespace and its cables go with this case's process.
    unshare(CloneFlags::CLONE_NEWNET)?;
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
    for (near, far) in [("g0", "nf0"), ("g1", "nf1")] {
        let link = ["link", "add", near, "type", "veth", "peer", "name", far];
        run(Command::new("ip").args(link))?.expect_code(0)?;
        for end in [near, far] {
            run(Command::new("ip").args(["link", "set", end, "up"]))?.expect_code(0)?;
        }
    }
    let directory = scratch();
    let at = |name: &str| directory.join(name);
    let rules = at("rules");
    let mut write = Command::new(hopscope_bin());
    write.args(["load", "packets", "--rules", "1000", "--write-rules"]);
    run(write.arg(&rules))?.expect_code(0)?;

    let mut firewall = Command::new(Build::Plain.network_function()?);
    firewall
        .args(["--port", "nf0", "--port", "nf1", "--burst", "32", "--rules"])
        .arg(&rules)
        .arg("--ready-file")
        .arg(at("ready"))
        .stdout(Stdio::piped());
    let firewall = Target::spawn_with_ready_file(&mut firewall, &at("ready"))?;
    let mut recorder = Command::new(hopscope_bin());
    recorder
        .args(["record", "-p", &firewall.pid().to_string()])
        .args(["-f", "hopscope-demo!pipeline_run", "--buffer", "64M"])
        .args(MODULES.iter().flat_map(|m| ["-f".into(), format!("*!{m}")]))
        .args(["--max-overhead", "1000000", "--ready-file"])
        .arg(at("recording"))
        .arg("-o")
        .arg(at("demo.hop"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let recorder = Target::spawn_with_ready_file(&mut recorder, &at("recording"))?;
    let mut load = Command::new(hopscope_bin());
    load.args(["load", "packets", "--tx", "packet:g0", "--rx", "packet:g1"])
        .args(["--size", "128", "--rate", "3000", "--arrivals", "poisson"])
        .args(["-d", "600", "-c", &count.to_string(), "--json", "--rules"])
        .arg(&rules)
        .arg("-w")
        .arg(at("packets.hop"));
    let load = run(&mut load)?.expect_code(0)?;
    let summary = parse(load.stdout.lines().last().context("no summary")?)?;
    recorder.signal(Signal::SIGINT)?;
    let recorded = recorder.output()?;
    ensure!(recorded.status.success(), "{recorded:?}");
    firewall.signal(Signal::SIGTERM)?;
    let out = firewall.output()?;
    ensure!(out.status.success(), "hopscope-demo: {}", out.status);
    Ok(Recorded {
        process: at("demo.hop"),
        packets: at("packets.hop"),
        counted: parse(&String::from_utf8(out.stdout)?)?,
        sent: number(&summary, "/sent")?,
        received: number(&summary, "/received")?,
    })
}

/// Lines of `hopscope report --json`, by type.
pub(super) fn report(file: &Path, arguments: &[&str]) -> Result<HashMap<String, Vec<Value>>> {
    let file = file.to_str().context("a path in UTF-8")?;
    let out = hopscope(&[&["report", file, "--json"], arguments].concat())?.expect_code(0)?;
    let mut lines: HashMap<String, Vec<Value>> = HashMap::new();
    for line in out.stdout.lines() {
        let line = parse(line)?;
        let kind = line["type"].as_str().context("a type")?.to_owned();
        lines.entry(kind).or_default().push(line);
    }
    Ok(lines)
}

pub(super) fn one<'a>(lines: &'a HashMap<String, Vec<Value>>, kind: &str) -> Result<&'a Value> {
    let of = lines.get(kind).and_then(|of| of.first());
    of.with_context(|| format!("no line of type {kind}"))
}

fn runs_and_packets() -> Result<()> {
    let recorded = record(counts().pick(5_000, 100_000))?;
    let frames = number(&recorded.counted, "/total/frames")?;

    // The root is found, and each run is one pass through all ten modules.
    let lines = report(&recorded.process, &["--by", "run"])?;
    let runs = one(&lines, "runs")?;
    ensure!(runs["root"] == "pipeline_run", "{runs}");
    ensure!(runs["suggested_because"].is_string(), "{runs}");
    for name in ["runs", "complete"] {
        ensure!(
            number(runs, &format!("/{name}"))? == frames,
            "{frames} frames: {runs}"
        );
    }
    ensure!(number(runs, "/calls_outside")? == 0, "{runs}");
    let functions = lines.get("run_function").context("no function")?;
    ensure!(functions.len() == MODULES.len() + 1, "{functions:?}");
    for function in functions {
        for name in ["runs", "calls"] {
            ensure!(
                number(function, &format!("/{name}"))? == frames,
                "{function}"
            );
        }
    }

    // Without the pipeline's own function the loop is what is left, and its passes are the same.
    let looped = ["--by", "run", "--root", "loop:ethernet_input"];
    let error = hopscope(
        &[
            &["report", recorded.process.to_str().context("UTF-8")?],
            &looped[..],
        ]
        .concat(),
    )?
    .expect_code(0)?;
    ensure!(
        error.stdout.contains("each return to the polling loop"),
        "{}",
        error.stdout
    );

    // Every packet has its run, or the reason why not.
    let packets = recorded.packets.to_str().context("a path in UTF-8")?;
    let lines = report(
        &recorded.process,
        &["--by", "packet", "--packets", packets, "--time", "tsc"],
    )?;
    let matched = one(&lines, "matched")?;
    let count = |name: &str| number(matched, &format!("/{name}"));
    ensure!(count("packets")? == recorded.sent, "{matched}");
    ensure!(
        count("never_came_back")? == recorded.sent - recorded.received,
        "{matched}"
    );
    ensure!(
        count("by_order")? + count("ambiguous")? == recorded.received,
        "{matched}"
    );
    ensure!(count("by_order")? > 0, "{matched}");
    ensure!(
        matched["boundary"]
            .as_str()
            .is_some_and(|b| b.contains("packet:g0") && b.contains("packet:g1")),
        "{matched}"
    );
    let rows = lines.get("packet_run").context("no packet")?;
    ensure!(rows.len() as u64 == recorded.sent, "{} rows", rows.len());
    let mut of_run: HashMap<u64, u64> = HashMap::new();
    for row in rows.iter().filter(|row| row["run"].is_u64()) {
        let ticks = |name: &str| {
            row[format!("{name}_tsc")]
                .as_f64()
                .with_context(|| name.to_owned())
        };
        let (wait, in_run, out) = (ticks("wait")?, ticks("in_run")?, ticks("way_out")?);
        ensure!(wait + in_run + out == ticks("latency")?, "{row}");
        // Its run was under way while it was.
        ensure!(wait + in_run >= 0.0 && in_run + out >= 0.0, "{row}");
        *of_run.entry(number(row, "/run")?).or_default() += u64::from(row["ambiguous_among"] == 1);
    }
    ensure!(
        of_run.keys().all(|run| *run < frames),
        "a run beyond the last"
    );
    ensure!(
        of_run.values().all(|n| *n <= 32),
        "more packets of one run than fit in a burst"
    );

    let lines = report(&recorded.process, &["--by", "flow", "--packets", packets])?;
    let flows = lines.get("flow").context("no flow")?;
    let sum =
        |name: &str| -> Result<u64> { flows.iter().map(|f| number(f, &format!("/{name}"))).sum() };
    ensure!(sum("packets")? == recorded.sent, "{} flows", flows.len());
    ensure!(
        sum("lost")? == recorded.sent - recorded.received,
        "{} flows",
        flows.len()
    );
    Ok(())
}
