//! The summary of `bench stack`: each figure against its goal, and what stands behind it.
use super::Bench;
use super::rounds::Turn;
use super::ways::Way;
use crate::goal::Goal;
use crate::ratio::{estimate, interval, ratio_text};
use crate::table::{Table, closing};
use hopscope_compare::median::Interval;
use hopscope_compare::output::Summary;
use hopscope_compare::stats::Spread;
use serde_json::{Map, Value, json};

type Of = fn(&Turn) -> Option<f64>;

const VALUE: Of = |turn| Some(turn.value);
const P50: Of = |turn| turn.p50_us;
const CPU: Of = |turn| turn.cpu_us;

/// What is to be at least so many times as much one way as the other.
const AT_LEAST: &[(&str, &str, Way, Way, f64)] = &[
    ("inline_64", "http_64", Way::Inline, Way::Kernel, 1.25),
    ("inline_1000", "http_1000", Way::Inline, Way::Kernel, 1.2),
    ("inline_9000", "http_9000", Way::Inline, Way::Kernel, 1.0),
    (
        "inline_64_spinning",
        "http_64",
        Way::InlineSpins,
        Way::KernelSpins,
        1.05,
    ),
    ("pipeline_64", "http_64", Way::Pipeline, Way::Kernel, 1.0),
    ("inline_nginx_64", "nginx_64", Way::Inline, Way::Kernel, 1.2),
    (
        "inline_redis_50",
        "redis_get_50",
        Way::Inline,
        Way::Kernel,
        1.25,
    ),
    (
        "bulk_out_tap",
        "bulk_out",
        Way::PipelineTap,
        Way::Kernel,
        1.0,
    ),
    (
        "inline_loss_64",
        "http_loss_64",
        Way::Inline,
        Way::Kernel,
        1.0,
    ),
];

impl Bench<'_, '_> {
    fn ratio(&self, what: &str, way: Way, of: Of) -> Option<Interval> {
        self.over(what, way, control(way), of)
    }
}

/// What a way is set against: the kernel that sleeps, or spins, as it does.
fn control(way: Way) -> Way {
    match way {
        Way::InlineSpins => Way::KernelSpins,
        _ => Way::Kernel,
    }
}

pub(super) fn summary(bench: &Bench<'_, '_>) -> Summary {
    let mut goals: Vec<Goal> = AT_LEAST
        .iter()
        .map(|(name, what, way, other, goal)| {
            let found = bench.over(what, *way, *other, VALUE);
            Goal::at_least(name, found.map(|found| found.estimate), *goal)
        })
        .collect();
    let estimated = |found: Option<Interval>| found.map(|found| found.estimate);
    let p50 = estimated(bench.ratio("http_1", Way::InlineSpins, P50));
    let asleep = bench.over("http_1", Way::Inline, Way::Kernel, P50);
    goals.push(Goal::at_most("inline_p50_1", estimated(asleep), 0.75));
    let nginx_cpu = estimated(bench.ratio("nginx_64", Way::Inline, CPU));
    goals.push(Goal::at_most("inline_nginx_64_cpu", nginx_cpu, 0.7));
    let call = |way| bench.spread("call_ns", way).map(|spread| spread.median);
    let dearer = call(Way::Inline).zip(call(Way::Kernel)).map(|(a, b)| a - b);
    goals.push(Goal::at_most("kernel_call_dearer_ns", dearer, 3.0));
    let mut fields = json!({
        "figures": figures(bench), "goals": goals, "not_measured": bench.not_measured,
        "inline_p50_1_spinning": p50,
    });
    for goal in &goals {
        fields[goal.name] = json!(goal.measured);
    }
    Summary {
        unit: json!({
            "value": "1/s; of bulk_out, bit/s; of call_ns, ns", "p50_us": "us", "p99_us": "us",
            "cpu_us": "us a request; of bulk_out, us a kB", "client_busy": "of a processor", "over_kernel": "ratio",
            "over_spinning_kernel": "ratio", "inline_": "ratio", "pipeline_": "ratio", "bulk_out_tap": "ratio",
        }),
        fields,
        complete: bench.not_measured.is_empty(),
        table: table(bench, &goals),
    }
}

/// Of each figure and way.
fn figures(bench: &Bench<'_, '_>) -> Value {
    let figures = bench.found.iter().map(|(what, turns)| {
        let ways = turns.iter().map(|(way, turns)| {
            let spread = |of: Of| Spread::of(&turns.iter().filter_map(of).collect::<Vec<_>>());
            let over = |of: Of| {
                let ratio = bench.ratio(what, *way, of);
                json!({ "ratio": estimate(ratio), "interval": interval(ratio) })
            };
            let mut found = json!({ "value": spread(VALUE) });
            for (name, of) in [
                ("p50_us", P50),
                ("p99_us", |turn: &Turn| turn.p99_us),
                ("cpu_us", CPU),
                ("client_busy", |turn: &Turn| turn.client_busy),
            ] as [(&str, Of); 4]
            {
                if let Some(spread) = spread(of) {
                    found[name] = json!(spread);
                }
            }
            if control(*way) != *way {
                let name = match control(*way) {
                    Way::Kernel => "over_kernel",
                    _ => "over_spinning_kernel",
                };
                found[name] =
                    json!({ "value": over(VALUE), "p50_us": over(P50), "cpu_us": over(CPU) });
            }
            (way.name().to_owned(), found)
        });
        (
            (*what).to_owned(),
            Value::Object(ways.collect::<Map<_, _>>()),
        )
    });
    Value::Object(figures.collect())
}

fn table(bench: &Bench<'_, '_>, goals: &[Goal]) -> String {
    let head = [
        "",
        "",
        "median",
        "over the kernel's",
        "p50 us",
        "CPU us",
        "client busy",
    ];
    let mut table = Table::new(2, head);
    for (what, turns) in &bench.found {
        for (way, turns) in turns {
            let median = |of: Of, decimals: usize| {
                let values: Vec<f64> = turns.iter().filter_map(of).collect();
                Spread::of(&values).map_or("-".to_owned(), |spread| {
                    format!("{:.decimals$}", spread.median)
                })
            };
            let ratio = bench.ratio(what, *way, VALUE);
            table.row([
                (*what).to_owned(),
                way.name().to_owned(),
                median(VALUE, 0),
                if control(*way) == *way {
                    String::new()
                } else {
                    ratio_text(ratio)
                },
                median(P50, 0),
                median(CPU, 2),
                median(|turn| turn.client_busy, 2),
            ]);
        }
    }
    format!("{table}\n{}", closing(goals, &bench.not_measured))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goal_has_a_name_of_its_own() {
        let mut names: Vec<&str> = AT_LEAST.iter().map(|(name, ..)| *name).collect();
        names.extend([
            "inline_p50_1",
            "inline_nginx_64_cpu",
            "kernel_call_dearer_ns",
        ]);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
