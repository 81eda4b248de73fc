//! `bench splice` from outside: every server under every load, in turn, and no byte wrong.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Output, Requirement, Suite, counts, target_dir};
use serde_json::{Value, json};

const NEEDS: [Requirement; 8] = [
    Requirement::Splice,
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
        .case("bench_splice::gives_its_figures", &NEEDS, figures)
        .soak()
        .alone()
        .watchdog(900);
    use Requirement::{Gcc, Vm, VmHeaders};
    suite
        .case(
            "bench_harness::a_guest_gives_its_figures",
            &[Gcc, Vm, VmHeaders],
            in_a_guest,
        )
        .soak()
        .watchdog(900);
    suite.case(
        "bench_harness::without_a_guest_it_says_why",
        &[Gcc],
        no_guest,
    );
}

/// The module beside the other servers: each under each load in each round, and no byte wrong.
fn in_a_guest() -> Result<()> {
    let kernel = target_dir().join("vm").display().to_string();
    let out = bench("splice-guest", &["--kernel", &kernel])?.expect_code(0)?;
    let (summary, samples) = lines(&out)?;
    for field in [
        "module_vs_epoll_64conn",
        "module_p50_vs_epoll_1conn",
        "module_vs_kernel_echo_64conn",
        "splice_vs_module_64conn",
        "splice_p50_vs_module_1conn",
    ] {
        ensure!(summary[field].is_number(), "no {field} in {summary}");
    }
    let is = |name: &str, value: Value| {
        ensure!(summary[name] == value, "{name}: {summary}");
        Ok(())
    };
    is("emulated", json!(true))?;
    is("failures", json!(0.0))?;
    is("not_measured", json!([]))?;
    let rows = |name: &str| summary[name].as_array().map_or(0, Vec::len);
    ensure!(
        rows("standing") == 6 * 3 && rows("released") == 6,
        "{summary}"
    );
    for what in ["standing", "released"] {
        let of = |server: &str| {
            let mut all = samples.iter().filter(|s| s["what"] == what);
            all.by_ref().filter(|s| s["server"] == server).count()
        };
        let (user, module) = (of("user"), of("module"));
        ensure!(
            user > 0 && user == module,
            "{what}: {user} of user, {module}"
        );
    }
    let module = &summary["module"];
    // A window or two each of 1, 16 and 64 connections, and a thousand clients.
    let rounds = counts().pick(1, 2);
    ensure!(
        module["connections"].as_u64() >= Some(rounds * (1 + 16 + 64) + 1000)
            && module["left"] == 0,
        "{summary}"
    );
    Ok(())
}

fn no_guest() -> Result<()> {
    let out = bench("splice-guest", &["--kernel", "/hopscope-none"])?.expect_code(1)?;
    let (summary, samples) = lines(&out)?;
    let missing = summary["not_measured"].to_string();
    ensure!(
        samples.is_empty() && summary["failures"].is_null(),
        "{summary}"
    );
    ensure!(
        missing.contains("/hopscope-none/package") && missing.contains("install-vm"),
        "{missing}"
    );
    Ok(())
}

fn lines(out: &Output) -> Result<(Value, Vec<Value>)> {
    let parsed = out.stdout.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = parsed.collect::<Result<_, _>>()?;
    let summary = lines.pop().context("nothing was printed")?;
    Ok((summary, lines))
}

fn figures() -> Result<()> {
    let out = bench("splice", &[])?.expect_code(0)?;
    let (summary, samples) = lines(&out)?;
    for field in [
        "splice_vs_unix_64",
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
    // Redirected, AF_UNIX and TCP take turns; the redirected ones were redirected, and one-way bytes released.
    ensure!(
        rows("sockets")? == 3 && rows("one_way")? == 1 && rows("pairs")? == 2,
        "{summary}"
    );
    for row in summary["sockets"].as_array().context("sockets")? {
        ensure!(
            row["direct_messages"].as_u64() > row["tcp_messages"].as_u64(),
            "{row}"
        );
    }
    for row in summary["one_way"].as_array().context("one way")? {
        let connections = row["connections"].as_u64();
        ensure!(
            connections > Some(0) && row["released"].as_u64() == connections,
            "{row}"
        );
    }
    for way in ["redirected", "unix", "tcp"] {
        let of = samples.iter().filter(|s| s["what"] == "sockets");
        let of = of.filter(|s| s["way"] == way).count();
        ensure!(
            of == samples.iter().filter(|s| s["way"] == "tcp").count(),
            "{way}: {of}"
        );
    }
    let standing = samples.iter().filter(|s| s["what"] == "standing");
    for sample in standing {
        ensure!(sample["said"]["requests"].as_f64() > Some(0.0), "{sample}");
    }
    Ok(())
}
