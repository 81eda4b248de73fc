//! The demo network function does what it says: without that, measuring it proves nothing.
use crate::demo::build::Build;
use crate::demo::network::Network;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts, scratch};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

mod build;
mod network;

const NETWORK: &[Requirement] = &[Requirement::Root, Requirement::Netns, Requirement::Gcc];

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite.case("demo::memory_source_is_forwarded_as_ruled", gcc, memory);
    suite.case("demo::a_packet_limit_is_exact", gcc, packet_limit);
    suite.case(
        "demo::printed_rules_decide_like_generated_ones",
        gcc,
        rules_file,
    );
    suite.case("demo::bad_options_are_refused", gcc, bad_options);
    suite
        .case("demo::stays_in_bounds_under_sanitizers", gcc, sanitized)
        .watchdog(900);
    for workers in [1, 2] {
        suite
            .case(
                format!("demo::network_is_forwarded_as_ruled_by_{workers}_workers"),
                NETWORK,
                move || network_proof(Build::Plain, workers, counts().pick(100_000, 3_000_000)),
            )
            .alone();
    }
    suite
        .case("demo::network_under_sanitizers", NETWORK, || {
            network_proof(Build::Sanitized, 2, 20_000)
        })
        .alone();
    suite
        .case(
            "demo::traffic_notices_a_firewall_with_other_rules",
            NETWORK,
            traffic_notices,
        )
        .alone();
}

/// Runs the network function on a source of its own to the end, and returns its counters.
fn run_alone(build: Build, arguments: &[&str]) -> Result<Value> {
    let out = run(Command::new(build.network_function()?).args(arguments))?.expect_code(0)?;
    parse(&out.stdout)
}

fn parse(stdout: &str) -> Result<Value> {
    serde_json::from_str(stdout).with_context(|| format!("not JSON: {stdout}"))
}

fn number(counters: &Value, pointer: &str) -> Result<u64> {
    counters
        .pointer(pointer)
        .and_then(Value::as_u64)
        .with_context(|| format!("no number {pointer} in {counters}"))
}

/// The sink compares each packet; here that it did look, and that nothing is unaccounted for.
fn check_memory(counters: &Value, packets: u64) -> Result<()> {
    ensure!(number(counters, "/total/packets")? == packets, "{counters}");
    let forwarded = number(counters, "/total/forwarded")?;
    let denied = number(counters, "/total/drops/acl_deny")?;
    ensure!(forwarded + denied == packets, "{counters}");
    // A quarter of the 1,024 packets that the source repeats.
    ensure!(
        denied.abs_diff(packets / 4) <= 256,
        "denied {denied} of {packets}"
    );
    ensure!(number(counters, "/io/checked")? == forwarded, "{counters}");
    ensure!(number(counters, "/io/wrong")? == 0, "{counters}");
    ensure!(number(counters, "/io/missing")? == 0, "{counters}");
    Ok(())
}

fn memory() -> Result<()> {
    let packets = counts().pick(2_000_000u64, 100_000_000);
    for (workers, burst, size) in [("1", "256", "64"), ("1", "1", "64"), ("2", "32", "1514")] {
        let counters = run_alone(
            Build::Plain,
            &[
                "--packets",
                &packets.to_string(),
                "--workers",
                workers,
                "--burst",
                burst,
                "--size",
                size,
            ],
        )?;
        check_memory(&counters, packets)?;
    }
    Ok(())
}

fn packet_limit() -> Result<()> {
    let counters = run_alone(Build::Plain, &["--packets", "1000003", "--workers", "2"])?;
    check_memory(&counters, 1_000_003)?;
    let one = run_alone(Build::Plain, &["--packets", "1"])?;
    ensure!(number(&one, "/total/frames")? == 1, "{one}");
    Ok(())
}

fn rules_file() -> Result<()> {
    let generator = ["--rules-seed", "7", "--rules-count", "3000"];
    let mut print = Command::new(Build::Plain.network_function()?);
    let printed = run(print.args(generator).arg("--print-rules"))?.expect_code(0)?;
    ensure!(printed.stdout.lines().count() == 3000, "not 3,000 rules");
    let file = scratch().join("rules");
    std::fs::write(&file, format!("# a comment\n\n{}", printed.stdout))?;

    let packets = ["--packets", "500000"];
    let generated = run_alone(Build::Plain, &[generator.as_slice(), &packets].concat())?;
    let path = file.to_string_lossy();
    let read = run_alone(
        Build::Plain,
        &[&["--rules", &path], packets.as_slice()].concat(),
    )?;
    ensure!(
        generated["total"]["drops"] == read["total"]["drops"],
        "{generated} {read}"
    );
    Ok(())
}

