//! What is planted in the firewall, or in its packets, is what `report --tail` names first.
//!
//! Nothing here depends on how fast the machine is, but all of it on what delays packets; so what
//! is planted delays them by milliseconds, the firewall and the generator go before all other
//! processes, a recording in which the generator did not get its processor is made again, and what
//! else the machine does is allowed for: 5 % of the repetitions.
use super::number;
use super::planted::{Plant, record_undisturbed};
use super::runs::{one, report};
use super::scene::{Cables, Recorded};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const NEEDS: &[Requirement] = &[
    Requirement::Root,
    Requirement::Netns,
    Requirement::Gcc,
    Requirement::Fsgsbase,
];

/// The pipeline with its batch size, and all that it calls.
const FUNCTIONS: &[&str] = &[
    "pipeline_run(frame->received)",
    "hopscope-demo!*put",
    "hopscope-demo!control_show_sessions",
    "acl.so!*",
    "l2.so!*",
    "feature.so!*",
];

const PLAIN: Plant = Plant {
    name: "nothing",
    fault: &[],
    load: &["--rate", "2000", "--arrivals", "poisson", "-c", "6000"],
    flows: 40,
    denied: None,
    above: "1ms",
    interrupted: false,
    commanded: false,
};

/// With the cause that is to come first, and the function that it is to name.
const PLANTS: [(Plant, &str, Option<&str>); 7] = [
    (
        Plant {
            name: "slow packet",
            // A prime: it is another flow each time.
            fault: &["--spin-every", "61", "--spin-us", "8000"],
            load: &["--rate", "1000", "--arrivals", "poisson", "-c", "4000"],
            ..PLAIN
        },
        "slow_function",
        Some("l2_forward"),
    ),
    (
        Plant {
            name: "expensive rule",
            fault: &["--spin-port", "1007", "--spin-us", "5000"],
            load: &["--rate", "1000", "--arrivals", "poisson", "-c", "4000"],
            ..PLAIN
        },
        "expensive_input",
        Some("acl_lookup"),
    ),
    (
        Plant {
            name: "burst",
            // Each packet takes so long, or the generator would be slower than the firewall.
            fault: &["--spin-every", "1", "--spin-us", "40"],
            load: &[
                "--rate",
                "2000",
                "--arrivals",
                "poisson+burst:200/800",
                "-c",
                "8000",
            ],
            ..PLAIN
        },
        "burst",
        None,
    ),
    (
        Plant {
            name: "big batches",
            fault: &["--hold-every", "300", "--hold-us", "20000"],
            ..PLAIN
        },
        "big_batch",
        None,
    ),
    (
        Plant {
            name: "interrupting process",
            fault: &["--poll"],
            interrupted: true,
            ..PLAIN
        },
        "preempted",
        None,
    ),
    (
        Plant {
            name: "cache-hostile order",
            // 40 flows need 40 MiB: with packets of a flow back to back what they need is in a
            // cache, with flows in turn it is not, and then the firewall is too slow for them. In
            // bursts, so that the generator sleeps.
            fault: &["--session-bytes", "524288"],
            load: &[
                "--rate",
                "8000",
                "--arrivals",
                "burst:32",
                "-c",
                "24000",
                "--slf",
                "64",
                "--scatter",
                "2000/8000",
            ],
            above: "p85",
            ..PLAIN
        },
        "cache_hostile",
        None,
    ),
    (
        Plant {
            name: "rare command",
            commanded: true,
            ..PLAIN
        },
        "rare_function",
        Some("control_show_sessions"),
    ),
];

/// At reduced counts the first ones: all six are among those of the simulated firewall, which takes no time.
const FEW: usize = 2;

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "demo::what_is_planted_comes_first_in_the_tail",
            NEEDS,
            planted,
        )
        .alone()
        .watchdog(counts().pick(1800, 7200));
    suite
        .case(
            "demo::where_nothing_is_planted_none_of_it_is_named",
            NEEDS,
            control,
        )
        .alone()
        // The simulated firewall has it too.
        .soak()
        .watchdog(1800);
}

