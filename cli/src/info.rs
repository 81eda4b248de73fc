//! `hopscope info`: what a trace file is, without reading its records.
use hopscope_read::info::Info;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct InfoArgs {
    /// Read this recording
    #[arg(default_value = "hopscope.hop")]
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: InfoArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.display().to_string();
    let opened = hopscope_read::open(&args.file)?;
    let damage = opened.damage();
    let info = Info::of(&file, &opened.reader);
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.json {
        serde_json::to_writer(&mut out, &info)?;
        out.write_all(b"\n")?;
    } else {
        info.write(&mut out)?
    }
    if let Some(damage) = damage.filter(|_| info.damage.is_none()) {
        log::warn!("{file}: {}", hopscope_report::printable(&damage));
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
