//! `hopscope load`: open-loop load, with the latency of each packet or request.
use clap::{Args, Subcommand};
use std::process::ExitCode;

mod client;
mod here;
mod packets;
mod ping;
mod serve;
mod tcp;
mod udp;

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
    /// Datagrams: round trips, one direction, the server for them
    Udp(udp::UdpArgs),
    /// ICMP echo, with losses, duplicates and reordering (for TCP: tcp crr)
    Ping(ping::PingArgs),
}

pub fn run(args: LoadArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Packets(args) => packets::run(*args),
        What::Tcp(args) => tcp::run(args),
        What::Udp(args) => udp::run(args),
        What::Ping(args) => ping::run(args),
    }
}
