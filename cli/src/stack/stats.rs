//! `hopscope stack stats`: counters of a stack that runs.
use super::which::Which;
use crate::units::parse_time;
use clap::Args;
use hopscope_serving::control_client::Readings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

mod prometheus;

/// Shows the counters of a running `stack serve`, since its start or per interval, with the names of nstat: Tcp…, TcpExt…,
/// and those that the kernel has no counterpart of: Hopscope…, Port…, Link…, App….
#[derive(Args)]
pub struct StatsArgs {
    #[command(flatten)]
    which: Which,
    /// Print all counters as one JSON object
    #[arg(long)]
    json: bool,
    /// Print all counters of each engine in Prometheus' text format
    #[arg(long, conflicts_with_all = ["json", "interval", "zeros"])]
    prometheus: bool,
    /// Print counters that are zero, too
    #[arg(short, long)]
    zeros: bool,
    /// Print what was added per interval of this length (--json: totals)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    interval: Option<Duration>,
    /// Stop after this many intervals [default: at Ctrl-C]
    #[arg(short, long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub fn run(args: &StatsArgs) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout();
    let mut before: Option<Rows> = None;
    let show = |answer: Value| -> anyhow::Result<()> {
        if args.json {
            return Ok(writeln!(out, "{answer}")?);
        }
        if args.prometheus {
            return Ok(write!(out, "{}", prometheus::text(&answer))?);
        }
        let now = rows(&answer);
        if args.interval.is_none() || before.is_some() {
            write(&mut out, &now, before.as_ref(), args.zeros)?;
        }
        before = args.interval.and(Some(now));
        Ok(())
    };
    let readings = Readings::new(args.interval, args.count, args.json);
    let request = json!({ "do": "stats" });
    args.which.open()?.read(&request, &readings, show)?;
    Ok(ExitCode::SUCCESS)
}

/// What belongs to an engine besides its own counters: the names' beginning, and the field.
const GROUPS: &[(&str, &str)] = &[
    ("Port", "port"),
    ("Link", "link"),
    ("Share", "share"),
    ("App", "app"),
    ("Memory", "memory"),
];

/// Name and value, in the order of the answer.
type Rows = Vec<(String, u64)>;

/// Summed over all engines.
fn rows(answer: &Value) -> Rows {
    let mut order = Vec::new();
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |name: String, value: &Value| {
        let Some(value) = value.as_u64() else {
            return;
        };
        let sum = sums.entry(name.clone()).or_insert_with(|| {
            order.push(name);
            0
        });
        *sum += value;
    };
    for engine in answer["engines"].as_array().into_iter().flatten() {
        for (group, counters) in engine["counters"].as_object().into_iter().flatten() {
            for (name, value) in counters.as_object().into_iter().flatten() {
                add(format!("{group}{name}"), value);
            }
        }
        for (group, field) in GROUPS {
            for (name, value) in engine[*field].as_object().into_iter().flatten() {
                add(format!("{group}{}", camel(name)), value);
            }
        }
    }
    let value = |name: &String| sums.get(name).copied().unwrap_or(0);
    order
        .iter()
        .map(|name| (name.clone(), value(name)))
        .collect()
}

/// `receive_dropped`: `ReceiveDropped`, as the kernel's counters are written.
fn camel(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

fn write(out: &mut impl Write, now: &Rows, before: Option<&Rows>, zeros: bool) -> io::Result<()> {
    writeln!(out, "#hopscope")?;
    for (name, value) in now {
        let earlier = before.and_then(|rows| rows.iter().find(|(of, _)| of == name));
        let value = value.saturating_sub(earlier.map_or(0, |(_, value)| *value));
        if value > 0 || zeros {
            writeln!(out, "{name:<32} {value:>16}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_summed() {
        let engine = |n: u64| {
            json!({
                "counters": { "Tcp": { "InSegs": n, "OutSegs": 0 } },
                "port": { "receive_dropped": 1 },
            })
        };
        let rows = rows(&json!({ "engines": [engine(2), engine(3)] }));
        let expected = [
            ("TcpInSegs", 5),
            ("TcpOutSegs", 0),
            ("PortReceiveDropped", 2),
        ];
        let expected: Rows = expected.map(|(name, n)| (name.to_owned(), n)).into();
        assert_eq!(rows, expected);
        let mut text = Vec::new();
        write(&mut text, &rows, None, false).unwrap();
        assert_eq!(String::from_utf8(text).unwrap().lines().count(), 3);
    }
}
