//! `hopscope vnet merge`: recordings of both ends of queues, on one timeline.
use crate::output::{self, OWNER_ONLY};
use anyhow::Context;
use clap::Args;
use hopscope_trace::TraceReader;
use hopscope_vnet::events::merge;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Merges the recordings of `vnet serve --output` and `vnet drive --output` into one.
#[derive(Args)]
pub struct MergeArgs {
    /// Recordings of the same machine, in any order
    #[arg(value_name = "FILE", num_args = 2, required = true)]
    files: Vec<PathBuf>,
    /// Write the merged recording to this file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: MergeArgs) -> anyhow::Result<ExitCode> {
    let open = |path: &PathBuf| {
        TraceReader::open(path).with_context(|| format!("reading {}", path.display()))
    };
    let readers = args.files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let [a, b] = &readers[..] else {
        anyhow::bail!("two recordings are needed");
    };
    // What is replaced may be what is read.
    let (file, place) = output::create(&args.output, OWNER_ONLY)?;
    merge(a, b, BufWriter::new(file))?.flush()?;
    place.put()?;
    Ok(ExitCode::SUCCESS)
}