/// The causes that the report names, in its order, of packets above this time.
fn tail(recorded: &Recorded, above: &str) -> Result<Vec<Value>> {
    let packets = recorded.packets.to_str().context("a path in UTF-8")?;
    let mut lines = report(
        &recorded.process,
        &[
            "--packets",
            packets,
            "--root",
            "pipeline_run",
            "--tail",
            above,
        ],
    )?;
    let summary = one(&lines, "summary")?;
    ensure!(number(summary, "/attributed")? > 0, "{summary}");
    ensure!(
        summary["batch"]
            .as_str()
            .is_some_and(|b| b.contains("captured by")),
        "{summary}"
    );
    adds_up(summary)?;
    lines
        .remove("tail_cause")
        .context("no cause and no unknown")
}

/// Each part is rounded to a tenth of a nanosecond when it is printed.
fn adds_up(summary: &Value) -> Result<()> {
    let parts = summary["parts"].as_object().context("no parts")?;
    let sum: f64 = parts.values().filter_map(Value::as_f64).sum();
    let latency = summary["latency_ns"].as_f64().context("no latency")?;
    ensure!((sum - latency).abs() <= parts.len() as f64, "{summary}");
    Ok(())
}

fn rows_text(rows: &[Value]) -> String {
    let row = |r: &Value| {
        format!(
            "{} ({} packets, {} events)",
            r["text"], r["packets"], r["events"]
        )
    };
    rows.iter().map(row).collect::<Vec<_>>().join("; ")
}

fn planted() -> Result<()> {
    let cables = Cables::lay()?;
    let plants = counts().pick(&PLANTS[..FEW], &PLANTS);
    // One of each tells that all are found; where one was not, whether that is rare enough.
    let (mut each, enough) = (counts().pick(1, 20u64), counts().pick(4, 20));
    let mut said: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    let (mut right, mut wrong) = (0, Vec::new());
    let mut seed = 0;
    while seed < each {
        for (plant, cause, function) in plants {
            let recorded = record_undisturbed(&cables, plant, seed, FUNCTIONS)?;
            let rows = tail(&recorded, plant.above)?;
            let first = rows.first().context("no row")?;
            let named = first["function"].as_str().unwrap_or_default();
            let its = function.is_none_or(|f| named.ends_with(&format!("!{f}")));
            let text = first["text"].as_str().unwrap_or_default().to_owned();
            *said.entry(plant.name).or_default().entry(text).or_default() += 1;
            match first["cause"] == *cause && its {
                true => right += 1,
                false => {
                    wrong.push(format!("{}, seed {seed}: {}", plant.name, rows_text(&rows)));
                    each = enough;
                }
            }
        }
        seed += 1;
    }
    let all = each * plants.len() as u64;
    println!("first in {right} of {all}; what came first: {said:#?}");
    ensure!(
        right * 100 >= all * 95,
        "first in {right} of {all}; not in\n{}",
        wrong.join("\n")
    );
    Ok(())
}

/// What the machine does to the generator, to the way out or to the firewall's processor is there
/// and may be said. Of the firewall and the order of the packets there is nothing to say. Two recordings do not tell
/// one in twenty from one in a hundred: where one of them named something, there are twenty.
fn control() -> Result<()> {
    const ENOUGH: u64 = 20;
    let cables = Cables::lay()?;
    let mut each = ENOUGH;
    let mut wrong = Vec::new();
    let mut seed = 0;
    while seed < each {
        let recorded = record_undisturbed(&cables, &PLAIN, seed, FUNCTIONS)?;
        let rows = tail(&recorded, "p99")?;
        let never = [
            "slow_function",
            "expensive_input",
            "burst",
            "big_batch",
            "cache_hostile",
            "rare_function",
        ];
        if rows.iter().any(|r| never.iter().any(|n| r["cause"] == *n)) {
            wrong.push(format!("seed {seed}: {}", rows_text(&rows)));
            println!("{}", wrong[wrong.len() - 1]);
            each = ENOUGH;
        }
        seed += 1;
    }
    ensure!(
        wrong.len() as u64 * 100 <= each * 5,
        "something was named in {} of {each}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Ok(())
}
