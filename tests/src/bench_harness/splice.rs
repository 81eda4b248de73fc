//! `bench splice` from outside: every server under every load, in turn, and no byte wrong.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite};
use serde_json::Value;

const NEEDS: [Requirement; 7] = [
    Requirement::Root,
    Requirement::Netns,
    Requirement::Gcc,
    Requirement::SliceHooks,
    Requirement::Redis,
    Requirement::Haproxy,
    Requirement::Python3,
];

pub(super) fn register(suite: &mut Suite) {
    suite
        .case("bench_harness::splice_gives_its_figures", &NEEDS, figures)
        .alone()
        .watchdog(900);
}

fn figures() -> Result<()> {
    let out = bench("splice", &[])?.expect_code(0)?;
    let lines: Vec<Value> = out
        .stdout
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let (summary, samples) = lines.split_last().context("nothing was printed")?;
    for field in [
        "splice_vs_epoll_64conn",
        "splice_p50_vs_epoll_1conn",
        "guard_vs_unguarded",
        "kernel_echo_vs_epoll_64conn",
        "kernel_egress_vs_epoll_64conn",
        "listen_overflows",
        "redis_ratio",
        "haproxy_ratio",
        "asyncio_ratio",
    ] {
        ensure!(summary[field].is_number(), "no {field} in {summary}");
    }
    ensure!(summary["failures"] == 0.0, "{summary}");
    ensure!(
        summary["not_measured"] == serde_json::json!([]),
        "{summary}"
    );
    let rows = |name: &str| Ok::<_, anyhow::Error>(summary[name].as_array().context("rows")?.len());
    // Two paths, seven servers; two sizes at one and at 64 connections.
    ensure!(rows("standing")? == 2 * 7 * 4, "{summary}");
    ensure!(
        rows("released")? == 2 * 7 && rows("many")? == 2 * 7,
        "{summary}"
    );
    ensure!(rows("accept_queues")? == 4, "{summary}");
    // A ratio is one of programs that were joined, or it says nothing.
    let programs = summary["programs"].as_array().context("programs")?;
    ensure!(programs.len() == 3 * 2, "{summary}");
    for row in programs {
        ensure!(
            row["direct_messages"].as_u64() > row["tcp_messages"].as_u64()
                && row["failures"] == 0.0,
            "{row}"
        );
    }
    let standing = samples.iter().filter(|s| s["what"] == "standing");
    for sample in standing {
        ensure!(sample["said"]["requests"].as_f64() > Some(0.0), "{sample}");
    }
    Ok(())
}
