//! `hopscope load`: open-loop load, with the latency of each packet or request.
use clap::{Args, Subcommand};
use std::process::ExitCode;

mod client;
mod here;
mod packets;
mod serve;
mod tcp;

#[derive(Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Packets at intended times, each with a stamp, and what became of each
    Packets(Box<packets::PacketsArgs>),
    /// Connections: streams, round trips, connect and close, the server for them
    Tcp(tcp::TcpArgs),
}

pub fn run(args: LoadArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Packets(args) => packets::run(*args),
        What::Tcp(args) => tcp::run(args),
    }
}
