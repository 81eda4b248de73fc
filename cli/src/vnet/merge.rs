//! `hopscope vnet merge`: recordings of both ends of queues, on one timeline.
use anyhow::Context;
use clap::Args;
use hopscope_trace::TraceReader;
use hopscope_vnet::events::merge;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

/// One recording of what happened at both ends, from those of `vnet serve --output` and `vnet drive --output`.
#[derive(Args)]
pub struct MergeArgs {
    /// Recordings of one machine, in any order
    #[arg(value_name = "FILE", num_args = 2, required = true)]
    files: Vec<PathBuf>,
    /// Where both go
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
    // What would be overwritten may be what is read.
    let mut aside = args.output.clone().into_os_string();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    let name = aside.display();
    let file = File::create(&aside).with_context(|| format!("creating {name}"))?;
    let merged = merge(a, b, BufWriter::new(file)).map(drop);
    if merged.is_err() {
        let _ = fs::remove_file(&aside);
    }
    merged?;
    fs::rename(&aside, &args.output)
        .with_context(|| format!("renaming {name} to {}", args.output.display()))?;
    Ok(ExitCode::SUCCESS)
}
