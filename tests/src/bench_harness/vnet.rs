//! `bench vnet` from outside: every policy under every load, in turn, and both ends of one opinion.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Output, Requirement, Suite, counts, target_dir};
use serde_json::{Value, json};

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "bench_harness::vnet_gives_its_figures",
            &[Requirement::Root, Requirement::Netns],
            figures,
        )
        // Beside others a window may pass in which neither end has a processor: no figure.
        .alone()
        .watchdog(900);
    use Requirement::{Netns, Root, Vm};
    suite
        .case(
            "bench_harness::a_guests_networks_give_their_figures",
            &[Root, Netns, Vm],
            in_a_guest,
        )
        .in_turn()
        // Two boots; `vnet::guest_is_called_less` has the same policies, and the other bench of a guest its harness.
        .soak()
        .watchdog(900);
    suite.case(
        "bench_harness::without_a_guest_vnet_says_why",
        &[],
        no_guest,
    );
}

fn lines(out: &Output) -> Result<(Value, Vec<Value>)> {
    let parsed = out.stdout.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = parsed.collect::<Result<_, _>>()?;
    let summary = lines.pop().context("nothing was printed")?;
    Ok((summary, lines))
}

/// Each policy under each load in each round; both ends count the same packets; batching saves calls.
fn in_a_guest() -> Result<()> {
    let kernel = target_dir().join("vm").display().to_string();
    let out = bench("vnet-guest", &["--kernel", &kernel])?.expect_code(0)?;
    let (summary, samples) = lines(&out)?;
    let is = |name: &str, value: Value| {
        ensure!(summary[name] == value, "{name}: {summary}");
        Ok(())
    };
    is("not_measured", json!([]))?;
    let at_least = |name: &str, least: f64| {
        let value = summary[name].as_f64().with_context(|| name.to_owned())?;
        ensure!(value >= least, "{name} is {value}: {summary}");
        Ok(())
    };
    // Some 20 and 40 with windows as long as those of the whole bench.
    at_least("guest_tx_calls_fewer", FEWER)?;
    at_least("guest_rx_calls_fewer", FEWER)?;
    at_least("guest_tcp_worst_ratio", f64::MIN_POSITIVE)?;
    let kicks = summary["defer_kicks_vs_event_idx"].as_f64();
    // How many it saves is tested by `vnet::guest_is_called_less`.
    ensure!(kicks.is_some(), "{summary}");
    for (signal, said) in [("sigterm", "SIGTERM"), ("sigkill", "SIGKILL")] {
        let recovery = &summary["recovery"][signal];
        let ms = recovery["ms"].as_array().map(Vec::len);
        ensure!(
            ms == Some(1) && recovery["corrupt"] == 0.0,
            "{said}: {recovery}"
        );
    }
    ensure!(summary["emulated"].is_boolean(), "{summary}");
    let twice = &summary["recovery"]["sigterm"]["duplicate"];
    ensure!(*twice == 0.0, "{twice} came twice: {summary}");
    let windows: Vec<&Value> = samples.iter().filter(|s| s["what"] == "guest").collect();
    // Rounds of six policies: four loads without offloads, two with them.
    let rounds = counts().pick(1, 2);
    ensure!(
        windows.len() == rounds * 6 * (4 + 2),
        "{} windows",
        windows.len()
    );
    for window in windows {
        let run = &window["run"];
        let packets = |queue: &str| run[queue]["packets"].as_f64();
        ensure!(
            packets("tx") > Some(0.0) && run["ends_agree"] == true,
            "{window}"
        );
        // A window may end before anything went, and datagrams are refused, where the guest stood still for long.
        let excused = run["value"] == 0.0 || window["unit"] == "datagrams/s";
        ensure!(run["failed"] == 0.0 || excused, "{window}");
    }
    Ok(())
}

/// Some 7 times fewer on a machine that does much else.
const FEWER: f64 = 2.0;

fn no_guest() -> Result<()> {
    let out = bench("vnet-guest", &["--kernel", "/hopscope-none"])?.expect_code(1)?;
    let (summary, samples) = lines(&out)?;
    let missing = summary["not_measured"].to_string();
    ensure!(
        samples.is_empty() && summary["guest_tx_calls_fewer"].is_null(),
        "{summary}"
    );
    ensure!(
        missing.contains("/hopscope-none/package") && missing.contains("install-vm"),
        "{missing}"
    );
    Ok(())
}

fn figures() -> Result<()> {
    let out = bench("vnet", &[])?.expect_code(0)?;
    let (summary, lines) = lines(&out)?;
    for field in [
        "adaptive_vs_best_fixed",
        "adaptive_latency_vs_plain_1kpps",
        "ahc_latency_vs_plain_1kpps",
    ] {
        ensure!(summary[field].is_number(), "no {field} in the summary");
    }
    let samples = |what: &str| {
        let samples = lines.iter().filter(|line| line["what"] == what);
        samples.map(|line| &line["run"]).collect::<Vec<_>>()
    };
    // Three loads of seven policies; three or seven loads of six, with and without offloads.
    let (rounds, loads) = counts().pick((1, 3), (2, 7));
    let (rings, networks) = (samples("rings"), samples("network"));
    ensure!(
        rings.len() == rounds * 3 * 7 && networks.len() == rounds * 2 * loads * 6,
        "{} and {} samples",
        rings.len(),
        networks.len()
    );
    for run in rings {
        ensure!(run["ends_agree"] == true, "{run}");
        ensure!(run["packets_per_s"].as_f64() > Some(0.0), "{run}");
    }
    for run in networks {
        ensure!(run["value"].as_f64() > Some(0.0), "{run}");
    }
    // What `plain` is, to the unit: its front end kicks for each packet, its back end calls for each.
    for per_packet in ["kicks_per_packet", "calls_per_packet"] {
        let loads = summary[per_packet]["plain"].as_object();
        let loads = loads.with_context(|| format!("no {per_packet} of plain"))?;
        ensure!(
            loads.len() == 3 && loads.values().all(|n| *n == 1.0),
            "{per_packet}: {loads:?}"
        );
    }
    let does_not_win = summary["tam_does_not_win"].as_array();
    let does_not_win = does_not_win.context("no tam_does_not_win")?;
    // The least of it has two of their loads.
    let measured = does_not_win.iter().filter(|row| row["ratio"].is_number());
    ensure!(
        does_not_win.len() == 4 && measured.count() == counts().pick(2, 4),
        "{does_not_win:?}"
    );
    Ok(())
}
