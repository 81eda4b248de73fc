//! What all tests over connections take, and how they are run and told.
use super::local_server::{self, Transport};
use crate::address::resolve;
use crate::units::{parse_rate, parse_time};
use anyhow::{Context, bail};
use clap::{ArgGroup, Args, ValueEnum};
use hopscope_load::connections::serve::{self, Service};
use hopscope_load::connections::{
    self, Close, Descriptors, Limits, LoadError, LoadPlan, Pace, RunResult, Summary,
};
use hopscope_load::interval::Interval;
use hopscope_openloop::Arrivals;
use hopscope_openloop::latency::LogWriter;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Args)]
pub struct ClientArgs {
    /// HOST:PORT of the server
    #[arg(value_name = "ADDR", required_unless_present = "serve_here")]
    pub target: Option<String>,
    /// Start a server process on this machine for this run
    #[arg(long, conflicts_with_all = ["target", "server_stats"])]
    pub serve_here: bool,
    /// Fetch the server's counters from its --stats address for the summary
    #[arg(long, value_name = "HOST:PORT")]
    server_stats: Option<String>,
    /// Concurrent connections [default: 1; echo: 1000]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<u32>,
    /// Distribute the connections over this many threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Use these source addresses round robin: A,B or a range A-B
    #[arg(long, value_name = "IP,IP|IP-IP", value_delimiter = ',')]
    source: Vec<String>,
    /// Stop after this time without --warmup (500ms, 5s, 2m; a bare number is seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,
    /// Stop after this many requests
    #[arg(short, long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Start to measure after this time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    warmup: Duration,
    /// Count a connection or response that takes longer as failed
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    timeout: Duration,
    /// Flag the latencies if the client sends a request later than this
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = parse_time)]
    behind_after: Duration,
    /// Seed of the payload and of Poisson arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Do not verify the payload of responses
    #[arg(long)]
    pub no_verify: bool,
    /// Close with FIN (the client's port stays in TIME_WAIT) or RST
    #[arg(long, value_enum, default_value_t = CloseArg::Orderly)]
    close: CloseArg,
    /// Write latencies as an HdrHistogram log, or NAME.hgrm as a percentile table
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
    /// Print one JSON object per line: intervals, then a summary
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum CloseArg {
    Orderly,
    Reset,
}

/// One of the two must be said: they measure different things.
#[derive(Args)]
#[command(group = ArgGroup::new("pace").args(["rate", "closed"]).required(true))]
pub struct PaceArgs {
    /// Open loop: total requests per second (500, 10k); latency from scheduled time
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate)]
    rate: Option<f64>,
    /// Closed loop, as netperf: send after each response (hides server stalls)
    #[arg(long)]
    closed: bool,
    /// Distribution of request intervals in open loop
    #[arg(long, value_enum, default_value_t = ArrivalsArg::Constant, conflicts_with = "closed")]
    arrivals: ArrivalsArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum ArrivalsArg {
    Constant,
    Poisson,
}

impl PaceArgs {
    pub fn pace(&self) -> anyhow::Result<Pace> {
        let arrivals = match self.arrivals {
            ArrivalsArg::Constant => Arrivals::Constant,
            ArrivalsArg::Poisson => Arrivals::Poisson,
        };
        match (self.rate, self.closed) {
            (Some(rate_hz), false) => Ok(Pace::Open { rate_hz, arrivals }),
            (None, true) => Ok(Pace::Closed),
            _ => bail!("give --rate PER_SECOND (open loop) or --closed"),
        }
    }
}

/// A test of the load library.
type Run = fn(&LoadPlan, &AtomicBool, &mut dyn FnMut(&Interval)) -> Result<RunResult, LoadError>;

/// What is run, and against which service when the server is started here.
pub struct Test {
    pub name: &'static str,
    pub transport: Transport,
    pub service: Service,
    pub run: Run,
}

impl Test {
    pub fn tcp(name: &'static str, service: Service, run: Run) -> Test {
        Test {
            name,
            transport: Transport::Tcp,
            service,
            run,
        }
    }

    pub fn udp(name: &'static str, service: Service, run: Run) -> Test {
        Test {
            transport: Transport::Udp,
            ..Test::tcp(name, service, run)
        }
    }
}

