//! `hopscope splice proxy`: TCP handed on, by the kernel or by a copying loop.
use super::echo::limit;
use super::server_lifecycle::Serving;
use crate::address::{resolve, to_listen_on};
use crate::units::parse_time;
use clap::{Args, ValueEnum};
use hopscope_splice::proxy::{Choice, EngineChoice, EngineKind, Plan, ProxyReport, ProxyServer};
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
    fn plan(&self) -> anyhow::Result<Plan> {
        let mut plan = Plan::new(to_listen_on(&self.listen)?, resolve(&self.to)?);
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

    fn say(&self, choices: &[Choice]) {
        for choice in choices {
            crate::status::say!("{}", said(choice));
            if self.serving.json
                && let Ok(mut line) = serde_json::to_value(choice)
            {
                line["type"] = "choice".into();
                line["schema"] = 1.into();
                // A reader that is gone is noticed when the summary is written.
                let _ = writeln!(std::io::stdout(), "{line}");
            }
        }
    }
}

pub(super) fn run(args: &ProxyArgs) -> anyhow::Result<ExitCode> {
    let stop = args.serving.stop_flag()?;
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
    let mut line = serde_json::to_value(&report)?;
    line["type"] = "summary".into();
    line["schema"] = 1.into();
    let mut out = std::io::stdout();
    if args.serving.json {
        writeln!(out, "{line}")?
    } else {
        write!(out, "{}", text(&report))?
    }
    Ok(ExitCode::SUCCESS)
}

/// Until no connection is left, the grace is over, or a second signal.
fn drain(args: &ProxyArgs, server: &ProxyServer, stop: &AtomicBool) -> anyhow::Result<()> {
    let until = Instant::now() + args.grace;
    stop.store(false, Ordering::Relaxed);
    let is_over = || server.has_ended() || Instant::now() >= until;
    args.serving.wait_for_signal(stop, is_over)
}

fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s {
        rate if rate >= 1e6 => format!("{:.1} MB/s", rate / 1e6),
        rate => format!("{:.1} kB/s", rate / 1e3),
    }
}

fn said(choice: &Choice) -> String {
    let engine = match choice.engine {
        EngineKind::User => "user",
        EngineKind::Kernel => "kernel",
    };
    format!(
        "engine {engine} for new connections: {}; kernel {} of {} connections (median), user {} of {}: x{:.2}, {:.1} \
         standard deviations, in {} ms",
        choice.why,
        rate(choice.kernel.bytes_per_s),
        choice.kernel.connections,
        rate(choice.user.bytes_per_s),
        choice.user.connections,
        choice.ratio,
        choice.sure,
        choice.window_ms
    )
}

fn text(report: &ProxyReport) -> String {
    let c = &report.counts;
    let mut text = format!(
        "accepted {} ({} kernel, {} user): ended {}, reset by the client {}, by the upstream {}, failed {}, over the \
         limit {}, open at the end {}\n",
        c.accepted,
        c.kernel_connections,
        c.user_connections,
        c.ended,
        c.reset_by_client,
        c.reset_by_upstream,
        c.failed,
        c.over_limit,
        c.open_at_stop
    );
    text += &format!(
        "copied: {} B up, {} B down\n",
        c.user_bytes_up, c.user_bytes_down
    );
    if let Some(k) = &report.kernel {
        text += &format!(
            "by the kernel: {} B up, {} B down\n",
            k.bytes_up, k.bytes_down
        );
        let counted = [
            ("to user space: the reader is slower", k.reader_is_slow),
            ("to user space: the peer disconnected", k.redirect_failed),
            ("back from user space", k.back_to_kernel),
            ("a notice was lost", k.events_lost),
            ("without a record", k.no_record),
        ];
        text += &lines(&counted);
    }
    if let Some(why) = &report.kernel_unavailable {
        text += &format!("no kernel engine: {why}\n");
    }
    let counted = [
        ("upstream refused", c.connect_refused),
        ("upstream failed", c.connect_failed),
        ("upstream did not answer", c.connect_timed_out),
        ("idle", c.idle_timed_out),
        (
            "the client reset before the upstream was there",
            c.gone_before_connect,
        ),
        ("accept failed", c.accept_failed),
        (
            "copied at least one way: an end had come before",
            c.not_joined_ended,
        ),
        (
            "copied: as many as may be were in the kernel",
            c.not_joined_full,
        ),
        (
            "copied: the kernel did not take a socket",
            c.not_joined_refused,
        ),
    ];
    text + &lines(&counted)
}

fn lines(counted: &[(&str, u64)]) -> String {
    let counted = counted.iter().filter(|(_, count)| *count > 0);
    counted
        .map(|(what, count)| format!("  {what}: {count}\n"))
        .collect()
}
