//! `hopscope detach`: undoes what a killed recorder left behind, in forked children too, and
//! saves the records that are still in its rings.
use clap::Args;
use hopscope_session::detach::{self, DetachRequest, Done};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
#[group(required = true)]
pub struct Targets {
    /// Remove probes from this process
    #[arg(short, long, value_name = "PID")]
    pid: Option<i32>,
    /// Remove probes from every process whose recorder no longer runs
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub struct DetachArgs {
    #[command(flatten)]
    targets: Targets,
    /// Search all memory for references to unused copies [default: at most 16 MiB]
    ///
    /// The process is stopped meanwhile, some hundred milliseconds per GiB.
    #[arg(long)]
    search_all: bool,
    /// Save the records still in the rings to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object per line on stdout
    #[arg(long)]
    json: bool,
}

pub fn run(args: DetachArgs) -> anyhow::Result<ExitCode> {
    let request = DetachRequest {
        pid: args.targets.pid,
        search_all: args.search_all,
        output: args.output,
        json: args.json,
    };
    Ok(ExitCode::from(match detach::run(&request)? {
        Done::All => 0,
        Done::ButFrozen => 1,
        Done::ButFailed => 2,
    }))
}