impl ClientArgs {
    /// Runs the test with what `adjust` sets; exit code 1 where bytes were wrong or nothing was done.
    pub fn run(self, test: Test, adjust: impl FnOnce(&mut LoadPlan)) -> anyhow::Result<ExitCode> {
        let mut plan = self.plan()?;
        adjust(&mut plan);
        if plan.limits.duration.is_none() && plan.limits.count.is_none() {
            plan.limits.duration = Some(Duration::from_secs(10));
        }
        let stop = crate::command::stop_flag()?;
        let mut log = self.hdr.as_deref().map(LogWriter::create).transpose()?;
        let descriptors = connections::descriptors_for(plan.connections, 32)?;
        if let Descriptors::Raised { from, to } = descriptors {
            crate::status::say!("the limit of file descriptors is raised from {from} to {to}");
        }
        let server = if self.serve_here {
            Some(local_server::LocalServer::start(
                test.transport,
                test.service,
                plan.seed,
            )?)
        } else {
            None
        };
        let mut stats = match &self.server_stats {
            Some(address) => Some(resolve(address)?),
            None => None,
        };
        if let Some(server) = &server {
            plan.target = server.listen;
            stats = Some(server.stats);
        }
        let report = |address| serve::fetch(address).context("asking the server for its counts");
        let before = stats.map(report).transpose()?;
        let mut written = Ok(());
        let outcome = (test.run)(&plan, &stop, &mut |interval| {
            if let Some(log) = log.as_mut().filter(|_| !interval.warmup) {
                log.interval(interval.start, interval.length, interval.latency.clone());
            }
            if self.json {
                written = writeln!(std::io::stdout(), "{}", interval.json())
            } else {
                eprintln!("{}", interval.text())
            }
        })?;
        written?;
        let after = stats.map(report).transpose()?;
        let counts = after
            .zip(before)
            .map(|(after, before)| after.since(&before));
        drop(server);
        let summary = Summary::new(test.name, &plan, &outcome, descriptors, counts);
        if self.json {
            writeln!(std::io::stdout(), "{}", summary.json())?
        } else {
            write!(std::io::stdout(), "{}", summary.text())?
        }
        if let Some(log) = log {
            log.finish()?;
        }
        Ok(ExitCode::from(if summary.is_good() { 0 } else { 1 }))
    }

    fn plan(&self) -> anyhow::Result<LoadPlan> {
        let target = match &self.target {
            Some(target) => resolve(target)?,
            // Replaced by where our own server listens.
            None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
        };
        let mut sources = Vec::new();
        for text in &self.source {
            sources.extend(addresses(text)?);
        }
        Ok(LoadPlan {
            target,
            sources,
            connections: self.connections.unwrap_or(1) as usize,
            threads: self.threads as usize,
            request: 0,
            response: 0,
            pace: Pace::Closed,
            depth: 1,
            seed: self.seed,
            verify: !self.no_verify,
            close: match self.close {
                CloseArg::Orderly => Close::Orderly,
                CloseArg::Reset => Close::Reset,
            },
            timeout: self.timeout,
            behind_after: self.behind_after,
            limits: Limits {
                duration: self.duration,
                count: self.count,
                warmup: self.warmup,
            },
        })
    }
}

/// HOST:PORT; an IPv6 address gets its brackets.
pub(super) fn with_port(host: &str, port: u16) -> String {
    match host.parse() {
        Ok(IpAddr::V6(v6)) => format!("[{v6}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// One address, or all from the first to the last.
fn addresses(text: &str) -> anyhow::Result<Vec<IpAddr>> {
    let parse = |text: &str| -> anyhow::Result<IpAddr> {
        text.parse()
            .with_context(|| format!("{text:?} is not an IP address"))
    };
    let Some((first, last)) = text.split_once('-') else {
        return Ok(vec![parse(text)?]);
    };
    match (parse(first)?, parse(last)?) {
        (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
            let (first, last) = (u32::from(first), u32::from(last));
            if last - first >= 1 << 16 {
                bail!("{text:?} is more than 65,536 addresses");
            }
            Ok((first..=last).map(|n| IpAddr::V4(n.into())).collect())
        }
        (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
            let (first, last) = (u128::from(first), u128::from(last));
            if last - first >= 1 << 16 {
                bail!("{text:?} is more than 65,536 addresses");
            }
            Ok((first..=last).map(|n| IpAddr::V6(n.into())).collect())
        }
        _ => bail!("{text:?} is not a range: FIRST-LAST of one address family"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_ranges() {
        let of = |text| addresses(text).map(|all| all.len()).ok();
        assert_eq!(of("127.0.0.1"), Some(1));
        assert_eq!(of("127.0.0.250-127.0.1.5"), Some(12));
        assert_eq!(of("fd00::1-fd00::3"), Some(3));
        for wrong in [
            "127.0.0.5-127.0.0.1",
            "1.2.3.4-fd00::1",
            "x",
            "10.0.0.0-10.255.0.0",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
