//! `hopscope stack connect`: the stack with a client in it.
use super::link::LinkArgs;
use super::running::{self, Stop};
use crate::address::resolve;
use crate::units::{parse_message_size, parse_time};
use crate::{event_file, host};
use anyhow::bail;
use clap::{Args, ValueEnum};
use hopscope_serving::events::EventFile;
use hopscope_serving::privileges;
use hopscope_stack_instance::client::{Client, ClientPlan, ClientReport, Work};
use hopscope_stack_instance::{Ns, events};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Connects with a stack in user space and sends, receives or requests; compares every byte that it knows. Exits with 1
/// if a connection failed or a byte was wrong.
#[derive(Args)]
pub struct ConnectArgs {
    /// IP:PORT of the server
    #[arg(value_name = "ADDR")]
    target: String,
    #[command(flatten)]
    link: LinkArgs,
    /// What the server does: echo, discard (send to it), chargen (receive), http (GET /)
    #[arg(long, value_enum, default_value_t = AppArg::Echo)]
    app: AppArg,
    /// Concurrent connections
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Stop after this time (500ms, 5s, 2m; a bare number is seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,
    /// echo, http: stop after this many requests [default: 1 without --duration]
    #[arg(short, long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// discard, chargen: bytes over each connection (64K, 10M, 1G)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bytes: Option<u64>,
    /// echo: message size in bytes (1 … 16M)
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = parse_message_size)]
    size: usize,
    /// Count a connection over which nothing moves for this time as failed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    timeout: Duration,
    /// Seed of the payload
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Do not compare what is received
    #[arg(long)]
    no_verify: bool,
    /// Record each segment's way to the client and back for `hopscope report`
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object: the summary
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AppArg {
    Echo,
    Discard,
    Chargen,
    Http,
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    if let Some(number) = text.trim_end_matches("iB").strip_suffix(['G', 'g']) {
        let number = number.parse::<u64>().ok();
        let bytes = number.and_then(|number| number.checked_mul(1 << 30));
        return bytes.ok_or_else(|| format!("{text:?} is no number of bytes"));
    }
    crate::units::parse_size(text).map(|size| size as u64)
}

impl ConnectArgs {
    fn plan(&self) -> anyhow::Result<ClientPlan> {
        let is_stream = matches!(self.app, AppArg::Discard | AppArg::Chargen);
        if is_stream && self.count.is_some() {
            bail!("--count is for echo and http: give --bytes or --duration");
        }
        if !is_stream && self.bytes.is_some() {
            bail!("--bytes is for discard and chargen: give --count or --duration");
        }
        if is_stream && self.bytes.is_none() && self.duration.is_none() {
            bail!("give --bytes or --duration");
        }
        let once = !is_stream && self.duration.is_none();
        let requests = self.count.or(once.then_some(self.connections.into()));
        let to = resolve(&self.target)?;
        if self.link.addr.iter().any(|a| a.address == to.ip()) {
            bail!("{to} is the stack's own address, where nobody is: give another host's");
        }
        let ns = |time: Duration| Ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Ok(ClientPlan {
            to,
            work: match self.app {
                AppArg::Echo => Work::Echo,
                AppArg::Discard => Work::Send,
                AppArg::Chargen => Work::Receive,
                AppArg::Http => Work::Http,
            },
            connections: self.connections,
            size: self.size,
            bytes: self.bytes,
            requests,
            duration: self.duration.map(ns),
            timeout: ns(self.timeout),
            seed: self.seed,
            verify: !self.no_verify,
        })
    }
}

pub fn run(args: &ConnectArgs) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    let stop = Stop::at_signals()?;
    let devices = args.link.open(1, false)?;
    let recording = args.output.as_deref();
    let recording = recording.map(|path| events::begin(path, &host::meta(), 1));
    let (events, file) = recording.transpose()?.unzip();
    let log = |n| events.as_ref().map_or_else(Default::default, |e| e.log(n));
    let client = || Client::new(plan.clone());
    let (mut instances, _) = running::start(&args.link, devices, log, client, false)?;
    drop(events);
    privileges::drop_all(None)?;
    let file = file.map(EventFile::start);
    let ran = running::run(&mut instances, &stop, None);
    let Some(mut instance) = instances.pop() else {
        bail!("no engine");
    };
    instance.act(Client::stop);
    let ended = instance.end();
    let report = instance.app().report(instance.now());
    drop(instance);
    let failed = ran.as_ref().err().map(ToString::to_string);
    let kept = event_file::finish(file, failed, args.json);
    let stats = ended.unwrap_or(Value::Null);
    summary(args, &report, &stats)?;
    ran?;
    kept?;
    let good = report.counts.failed == 0 && report.counts.corrupt == 0;
    if let Some(error) = report.first_error {
        crate::status::say!("{}: {error}", args.target);
    }
    Ok(ExitCode::from(u8::from(!good)))
}

fn summary(args: &ConnectArgs, report: &ClientReport, stats: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let (counts, seconds) = (&report.counts, report.duration.0 as f64 / 1e9);
    let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds.max(1e-9);
    let latency = report.latency.percentiles();
    if args.json {
        let line = json!({
            "type": "summary", "schema": 1, "target": args.target, "connected": report.connected,
            "failed": counts.failed, "error": report.first_error.map(|e| e.to_string()),
            "duration_s": seconds, "bytes_sent": counts.bytes_sent, "bytes_received": counts.bytes_received,
            "sent_mbit_per_s": mbit(counts.bytes_sent), "received_mbit_per_s": mbit(counts.bytes_received),
            "answered": counts.answered, "answered_per_s": counts.answered as f64 / seconds.max(1e-9),
            "corrupt": counts.corrupt, "latency": latency, "engine": stats,
        });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(
        out,
        "connected {}, failed {}; sent {} B ({:.1} Mbit/s), received {} B ({:.1} Mbit/s) in {seconds:.3} s, wrong {}",
        report.connected,
        counts.failed,
        counts.bytes_sent,
        mbit(counts.bytes_sent),
        counts.bytes_received,
        mbit(counts.bytes_received),
        counts.corrupt
    )?;
    if counts.answered > 0 {
        let us =
            |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| format!("{:.1}", ns as f64 / 1e3));
        writeln!(
            out,
            "answered {} ({:.0}/s); latency us: p50 {}, p90 {}, p99 {}, max {}",
            counts.answered,
            counts.answered as f64 / seconds.max(1e-9),
            us(latency.p50_ns),
            us(latency.p90_ns),
            us(latency.p99_ns),
            us(latency.max_ns)
        )?;
    }
    Ok(())
}
