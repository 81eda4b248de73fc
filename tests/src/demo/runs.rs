//! Passes of the firewall's pipeline and the generated packets that they handled, end to end.
use super::measured::MODULES;
use super::scene::{Cables, Recorded, Scene};
use super::{number, parse};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts, hopscope, hopscope_bin};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "demo::each_run_has_ten_modules_and_each_packet_its_run",
            &[Requirement::Root, Requirement::Netns, Requirement::Gcc],
            runs_and_packets,
        )
        .in_turn();
}

/// Packets out of one cable, through the firewall, into another.
fn record(count: u64) -> Result<Recorded> {
    let cables = Cables::lay()?;
    let rules = cables.directory.join("rules");
    let mut write = Command::new(hopscope_bin());
    write.args(["load", "packets", "--rules", "1000", "--write-rules"]);
    run(write.arg(&rules))?.expect_code(0)?;
    let modules: Vec<_> = MODULES.iter().map(|m| format!("*!{m}")).collect();
    let mut record = vec!["-f", "hopscope-demo!pipeline_run", "--buffer", "64M"];
    record.extend(modules.iter().flat_map(|m| ["-f", m]));
    let count = count.to_string();
    let scene = Scene {
        rules: &rules,
        // Beside everything else, as a user starts it.
        firewall: Command::new("env"),
        options: &[],
        record: &record,
        meanwhile: None,
        load: Command::new("env"),
        traffic: &[
            "--size",
            "128",
            "--rate",
            "3000",
            "--arrivals",
            "poisson",
            "-c",
            &count,
        ],
    };
    scene.play(&cables)
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
    let sent = number(&recorded.sent, "/sent")?;
    let received = number(&recorded.sent, "/received")?;
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
    ensure!(count("packets")? == sent, "{matched}");
    ensure!(count("never_came_back")? == sent - received, "{matched}");
    ensure!(
        count("by_order")? + count("ambiguous")? == received,
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
    ensure!(rows.len() as u64 == sent, "{} rows", rows.len());
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
    ensure!(sum("packets")? == sent, "{} flows", flows.len());
    ensure!(sum("lost")? == sent - received, "{} flows", flows.len());
    Ok(())
}
