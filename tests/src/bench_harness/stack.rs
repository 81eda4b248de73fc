//! `bench stack` and `bench stack-engine` from outside: every figure, of both stacks, in each round.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Gcc, Iperf, Netns, Nginx, Redis, Root, Valgrind, Wrk};
    suite
        .case(
            "bench_harness::stack_gives_its_figures",
            &[Root, Netns, Gcc, Wrk, Ethtool, Nginx, Redis, Iperf],
            programs,
        )
        .in_turn()
        .soak()
        .watchdog(1_200);
    suite
        .case(
            "bench_harness::stack_engine_gives_its_figures",
            &[Root, Netns, Gcc, Wrk, Ethtool, Valgrind],
            figures,
        )
        .in_turn()
        // Its shortest windows may hold nothing on a busy machine: a SYN that a device which is just coming up drops costs a second.
        .soak()
        .watchdog(1_200);
}

/// Each way that a figure has, once a round.
fn programs() -> Result<()> {
    let out = bench("stack", &[])?.expect_code(0)?;
    let parsed = out.stdout.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = parsed.collect::<Result<_, _>>()?;
    let summary = lines.pop().context("nothing was printed")?;
    let of = |what: &str, side: &str| {
        let of = |line: &&Value| line["what"] == what && line["side"] == side;
        let found = lines.iter().filter(of).map(|line| &line["found"]);
        found.cloned().collect::<Vec<_>>()
    };
    for (what, ways) in [
        (
            "http_64",
            "kernel kernel_spins inline inline_spins pipeline",
        ),
        ("http_9000", "kernel inline pipeline"),
        ("http_short_1000", "kernel inline pipeline"),
        ("nginx_short_64", "kernel inline pipeline"),
        ("http_loss_64", "kernel inline pipeline"),
        ("redis_get_50", "kernel inline pipeline"),
        ("bulk_out", "kernel inline pipeline pipeline_tap"),
    ] {
        for way in ways.split(' ') {
            let turns = of(what, way);
            ensure!(!turns.is_empty(), "no {what} {way}: {summary}");
            for turn in turns {
                let positive = |field: &str| turn[field].as_f64().is_some_and(|n| n > 0.0);
                let all = ["value", "cpu_us", "client_busy"];
                ensure!(all.into_iter().all(positive), "{what} {way}: {turn}");
            }
            let median = &summary["figures"][what][way]["value"]["median"];
            ensure!(median.as_f64().is_some_and(|n| n > 0.0), "{summary}");
        }
    }
    ensure!(!of("call_ns", "inline").is_empty(), "{summary}");
    Ok(())
}

fn figures() -> Result<()> {
    let out = bench("stack-engine", &[])?.expect_code(0)?;
    let parsed = out.stdout.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = parsed.collect::<Result<_, _>>()?;
    let summary = lines.pop().context("nothing was printed")?;
    ensure!(
        summary["not_measured"]
            .as_array()
            .is_some_and(Vec::is_empty),
        "{summary}"
    );
    for field in [
        "http_vs_kernel_64",
        "http_vs_kernel_1000",
        "http_vs_kernel_9000",
        "http_vs_spinning_kernel_64",
        "p50_1_vs_kernel",
        "bulk_vs_cubic_0pct",
        "bulk_vs_cubic_01pct",
        "bulk_vs_cubic_1pct",
        "bulk_vs_cubic_3pct",
        "tail_loss_recovery_vs_kernel",
        "bulk_out_tap_vs_veth_kernel",
        "bulk_in_tap_vs_veth_kernel",
        "segment_ns_100k_over_10",
        "bytes_per_idle_connection",
        "instructions_per_request",
    ] {
        let value = summary[field]
            .as_f64()
            .with_context(|| format!("no {field}"))?;
        ensure!(value > 0.0, "{field}: {summary}");
        let of = |side: &str| {
            let is = |line: &&Value| line["what"] == field && line["side"] == side;
            lines.iter().filter(is).count()
        };
        ensure!(
            of("kernel") == of("stack"),
            "{field}: {} and {}",
            of("kernel"),
            of("stack")
        );
    }
    Ok(())
}
