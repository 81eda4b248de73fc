//! `hopscope vnet`: queues between a virtual machine and its host, and when their ends notify.
use clap::{Args, Subcommand};
use std::process::ExitCode;

mod drive;
mod merge;
mod recording;
mod serve;
mod set;
mod sim;
mod stat;
mod which;

#[derive(Args)]
pub struct VnetArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Merge recordings of both ends of queues into one timeline
    Merge(merge::MergeArgs),
    /// Run a vhost-user back end: forward between a guest and a TAP, device or AF_XDP
    Serve(serve::ServeArgs),
    /// Run a vhost-user front end: a source, a sink, or a bridge to a TAP device
    Drive(drive::DriveArgs),
    /// Show counters of a running back end, also for Prometheus; suggest a policy
    Stat(stat::StatArgs),
    /// Change the notification policies of a running back end
    Set(set::SetArgs),
    /// Simulate policies in virtual time: notifications, latency, throughput
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
