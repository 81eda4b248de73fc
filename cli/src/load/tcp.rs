//! `hopscope load tcp`: netperf's TCP tests. docs/load-connections.md says what each counts.
use super::client::{ClientArgs, PaceArgs, Test};
use super::local_server::Transport;
use super::serve::{self, ServeArgs};
use crate::units::{parse_message_size, parse_rate};
use clap::{Args, Subcommand};
use hopscope_load::connections::serve::Service;
use hopscope_load::connections::{Pace, rr, short, stream};
use hopscope_openloop::Arrivals;
use std::process::ExitCode;

#[derive(Args)]
pub struct TcpArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Stream in one direction (netperf TCP_STREAM; --reverse: TCP_MAERTS)
    Stream(StreamArgs),
    /// Measure round trips over open connections (netperf TCP_RR)
    Rr(RrArgs),
    /// Connect, do one round trip and close for each request (netperf TCP_CRR)
    Crr(CrrArgs),
    /// Start all clients at once: connect, send, read the echo
    Echo(EchoArgs),
    /// Run the server for these tests: echo, respond, sink, source
    Serve(ServeArgs),
}

#[derive(Args)]
struct RrArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    sizes: Sizes,
    /// Outstanding requests per connection, at most (1: as netperf)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
}

#[derive(Args)]
struct CrrArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    sizes: Sizes,
}

#[derive(Args)]
struct StreamArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    pace: StreamPace,
    /// Message size in bytes (1 … 16M)
    #[arg(long, value_name = "BYTES", default_value = "128K", value_parser = parse_message_size)]
    size: usize,
}

#[derive(Args)]
struct StreamPace {
    /// Total messages per second (500, 10k) at scheduled times [default: unlimited]
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate, conflicts_with = "reverse")]
    rate: Option<f64>,
    /// Stream from server to client; needs --service source with the same seed
    #[arg(long)]
    reverse: bool,
}

/// -n is the number of clients [default: 1000]; -c counts requests in all.
#[derive(Args)]
struct EchoArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// Bytes that each client sends (1 … 16M)
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = parse_message_size)]
    size: usize,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

#[derive(Args)]
struct Sizes {
    /// Request size in bytes (1 … 16M)
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = parse_message_size)]
    size: usize,
    /// Response size in bytes, if the server uses another [default: request size]
    #[arg(long, value_name = "BYTES", value_parser = parse_message_size)]
    response: Option<usize>,
}

impl Sizes {
    /// Request, answer, and the service that gives it.
    fn of(&self) -> (usize, usize, Service) {
        let (request, response) = (self.size, self.response.unwrap_or(self.size));
        let service = if request == response {
            Service::Echo
        } else {
            Service::Respond { request, response }
        };
        (request, response, service)
    }
}

pub fn run(args: TcpArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Stream(args) => one_direction(args),
        What::Rr(args) => round_trips(args),
        What::Crr(args) => connections(args),
        What::Echo(args) => echo(args),
        What::Serve(args) => serve::run(args, Transport::Tcp),
    }
}

fn one_direction(args: StreamArgs) -> anyhow::Result<ExitCode> {
    let seed = args.client.seed;
    let check = (!args.client.no_verify).then_some(seed);
    // Only the sink sees the bytes, and only of our own do we know that it looks.
    let seen = args.pace.reverse || args.client.serve_here;
    let test = if args.pace.reverse {
        Test::tcp(
            "tcp_stream_reverse",
            Service::Source { seed },
            stream::receive,
        )
    } else {
        Test::tcp("tcp_stream", Service::Sink { check }, stream::send)
    };
    args.client.run(test, |plan| {
        (plan.request, plan.response) = (args.size, args.size);
        plan.verify &= seen;
        if let Some(rate_hz) = args.pace.rate {
            let arrivals = Arrivals::Constant;
            plan.pace = Pace::Open { rate_hz, arrivals };
        }
    })
}

fn round_trips(args: RrArgs) -> anyhow::Result<ExitCode> {
    let (request, response, service) = args.sizes.of();
    let pace: Pace = args.pace.pace()?;
    let test = Test::tcp("tcp_rr", service, rr::run);
    args.client.run(test, |plan| {
        (plan.request, plan.response) = (request, response);
        plan.pace = pace;
        plan.depth = args.depth as usize;
    })
}

fn connections(args: CrrArgs) -> anyhow::Result<ExitCode> {
    let (request, response, service) = args.sizes.of();
    let pace = args.pace.pace()?;
    let test = Test::tcp("tcp_crr", service, short::crr);
    args.client.run(test, |plan| {
        (plan.request, plan.response) = (request, response);
        plan.pace = pace;
    })
}

fn echo(args: EchoArgs) -> anyhow::Result<ExitCode> {
    let test = Test::tcp("tcp_echo", Service::Echo, short::echo);
    let clients = args.client.connections.unwrap_or(1000);
    args.client.run(test, |plan| {
        (plan.request, plan.response) = (args.size, args.size);
        (plan.pace, plan.threads) = (Pace::Together, 1);
        plan.connections = clients as usize;
        if plan.limits.count.is_none() && plan.limits.duration.is_none() {
            plan.limits.count = Some(u64::from(clients) * u64::from(args.rounds));
        }
    })
}
