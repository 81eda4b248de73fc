//! `hopscope vnet`: queues between a virtual machine and its host, and when their ends notify.
use clap::{Args, Subcommand};
use std::process::ExitCode;

mod ask;
mod drive;
mod merge;
mod place;
mod recording;
mod serve;
mod set;
mod sim;
mod stat;

#[derive(Args)]
pub struct VnetArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Recordings of both ends of queues on one timeline
    Merge(merge::MergeArgs),
    /// A back end: packets of a guest to a TAP, a device or an XDP socket, and back
    Serve(serve::ServeArgs),
    /// A front end in user space: a source, a sink, or a bridge to a TAP device
    Drive(drive::DriveArgs),
    /// What a back end that runs counts and does, each interval; for Prometheus; which policy to take
    Stat(stat::StatArgs),
    /// Other policies for a back end that runs
    Set(set::SetArgs),
    /// Policies against each other in virtual time: notifications, latency, throughput
    Sim(sim::SimArgs),
}

pub fn run(args: VnetArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Merge(args) => merge::run(args),
        What::Serve(args) => serve::run(args),
        What::Drive(args) => drive::run(args),
        What::Stat(args) => stat::run(&args),
        What::Set(args) => set::run(&args),
        What::Sim(args) => sim::run(args),
    }
}
