//! `hopscope load`: open-loop load, with the latency of each packet or request.
use clap::{Args, Subcommand};
use std::process::ExitCode;

#[derive(Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {}

pub fn run(args: LoadArgs) -> anyhow::Result<ExitCode> {
    match args.what {}
}
