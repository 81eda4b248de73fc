//! `hopscope load tcp serve` and `udp serve`.
use super::local_server::Transport;
use crate::address::to_listen_on;
use crate::json::tagged;
use crate::serving;
use crate::units::parse_message_size;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hopscope_load::connections::serve::{
    self as engine, ServePlan, Server, Service, take_all_descriptors,
};
use serde_json::json;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

#[derive(Args)]
pub struct ServeArgs {
    /// Listen on HOST:PORT, or :PORT for all addresses; port 0 prints a free one
    #[arg(long, value_name = "ADDR")]
    listen: String,
    /// Action on received data
    #[arg(long, value_enum, default_value_t = ServiceArg::Echo)]
    service: ServiceArg,
    /// respond: size of a request in bytes
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = parse_message_size)]
    request: usize,
    /// respond: size of the response in bytes; it repeats the request
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = parse_message_size)]
    response: usize,
    /// Seed of sent (source) or expected (sink) payload; without it, sink only counts
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of threads, each with its own accept queue
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Length of each thread's accept queue
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(i32).range(1..))]
    backlog: i32,
    /// Serve counters for --server-stats on HOST:PORT; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    stats: Option<String>,
    /// Create this file when listening; it holds the address, then that of --stats
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Exit when stdin closes, such as with the parent process
    #[arg(long)]
    until_stdin_ends: bool,
    /// Print one JSON object per line: the listen address, then a summary
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ServiceArg {
    /// Send everything back
    Echo,
    /// Answer each fixed-size request with a response of another size
    Respond,
    /// Receive and discard
    Sink,
    /// Send until the client closes
    Source,
}

pub fn run(args: ServeArgs, transport: Transport) -> anyhow::Result<ExitCode> {
    let datagrams = transport == Transport::Udp;
    if datagrams && !matches!(args.service, ServiceArg::Echo | ServiceArg::Sink) {
        bail!("over UDP the service is echo or sink");
    }
    let stop = crate::command::stop_flag()?;
    let descriptors = take_all_descriptors()?;
    if !datagrams {
        warn_of_backlog(args.backlog);
    }
    let stats = match &args.stats {
        Some(address) => Some(listen_for_stats(address)?),
        None => None,
    };
    let server = Server::start(&ServePlan {
        listen: to_listen_on(&args.listen)?,
        datagrams,
        service: match args.service {
            ServiceArg::Echo => Service::Echo,
            ServiceArg::Respond => Service::Respond {
                request: args.request,
                response: args.response,
            },
            ServiceArg::Sink => Service::Sink { check: args.seed },
            ServiceArg::Source => Service::Source {
                seed: args.seed.unwrap_or(1),
            },
        },
        threads: args.threads as usize,
        backlog: args.backlog,
    })?;
    let stats_address = stats.as_ref().map(TcpListener::local_addr).transpose()?;
    let listen = server.address();
    let facts = json!({ "listen": listen, "stats": stats_address, "descriptors": descriptors });
    let stats_line = stats_address.map_or(String::new(), |address| format!("{address}\n"));
    let ready_file = args.ready_file.as_deref();
    let addresses = format!("{listen}\n{stats_line}");
    serving::ready(args.json, &facts, ready_file, &addresses)?;
    while !stop.load(Ordering::Relaxed) && !server.has_failed() {
        if !serving::wait(stats.as_ref(), args.until_stdin_ends)? {
            break;
        }
        if let Some(listener) = &stats {
            engine::publish(listener, &server).context("answering for --stats")?;
        }
    }
    let report = server.stop()?;
    if args.json {
        writeln!(std::io::stdout(), "{}", tagged("summary", &report)?)?
    } else {
        let c = report.counts;
        let kernel = report.kernel.map(|k| k.text()).unwrap_or_default();
        writeln!(
            std::io::stdout(),
            "accepted {}, ended {}, reset {}, failed {}, not accepted {}; received {} B, sent \
                 {} B, answered {}, datagrams {}, wrong {}\nkernel: {kernel}",
            c.accepted,
            c.ended,
            c.reset,
            c.failed,
            c.accept_failed,
            c.bytes_received,
            c.bytes_sent,
            c.answered,
            c.datagrams,
            c.corrupt
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn warn_of_backlog(backlog: i32) {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    if let Ok(most) = text.trim().parse::<i32>()
        && most < backlog
    {
        crate::status::say!("net.core.somaxconn cuts the backlog of {backlog} to {most}");
    }
}

fn listen_for_stats(address: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(to_listen_on(address)?);
    let listener = listener.with_context(|| format!("cannot listen on {address} for --stats"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
