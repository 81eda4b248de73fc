//! `hopscope load`: open-loop load, with the latency of each packet or request.
use clap::{Args, Subcommand};
use std::process::ExitCode;

mod client;
mod here;
mod serve;
mod tcp;

#[derive(Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Connections: streams, round trips, connect and close, the server for them
    Tcp(tcp::TcpArgs),
}

pub fn run(args: LoadArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Tcp(args) => tcp::run(args),
    }
}
