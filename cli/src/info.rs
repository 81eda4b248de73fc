//! `hopscope info`: what a trace file is, without reading its records.
mod contents;
mod slices;
mod text;

use contents::Info;
use hopscope_trace::{TraceError, TraceReader};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct InfoArgs {
    /// Recording to look at
    #[arg(default_value = "hopscope.hop")]
    file: PathBuf,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: InfoArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.display().to_string();
    let reader = TraceReader::open(&args.file).map_err(|error| match error {
        TraceError::Open { .. } => anyhow::Error::from(error),
        _ => anyhow::Error::from(error).context(file.clone()),
    })?;
    let info = Info::of(&file, &reader);
    let mut out = BufWriter::new(std::io::stdout().lock());
    match args.json {
        true => {
            serde_json::to_writer(&mut out, &info)?;
            out.write_all(b"\n")?;
        }
        false => text::write(&mut out, &info)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
