//! `hopscope vnet stat`: what a back end that runs has counted, and what it does now.
use super::which::Which;
use crate::units::parse_time;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

mod explain;
mod prometheus;
mod reading;
mod table;

use reading::Reading;

/// Shows kicks, interrupts, packets and times of each queue of a running `vnet serve`, since its start or per
/// interval. Of two columns with the same name, the first is the median (p50) and the second p99.
#[derive(Args)]
pub struct StatArgs {
    #[command(flatten)]
    which: Which,
    /// Print all counters as one JSON object
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print the Prometheus text format (textfile collector or web server)
    #[arg(long, conflicts_with_all = ["interval", "explain"])]
    prometheus: bool,
    /// Print rates per interval of this length (--json: totals)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    interval: Option<Duration>,
    /// Stop after this many intervals [default: at Ctrl-C]
    #[arg(short, long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Compare with policies in shadow mode and suggest one (needs --shadows)
    ///
    /// Turn shadow mode on with vnet serve --shadows or vnet set --shadows on.
    #[arg(long)]
    explain: bool,
    /// With --explain: allow packets to wait this long on average
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "3us", requires = "explain")]
    wait: Duration,
}

pub fn run(args: &StatArgs) -> anyhow::Result<ExitCode> {
    let mut asked = args.which.open()?;
    let wait_ns = u64::try_from(args.wait.as_nanos()).context("--wait")?;
    let request = json!({ "do": "stat", "wait_ns": wait_ns });
    let mut out = std::io::stdout();
    let mut table = table::Table::default();
    let mut before: Option<Reading> = None;
    let readings = match args.interval {
        None => 1,
        // Rates need a reading before the first.
        Some(_) => args
            .count
            .map_or(u64::MAX, |n| n.saturating_add(u64::from(!args.json))),
    };
    for n in 0..readings {
        if let Some(interval) = args.interval.filter(|_| n > 0) {
            std::thread::sleep(interval);
        }
        let answer = asked.ask(&request)?;
        if args.json {
            writeln!(out, "{answer}")?;
            continue;
        }
        let now = Reading::of(&answer)?;
        if args.prometheus {
            write!(out, "{}", prometheus::text(&now)?)?;
        } else if args.interval.is_none() || before.is_some() {
            table.write(&mut out, before.as_ref(), &now)?;
            if args.explain {
                explain::write(&mut out, &now)?;
            }
        }
        before = args.interval.and(Some(now));
    }
    Ok(ExitCode::SUCCESS)
}

/// Of pair 0 alone the number says nothing, but scripts want one form.
pub(super) fn name(pair: u64, direction: &str) -> String {
    format!("{direction}{pair}")
}

/// With `None` as what JSON has for what was not measured.
fn us(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| format!("{:.1}", ns as f64 / 1e3))
}

fn counted<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a Value> {
    value
        .get(name)
        .with_context(|| format!("the answer has no {name}: another version of hopscope?"))
}
