//! `hopscope splice proxy`: TCP handed on, by the kernel or by a copying loop.
use super::echo::limit;
use super::server_lifecycle::Serving;
use crate::address::{resolve, to_listen_on};
use crate::json::tagged;
use crate::units::parse_time;
use clap::{Args, ValueEnum};
use hopscope_splice::proxy::{EngineChoice, EngineVerdict, ProxyPlan, ProxyServer};
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct ProxyArgs {
    /// Listen on ADDR:PORT, or :PORT for all addresses; port 0 prints a free one
    ///
    /// [::] accepts IPv4 too.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: String,
    /// Connect to this upstream for each accepted connection
    #[arg(long, value_name = "ADDR:PORT")]
    to: String,
    /// Forwarding engine of new connections
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    engine: EngineArg,
    /// Do not accept IPv4 connections on an IPv6 wildcard address
    #[arg(long)]
    v6_only: bool,
    /// Length of the accept queue
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(i32).range(1..))]
    backlog: i32,
    /// Timeout of the connect to the upstream
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    connect_timeout: Duration,
    /// Probe an idle peer after this time (TCP keep-alive, six more probes); 0: never
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    keep_alive: Duration,
    /// Reset connections without traffic for this time [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle_timeout: Option<Duration>,
    /// At exit, let open connections continue for this time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    grace: Duration,
    /// kernel: reset a connection with more uncharged bytes in one direction
    #[arg(long, value_name = "BYTES", default_value = "4M", value_parser = limit)]
    limit: u32,
    /// kernel: concurrent connections; further ones are copied in user space
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    kernel_connections: u32,
    /// auto: compare the engines for this time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    window: Duration,
    /// auto: compare them again after this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    again: Duration,
    #[command(flatten)]
    serving: Serving,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineArg {
    /// Try both in turn, then use the one with higher throughput
    Auto,
    /// sk_skb programs; user space connects, closes, and copies for slow readers
    Kernel,
    /// One thread, epoll
    User,
}

impl ProxyArgs {
    fn plan(&self) -> anyhow::Result<ProxyPlan> {
        let mut plan = ProxyPlan::new(to_listen_on(&self.listen)?, resolve(&self.to)?);
        plan.engine = match self.engine {
            EngineArg::Auto => EngineChoice::Auto,
            EngineArg::Kernel => EngineChoice::Kernel,
            EngineArg::User => EngineChoice::User,
        };
        plan.v6_only = self.v6_only;
        plan.backlog = self.backlog;
        plan.connect_timeout = self.connect_timeout;
        plan.keep_alive = Some(self.keep_alive).filter(|after| !after.is_zero());
        plan.idle_timeout = self.idle_timeout.filter(|idle| !idle.is_zero());
        plan.limit = self.limit;
        plan.kernel_connections = self.kernel_connections;
        plan.window = self.window;
        plan.again = self.again;
        Ok(plan)
    }

    fn say(&self, choices: &[EngineVerdict]) {
        for choice in choices {
            crate::status::say!("{choice}");
            if self.serving.json
                && let Ok(line) = tagged("choice", choice)
            {
                // A reader that is gone is noticed when the summary is written.
                let _ = writeln!(std::io::stdout(), "{line}");
            }
        }
    }
}

pub(super) fn run(args: &ProxyArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::command::stop_flag()?;
    let server = ProxyServer::start(&args.plan()?)?;
    if let Some(why) = server.kernel_unavailable() {
        crate::status::say!("--engine user for all connections: {why}");
    }
    args.serving
        .say_ready(server.address(), server.descriptors())?;
    let has_ended = || {
        args.say(&server.new_choices());
        server.has_ended()
    };
    args.serving.wait(&stop, has_ended)?;
    if !server.has_ended() {
        server.drain()?;
        drain(args, &server, &stop)?;
    }
    args.say(&server.new_choices());
    let report = server.stop()?;
    args.serving.say_summary(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// Until no connection is left, the grace is over, or a second signal.
fn drain(args: &ProxyArgs, server: &ProxyServer, stop: &AtomicBool) -> anyhow::Result<()> {
    let until = Instant::now() + args.grace;
    stop.store(false, Ordering::Relaxed);
    let is_over = || server.has_ended() || Instant::now() >= until;
    args.serving.wait_for_signal(stop, is_over)
}
