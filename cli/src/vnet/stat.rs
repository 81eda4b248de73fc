//! `hopscope vnet stat`: what a back end that runs has counted, and what it does now.
use super::which::Which;
use crate::units::parse_time;
use anyhow::Context;
use clap::Args;
use hopscope_serving::control_client::Readings;
use hopscope_vnet::stat::{Reading, Table, prometheus_text, write_explanation};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

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
    let wait_ns = u64::try_from(args.wait.as_nanos()).context("--wait")?;
    let request = json!({ "do": "stat", "wait_ns": wait_ns });
    let mut out = std::io::stdout();
    let mut table = Table::default();
    let mut before: Option<Reading> = None;
    let show = |answer: Value| -> anyhow::Result<()> {
        if args.json {
            return Ok(writeln!(out, "{answer}")?);
        }
        let now = Reading::of(&answer)?;
        if args.prometheus {
            write!(out, "{}", prometheus_text(&now)?)?;
        } else if args.interval.is_none() || before.is_some() {
            table.write(&mut out, before.as_ref(), &now)?;
            if args.explain {
                write_explanation(&mut out, &now)?;
            }
        }
        before = args.interval.and(Some(now));
        Ok(())
    };
    let readings = Readings::new(args.interval, args.count, args.json);
    args.which.open()?.read(&request, &readings, show)?;
    Ok(ExitCode::SUCCESS)
}
