//! `hopscope stack`: a TCP/IP stack of its own, on a device beside the kernel's.
use clap::{Args, Subcommand};
use std::process::ExitCode;

mod connect;
mod cores;
mod link;
mod pair;
mod run;
mod running;
mod serve;
mod ss;
mod stats;
mod which;

#[derive(Args)]
pub struct StackArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Run the stack for programs that attach to it, or with a server in it: echo, discard, chargen or HTTP
    Serve(serve::ServeArgs),
    /// Run the stack with a built-in client against such a server anywhere
    Connect(connect::ConnectArgs),
    /// Run a program of others, unmodified, on the stack in its own process
    Run(run::RunArgs),
    /// Join two stacks in memory and measure what the engine costs
    Pair(pair::PairArgs),
    /// Show the connections of a running stack, with the fields of `ss -ti`
    Ss(ss::SsArgs),
    /// Show the counters of a running stack, with the names of nstat
    Stats(stats::StatsArgs),
    #[command(name = "__bypass", hide = true)]
    Bypass(run::BypassArgs),
}

pub fn run(args: StackArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Serve(args) => serve::run(args),
        What::Connect(args) => connect::run(&args),
        // With a command its exit code is ours, and 125 says that hopscope itself failed.
        What::Run(args) => run::run(&args).or_else(|e| Ok(crate::status::failed(&e, 125))),
        What::Pair(args) => pair::run(&args),
        What::Ss(args) => ss::run(&args),
        What::Stats(args) => stats::run(&args),
        What::Bypass(args) => run::watch_for_bypasses(&args),
    }
}
