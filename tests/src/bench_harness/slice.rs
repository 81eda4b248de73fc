//! `bench slice` and `case-tcp-send` from outside: which figures they give, that those come from
//! packets, and that nothing is left attached.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Output, Requirement, Suite, counts};
use serde_json::Value;

const NEEDS: [Requirement; 3] = [Requirement::Root, Requirement::Netns, Requirement::Gcc];

pub(super) fn register(suite: &mut Suite) {
    suite
        .case("bench_harness::slice_gives_its_figures", &NEEDS, figures)
        .in_turn()
        // The next has its programs and its harness.
        .soak()
        .watchdog(900);
    suite
        .case(
            "bench_harness::case_tcp_send_has_every_layer",
            &NEEDS,
            layers,
        )
        .in_turn()
        .watchdog(900);
}

fn lines(out: &Output) -> Result<(Vec<Value>, Value)> {
    let mut lines: Vec<Value> = out
        .stdout
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let summary = lines.pop().context("nothing was printed")?;
    ensure!(
        out.code == Some(0),
        "exit code {:?}\n{summary}\n{}",
        out.code,
        out.stderr
    );
    Ok((lines, summary))
}

fn figures() -> Result<()> {
    let (samples, summary) = lines(&bench("slice", &[])?)?;
    for field in [
        "rtt_off_us",
        "rtt_attached_us",
        "rtt_corrected_us",
        "aa_band_us",
        "ns_per_packet",
        "hits_per_packet",
        "clock_only_hit_ns",
        "tau_o_ns",
        "cost_vs_clock_only",
        "rtt_overhead_percent",
        "duty_overhead_percent",
        "corrected_error_percent",
        "slices_vs_whole_percent",
        "outer_flat_ratio",
    ] {
        ensure!(summary[field].is_number(), "no {field} in {summary}");
    }
    let count = |what: &str, side: &str| {
        let of = samples
            .iter()
            .filter(|s| s["what"] == what && s["side"] == side);
        of.count()
    };
    for what in ["round_trip", "duty"] {
        let sides = ["a", "b", "control"].map(|side| count(what, side));
        ensure!(
            sides[0] > 0 && sides == [sides[0]; 3],
            "{what}: not in turn: {sides:?}"
        );
    }
    // Seven regions have eight points: every packet with data passes each of them.
    let hits = summary["hits_per_packet"].as_f64().unwrap_or(0.0);
    ensure!(hits >= 7.5, "{hits} hits a packet");
    for sample in samples.iter().filter(|s| s["what"] == "round_trip") {
        let is_corrected = sample["correction_ns"].as_f64() > Some(0.0);
        ensure!(is_corrected == (sample["side"] == "b"), "{sample}");
    }
    let outer = samples.iter().filter(|s| s["what"] == "outer");
    let outer: Vec<&Value> = outer.filter(|s| s["round"] == 1).collect();
    ensure!(outer.len() == 4, "2, 4, 8 and 16 hooks: {outer:?}");
    for sample in outer {
        ensure!(sample["corrected_p50_ns"].as_f64() > Some(0.0), "{sample}");
    }
    Ok(())
}

fn layers() -> Result<()> {
    let (_, summary) = lines(&bench("case-tcp-send", &[])?)?;
    let rows = summary["rows"].as_array().context("rows")?;
    ensure!(
        rows.len() == 4 * counts().pick(2, 4),
        "each size on four ways, not {}",
        rows.len()
    );
    for row in rows {
        let of = |layer: &str| row["layers"][layer]["median"].as_f64();
        for layer in ["call", "tcp", "ip", "queue", "driver"] {
            ensure!(of(layer).is_some(), "no {layer} in {row}");
        }
        ensure!(row["packets"].as_f64() > Some(0.0), "{row}");
    }
    Ok(())
}