fn bad_options() -> Result<()> {
    let rules = scratch().join("rules");
    std::fs::write(&rules, "permit 6 10.0.0.0/8 any 10.0.0.0/33 any\n")?;
    let rules = rules.to_string_lossy();
    let port = ["--port", "port0"];
    for arguments in [
        &["--burst", "257"][..],
        &["--workers", "-1"],
        &["--packets", "many"],
        &["--source", "air"],
        &["--rules", &rules],
        &["--plugins", "/nonexistent"],
        &["unasked"],
        &port,
        &["--denied", "100", "--rules-count", "0"],
    ] {
        let mut command = Command::new(Build::Plain.network_function()?);
        let out = run(command.args(arguments))?.expect_code(2)?;
        ensure!(out.stdout.is_empty(), "{arguments:?}: {}", out.stdout);
        ensure!(!out.stderr.is_empty(), "{arguments:?} refused in silence");
    }
    Ok(())
}

/// A sanitizer ends the program with a code of its own.
fn sanitized() -> Result<()> {
    let packets = counts().pick(1_000_000u64, 50_000_000);
    let limit = packets.to_string();
    for seed in ["1", "2"] {
        let counters = run_alone(
            Build::Sanitized,
            &[
                "--source",
                "fuzz",
                "--workers",
                "2",
                "--packets",
                &limit,
                "--seed",
                seed,
            ],
        )?;
        // Only when each way was gone was each check tried.
        for reason in [
            "frame_length",
            "source_mac",
            "vlan_stacked",
            "ether_type",
            "ipv4_header",
        ] {
            let drops = number(&counters, &format!("/total/drops/{reason}"))?;
            ensure!(drops > 0, "no packet was dropped for {reason}: {counters}");
        }
        for reason in ["ipv4_fragment", "l4_header", "acl_deny", "same_port"] {
            let drops = number(&counters, &format!("/total/drops/{reason}"))?;
            ensure!(drops > 0, "no packet was dropped for {reason}: {counters}");
        }
        ensure!(number(&counters, "/io/checked")? > 0, "{counters}");
    }
    let counters = run_alone(Build::Sanitized, &["--packets", "500000", "--workers", "2"])?;
    check_memory(&counters, 500_000)
}

/// Starts the network function in `network`; ready when this returns.
fn start(build: Build, network: &Network, workers: u32) -> Result<Target> {
    let ready = scratch().join("ready");
    let mut command = network.inside();
    command
        .arg(build.network_function()?)
        .args(["--port", "port0", "--port", "port1", "--port", "port2"])
        .args(["--workers", &workers.to_string(), "--ready-file"])
        .arg(&ready)
        .stdout(Stdio::piped());
    Target::spawn_with_ready_file(&mut command, &ready)
}

fn traffic(build: Build, network: &Network, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(build.traffic()?);
    for (option, side) in [
        ("--left", "left"),
        ("--right", "right"),
        ("--bystander", "third"),
    ] {
        command.arg(option).arg(network.place(side));
    }
    // The window, not the rate, paces it: nothing here depends on the machine's speed.
    command
        .args(["--window", "256", "--rate", "1000000"])
        .args(arguments);
    Ok(command)
}

/// Every permitted packet comes out once, unchanged, at its port; no other; and the network
/// function's own counters agree with what was sent, reason by reason.
fn network_proof(build: Build, workers: u32, packets: u64) -> Result<()> {
    let network = Network::up()?;
    let target = start(build, &network, workers)?;
    let mut sending = traffic(build, &network, &["--packets", &packets.to_string()])?;
    let sent = parse(&run(&mut sending)?.expect_code(0)?.stdout)?;
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    ensure!(out.status.success(), "hopscope-demo: {}", out.status);
    let counted = parse(&String::from_utf8(out.stdout)?)?;

    ensure!(sent["right"] == true, "{sent}");
    ensure!(number(&sent, "/sent")? == packets, "{sent}");
    ensure!(number(&sent, "/permitted")? > packets / 2, "{sent}");
    ensure!(number(&counted, "/total/packets")? == packets, "{counted}");
    ensure!(
        counted["total"]["drops"] == sent["expected_drops"],
        "counted {} for {}",
        counted["total"]["drops"],
        sent["expected_drops"]
    );
    ensure!(
        counted["total"]["forwarded"] == sent["permitted"],
        "{counted} for {sent}"
    );
    for worker in counted["by_worker"].as_array().context("workers")? {
        ensure!(number(worker, "/packets")? > 0, "an idle worker: {counted}");
    }
    Ok(())
}

/// The proof above can fail: here the firewall decides by other rules than the traffic expects.
fn traffic_notices() -> Result<()> {
    let network = Network::up()?;
    let target = start(Build::Plain, &network, 1)?;
    // No window: packets that rightly never come out must not hold up the rest.
    let arguments = [
        "--packets",
        "5000",
        "--window",
        "0",
        "--rate",
        "20000",
        "--rules-seed",
        "2",
    ];
    let mut sending = traffic(Build::Plain, &network, &arguments)?;
    let sent = parse(&run(&mut sending)?.expect_code(1)?.stdout)?;
    target.signal(Signal::SIGTERM)?;
    target.output()?;
    ensure!(sent["right"] == false, "{sent}");
    ensure!(number(&sent, "/missing")? > 0, "{sent}");
    Ok(())
}
