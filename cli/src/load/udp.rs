//! `hopscope load udp`: netperf's UDP tests. docs/load-connections.md says what each counts.
use super::client::{ClientArgs, PaceArgs, Test};
use super::local_server::Transport;
use super::serve::{self, ServeArgs};
use crate::units::parse_size;
use clap::{Args, Subcommand};
use hopscope_load::connections::datagram::{self, LARGEST, SMALLEST};
use hopscope_load::connections::serve::Service;
use std::process::ExitCode;

#[derive(Args)]
pub struct UdpArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measure UDP round trips and loss (netperf UDP_RR)
    Rr(DatagramArgs),
    /// Stream UDP one way (netperf UDP_STREAM); --server-stats counts what arrived
    Stream(DatagramArgs),
    /// Run the server for these tests: echo, sink
    Serve(ServeArgs),
}

#[derive(Args)]
struct DatagramArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    pace: PaceArgs,
    /// Datagram size in bytes (8 … 65507)
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = payload)]
    size: usize,
}

/// A size that holds a number and fits an IPv4 datagram.
pub(super) fn payload(text: &str) -> Result<usize, String> {
    let size = parse_size(text)?;
    if (SMALLEST..=LARGEST).contains(&size) {
        Ok(size)
    } else {
        Err(format!("must be from {SMALLEST} to {LARGEST}"))
    }
}

pub fn run(args: UdpArgs) -> anyhow::Result<ExitCode> {
    let (args, test) = match args.what {
        What::Serve(args) => return serve::run(args, Transport::Udp),
        What::Rr(args) => {
            let test = Test::udp("udp_rr", Service::Echo, datagram::udp_rr);
            (args, test)
        }
        What::Stream(args) => {
            let test = Test::udp(
                "udp_stream",
                Service::Sink { check: None },
                datagram::udp_stream,
            );
            (args, test)
        }
    };
    let pace = args.pace.pace()?;
    // A sink of datagrams counts them.
    let seen = test.service == Service::Echo;
    args.client.run(test, |plan| {
        (plan.request, plan.response) = (args.size, args.size);
        plan.pace = pace;
        plan.verify &= seen;
    })
}
