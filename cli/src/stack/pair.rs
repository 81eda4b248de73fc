//! `hopscope stack pair`: the engine against itself, in memory.
use crate::units::{parse_message_size, parse_rate};
use anyhow::bail;
use clap::Args;
use hopscope_stack_instance::pair::{self, PairPlan};
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

/// Joins two stacks in memory, in one thread, and has one echo the other's requests: what the engine costs without a
/// kernel and a device. Each connection has its turn, so that with many the caches are cold.
#[derive(Args)]
pub struct PairArgs {
    /// Open connections
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    connections: u32,
    /// Connections over which requests go; the others are idle [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    active: Option<u32>,
    /// Requests (2000, 10k, 1M)
    #[arg(short, long, value_name = "REQUESTS", default_value = "100k", value_parser = parse_rate)]
    count: f64,
    /// Request and response size in bytes (1 … 16K)
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = parse_message_size)]
    size: usize,
    /// Requests under way at a time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// It fits the empty send buffer.
const SIZE_MAX: usize = 16_384;

pub fn run(args: &PairArgs) -> anyhow::Result<ExitCode> {
    if args.size > SIZE_MAX {
        bail!("--size {}: at most {SIZE_MAX}", args.size);
    }
    let report = pair::run(PairPlan {
        connections: args.connections,
        active: args.active.unwrap_or(args.connections),
        requests: args.count as u64,
        size: args.size,
        depth: args.depth,
    })?;
    let per = |of: u64| report.duration.0 as f64 / of.max(1) as f64;
    // Each has two ends.
    let idle_bytes = report.grown_bytes / (2 * u64::from(args.connections));
    let accounted = report.accounted_bytes / u64::from(args.connections);
    let mut out = std::io::stdout();
    if args.json {
        let line = json!({
            "type": "summary", "schema": 1, "connections": args.connections, "answered": report.answered,
            "corrupt": report.corrupt, "segments": report.segments, "duration_s": report.duration.0 as f64 / 1e9,
            "opened_s": report.opened.0 as f64 / 1e9, "ns_per_segment": per(report.segments),
            "ns_per_request": per(report.answered), "bytes_per_idle_connection": idle_bytes,
            "accounted_bytes_per_idle_connection": accounted,
            "client": report.client, "server": report.serving,
        });
        writeln!(out, "{line}")?;
    } else {
        writeln!(
            out,
            "{} connections opened in {:.3} s; answered {}, wrong {}; {:.0} ns a request, {:.0} ns a segment (of both ends); \
             {idle_bytes} B an idle connection",
            args.connections,
            report.opened.0 as f64 / 1e9,
            report.answered,
            report.corrupt,
            per(report.answered),
            per(report.segments),
        )?;
    }
    Ok(ExitCode::from(u8::from(report.corrupt > 0)))
}
