//! `hopscope vnet stat`: what a back end that runs has counted, and what it does now.
use super::ask::{Asked, Which};
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

/// Kicks, calls, packets and times of each queue of a `vnet serve` that runs: since its start, or each interval. A
/// second column of the same name is of the packet that is slowest of a hundred (p99) where the first is of the middle one (p50).
#[derive(Args)]
pub struct StatArgs {
    #[command(flatten)]
    which: Which,
    /// A line of JSON: everything there is
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Prometheus' text format, for a collector of text files or behind a web server
    #[arg(long, conflicts_with_all = ["interval", "explain"])]
    prometheus: bool,
    /// Each so long, what happened in it, as rates (--json: everything up to then)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    interval: Option<Duration>,
    /// So many of them; without it until Ctrl-C
    #[arg(short, long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What other policies would have sent, and which to take (needs vnet serve --shadows, or vnet set --shadows on)
    #[arg(long)]
    explain: bool,
    /// With --explain: packets may wait so long on the average
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "3us", requires = "explain")]
    wait: Duration,
}

pub fn run(args: &StatArgs) -> anyhow::Result<ExitCode> {
    let mut asked = Asked::open(&args.which)?;
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
