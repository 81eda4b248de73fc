//! `hopscope load ping`.
use super::client::{self, ClientArgs, Test};
use super::udp::payload;
use crate::units::parse_time;
use anyhow::bail;
use clap::Args;
use hopscope_load::connections::serve::Service;
use hopscope_load::connections::{Pace, datagram};
use hopscope_openloop::Arrivals;
use std::process::ExitCode;
use std::time::Duration;

/// ADDR is a host without a port. Ends after 10 seconds, or with -d or -c.
#[derive(Args)]
pub struct PingArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// Time between requests, answered or not
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = parse_time)]
    interval: Duration,
    /// Payload size in bytes (8 … 65507)
    #[arg(long, value_name = "BYTES", default_value = "56", value_parser = payload)]
    size: usize,
}

pub fn run(mut args: PingArgs) -> anyhow::Result<ExitCode> {
    let Some(host) = args
        .client
        .target
        .take()
        .filter(|_| !args.client.serve_here)
    else {
        bail!("give the host to ping; ping needs no server, so --serve-here does not apply");
    };
    if args.interval.is_zero() {
        bail!("an interval of 0 cannot be paced");
    }
    args.client.target = Some(client::with_port(&host, 0));
    let test = Test::udp("ping", Service::Echo, datagram::ping);
    args.client.run(test, |plan| {
        (plan.request, plan.response) = (args.size, args.size);
        plan.pace = Pace::Open {
            rate_hz: 1.0 / args.interval.as_secs_f64(),
            arrivals: Arrivals::Constant,
        };
    })
}
