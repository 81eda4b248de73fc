//! `hopscope load`: open-loop load, with the latency of each packet or request.
use clap::{Args, Subcommand};
use std::process::ExitCode;

mod bridge;
mod client;
mod local_server;
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
    /// Send timestamped packets at scheduled times; count loss, duplication, reordering
    Packets(Box<packets::PacketsArgs>),
    /// Measure TCP: streams, round trips, connection setup; includes a server
    Tcp(tcp::TcpArgs),
    /// Measure UDP: round trips, one-way streams; includes a server
    Udp(udp::UdpArgs),
    /// Send ICMP echo requests; count loss, duplication, reordering (TCP: tcp crr)
    Ping(ping::PingArgs),
    /// Forward between two ports; lose, delay, duplicate, reorder, corrupt frames
    Bridge(bridge::BridgeArgs),
}

pub fn run(args: LoadArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Packets(args) => packets::run(*args),
        What::Tcp(args) => tcp::run(args),
        What::Udp(args) => udp::run(args),
        What::Ping(args) => ping::run(args),
        What::Bridge(args) => bridge::run(&args),
    }
}
