//! `hopscope load tcp serve` and `udp serve`.
use super::local_server::Transport;
use crate::address::to_listen_on;
use crate::units::parse_message_size;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hopscope_load::connections::serve::{
    self as engine, ServePlan, Server, Service, take_all_descriptors,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("taking over signals")?;
    }
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
    say_ready(&args, server.address(), stats_address, descriptors)?;
    while !stop.load(Ordering::Relaxed) && !server.has_failed() {
        if !wait(stats.as_ref(), args.until_stdin_ends)? {
            break;
        }
        if let Some(listener) = &stats {
            engine::publish(listener, &server).context("answering for --stats")?;
        }
    }
    let report = server.stop()?;
    let mut line = serde_json::to_value(&report)?;
    line["type"] = "summary".into();
    line["schema"] = 1.into();
    if args.json {
        writeln!(std::io::stdout(), "{line}")?
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

fn say_ready(
    args: &ServeArgs,
    listen: SocketAddr,
    stats: Option<SocketAddr>,
    descriptors: u64,
) -> anyhow::Result<()> {
    if args.json {
        let line = serde_json::json!({
            "type": "ready", "schema": 1, "listen": listen.to_string(),
            "stats": stats.map(|s| s.to_string()), "descriptors": descriptors,
        });
        writeln!(std::io::stdout(), "{line}")?;
    } else {
        crate::status::say!("listening on {listen}, up to {descriptors} descriptors");
    }
    if let Some(path) = &args.ready_file {
        let stats = stats.map(|s| format!("{s}\n")).unwrap_or_default();
        // Complete when it appears: whoever waits for the file reads it at once.
        let partial = path.with_extension("partial");
        std::fs::write(&partial, format!("{listen}\n{stats}"))
            .and_then(|()| std::fs::rename(&partial, path))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Waits for somebody who wants the counts, at most a tenth of a second so that a signal is seen;
/// false when stdin has ended and that matters.
fn wait(stats: Option<&TcpListener>, until_stdin_ends: bool) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    let mut fds = Vec::new();
    if until_stdin_ends {
        fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
    }
    if let Some(listener) = stats {
        fds.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
    }
    match poll(&mut fds, PollTimeout::from(100u8)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => bail!("cannot wait: {}", errno.desc()),
    }
    let stdin_ready = until_stdin_ends && fds.first().and_then(PollFd::any) == Some(true);
    drop(fds);
    Ok(!stdin_ready || std::io::Read::read(&mut stdin.lock(), &mut [0; 64])? > 0)
}
