//! On packets of its own.
use super::build::Build;
use super::{number, parse};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts, scratch};
use serde_json::Value;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
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
}

/// Runs the network function on a source of its own to the end, and returns its counters.
fn run_alone(build: Build, arguments: &[&str]) -> Result<Value> {
    let out = run(Command::new(build.network_function()?).args(arguments))?.expect_code(0)?;
    parse(&out.stdout)
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
    let packets = counts().pick(400_000u64, 100_000_000);
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
    let packets = counts().pick(200_000u64, 10_000_000);
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
