//! The summary of `bench stack-engine`: each figure against its goal, and what stands behind it.
use super::Bench;
use crate::goal::Goal;
use crate::ratio::ratio_text;
use crate::table::closing;
use hopscope_compare::output::Summary;
use serde_json::json;
use std::fmt::Write;

/// Ratios of the stack to the kernel, with the least that they are to be; times, the most.
const AT_LEAST: &[(&str, f64)] = &[
    ("bulk_vs_cubic_0pct", 0.9),
    ("bulk_vs_cubic_01pct", 0.9),
    ("bulk_vs_cubic_1pct", 1.0),
    ("bulk_vs_cubic_3pct", 0.9),
    ("http_vs_kernel_64", 1.4),
    ("http_vs_kernel_1000", 1.3),
    ("http_vs_kernel_9000", 1.1),
    ("http_vs_spinning_kernel_64", 1.1),
    ("bulk_out_tap_vs_veth_kernel", 1.0),
    ("bulk_in_tap_vs_veth_kernel", 0.6),
];
const AT_MOST: &[(&str, f64)] = &[
    ("tail_loss_recovery_vs_kernel", 1.0),
    ("p50_1_vs_kernel", 0.7),
    ("segment_ns_100k_over_10", 1.5),
];
/// Measured beside them, without a goal.
const STATED: &[&str] = &[
    "p50_1_sleeping_vs_kernel",
    "p50_1_vs_spinning_kernel",
    "segment_ns_100k_idle_over_10",
];

pub(super) fn summary(bench: &Bench<'_, '_>) -> Summary {
    let estimate = |name: &str| bench.found.get(name).map(|found| found.ratio.estimate);
    let mut goals: Vec<Goal> = AT_LEAST
        .iter()
        .map(|(name, goal)| Goal::at_least(name, estimate(name), *goal))
        .collect();
    goals.extend(
        AT_MOST
            .iter()
            .map(|(name, goal)| Goal::at_most(name, estimate(name), *goal)),
    );
    let idle = bench.single.get("bytes_per_idle_connection").copied();
    goals.push(Goal::at_most("bytes_per_idle_connection", idle, 2_048.0));
    let instructions = bench.single.get("instructions_per_request").copied();
    let mut fields = json!({
        "instructions_per_request": instructions, "compared": bench.found, "goals": goals,
        "not_measured": bench.not_measured,
    });
    for goal in &goals {
        fields[goal.name] = json!(goal.measured);
    }
    for name in STATED {
        fields[*name] = json!(estimate(name));
    }
    let complete = bench.not_measured.is_empty();
    Summary {
        unit: json!({
            "_vs_": "ratio", "segment_ns_100k_over_10": "ratio", "bytes_per_idle_connection": "B",
            "instructions_per_request": "1", "bulk_": "bit/s", "http_": "1/s", "p50_": "us", "tail_": "us",
        }),
        fields,
        complete,
        table: table(bench, &goals, instructions),
    }
}

fn table(bench: &Bench<'_, '_>, goals: &[Goal], instructions: Option<f64>) -> String {
    let mut out =
        String::from("median of each: kernel, stack; stack over kernel (95 % interval)\n\n");
    for (name, found) in &bench.found {
        let _ = writeln!(
            out,
            "{name:<30} {:>14.4e} {:>14.4e}  {}",
            found.a.median,
            found.b.median,
            ratio_text(Some(found.ratio))
        );
    }
    if let Some(instructions) = instructions {
        let _ = writeln!(
            out,
            "\ninstructions_per_request (of both ends): {instructions:.0}"
        );
    }
    out.push('\n');
    out + &closing(goals, &bench.not_measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_one_goal() {
        let names = AT_LEAST.iter().chain(AT_MOST).map(|(name, _)| *name);
        let mut names: Vec<&str> = names.chain(STATED.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
