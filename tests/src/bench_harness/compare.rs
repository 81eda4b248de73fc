//! `bench compare` over commands whose numbers are known. No time is looked at.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::hopscope;
use hopscope_tests::scratch;
use hopscope_tests::{Suite, counts};
use serde_json::Value;
use std::path::Path;

pub(super) fn register(suite: &mut Suite) {
    suite.case("bench_harness::sides_run_in_turn", &[], sides_run_in_turn);
    suite.case("bench_harness::equals_and_shifts", &[], equals_and_shifts);
    suite.case(
        "bench_harness::expectations_decide_the_exit_code",
        &[],
        expectations_decide_the_exit_code,
    );
    suite.case("bench_harness::results_are_kept", &[], results_are_kept);
    suite.case(
        "bench_harness::failures_are_one_line",
        &[],
        failures_are_one_line,
    );
}

fn sides_run_in_turn() -> Result<()> {
    let log = scratch().join("log");
    let says = |word| format!("echo {word} >> '{}'", log.display());
    let rounds = counts().pick(6, 60);
    let (a, b) = (says("A"), says("B"));
    let runs = rounds.to_string();
    let arguments = ["bench", "compare", "--a", &a, "--b", &b, "--runs", &runs];
    hopscope(&[&arguments[..], &["--warmup", "0"]].concat())?.expect_code(0)?;
    let log = std::fs::read_to_string(&log)?;
    let ran: Vec<&str> = log.lines().collect();
    ensure!(ran.len() == 3 * rounds, "{} runs", ran.len());
    for (place, wanted) in [0, 1, 2].into_iter().zip([rounds / 3; 3]) {
        let here = ran.iter().skip(place).step_by(3);
        let b = here.filter(|side| **side == "B").count();
        ensure!(b == wanted, "B ran {b} times in place {place}: {ran:?}");
    }
    for round in ran.chunks(3) {
        let b = round.iter().filter(|side| **side == "B").count();
        ensure!(b == 1, "a round of {round:?}");
    }
    Ok(())
}

/// A shell command that prints `base` with up to 3 % of noise, another one each time it runs.
fn noisy(counter: &Path, base: u32) -> String {
    format!(
        "n=$(cat '{0}'); echo $((n + 1)) > '{0}'; echo status; \
         echo \"{{\\\"figure\\\":{{\\\"value\\\":$(({base} * (1000 + n * n * 7 % 31)))}}}}\"",
        counter.display()
    )
}

fn summary_of(a: &str, b: &str, options: &[&str]) -> Result<(Value, usize)> {
    let fixed = ["bench", "compare", "--json", "--a", a, "--b", b];
    let out = hopscope(&[&fixed[..], options].concat())?.expect_code(0)?;
    let lines: Vec<&str> = out.stdout.lines().collect();
    let last = lines.last().context("nothing was printed")?;
    Ok((serde_json::from_str(last)?, lines.len()))
}

fn equals_and_shifts() -> Result<()> {
    let counter = scratch().join("counter");
    for (base, verdict) in [
        (1000, "no_difference"),
        (1050, "higher"),
        (952, "lower"),
        (1001, "no_difference"),
    ] {
        std::fs::write(&counter, "1\n")?;
        let (a, b) = (noisy(&counter, 1000), noisy(&counter, base));
        let options = ["--metric", "figure.value", "--runs", "21"];
        let (summary, lines) = summary_of(&a, &b, &options)?;
        ensure!(summary["verdict"] == verdict, "{base}: {summary}");
        let ratio = &summary["ratio"];
        let bound = |name: &str| ratio[name].as_f64().context("a ratio has bounds");
        let truth = f64::from(base) / 1000.0;
        ensure!(
            (bound("low")?..=bound("high")?).contains(&truth),
            "{base}: {ratio}"
        );
        ensure!(lines == 3 * 21 + 1, "{lines} lines");
    }
    Ok(())
}

fn expectations_decide_the_exit_code() -> Result<()> {
    let counter = scratch().join("counter");
    std::fs::write(&counter, "1\n")?;
    let (a, b) = (noisy(&counter, 1000), noisy(&counter, 1100));
    for (expected, code) in [
        ("higher", 0),
        ("not-lower", 0),
        ("no-difference", 1),
        ("lower", 1),
        ("not-higher", 1),
    ] {
        let fixed = [
            "bench",
            "compare",
            "--runs",
            "9",
            "--metric",
            "figure.value",
        ];
        let sides = ["--a", &a, "--b", &b, "--expect", expected];
        let out = hopscope(&[&fixed[..], &sides].concat())?.expect_code(code)?;
        ensure!(out.stdout.contains("% higher than A"), "{}", out.stdout);
    }
    Ok(())
}

fn results_are_kept() -> Result<()> {
    let dir = scratch().join("results");
    let saved = dir.display().to_string();
    let command = r#"echo '{"n": 7}'"#;
    let options = ["--metric", "n", "--runs", "6", "--save", &saved];
    let (printed, _) = summary_of(command, command, &options)?;
    let kept = std::fs::read_to_string(dir.join("compare.jsonl"))?;
    let lines: Vec<Value> = kept
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let (last, samples) = lines.split_last().context("the file is empty")?;
    ensure!(*last == printed, "{last}\n{printed}");
    ensure!(samples.len() == 18 && samples.iter().all(|s| s["type"] == "sample"));
    for field in ["schema", "bench", "unit", "host", "during", "verdict"] {
        ensure!(!last[field].is_null(), "no {field} in {last}");
    }
    let host = &last["host"];
    for field in ["cpu", "kernel", "governor", "load_average", "mitigations"] {
        ensure!(!host[field].is_null(), "no {field} of the host in {last}");
    }
    let page = std::fs::read_to_string(dir.join("compare.md"))?;
    for part in [
        "# bench compare",
        "no difference beyond noise",
        "steal meanwhile",
        "hopscope bench compare --json",
    ] {
        ensure!(page.contains(part), "no {part:?} in\n{page}");
    }
    Ok(())
}

fn failures_are_one_line() -> Result<()> {
    let fails = "echo why >&2; exit 3";
    for (a, metric, words) in [
        (fails, "wall", &["why", "exit status: 3"][..]),
        ("echo words", "n", &["echo words", "\"n\""]),
        (r#"echo '{"n": "7"}'"#, "n", &["\"n\""]),
        (r#"echo '{"n": -7}'"#, "n", &["-7", "above zero"]),
    ] {
        let runs = ["--runs", "6", "--warmup", "0"];
        let fixed = [
            "bench", "compare", "--b", "true", "--a", a, "--metric", metric,
        ];
        let b_too = ["--b", a];
        let arguments = match metric {
            "wall" => [&fixed[..], &runs].concat(),
            _ => [&fixed[..2], &fixed[4..], &runs, &b_too].concat(),
        };
        let out = hopscope(&arguments)?.expect_code(2)?;
        let said: Vec<&str> = out
            .stderr
            .lines()
            .filter(|l| !l.starts_with("bench: "))
            .collect();
        ensure!(said.len() == 1, "{}", out.stderr);
        ensure!(words.iter().all(|w| said[0].contains(w)), "{}", said[0]);
        ensure!(out.stdout.is_empty(), "{}", out.stdout);
    }
    let out = hopscope(&[
        "bench", "compare", "--a", "true", "--b", "true", "--runs", "5",
    ])?;
    let out = out.expect_code(2)?;
    ensure!(out.stderr.contains("allow no verdict"), "{}", out.stderr);
    Ok(())
}
