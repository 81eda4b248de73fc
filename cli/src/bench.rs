//! `hopscope bench`: what hopscope costs here, beside the floor and the tools that are installed.
use anyhow::Context;
use clap::{Args, Subcommand};
use hopscope_bench::{Settings, envelope::Output};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Ticks per measured call: hot and round robin, beside the floor and other tools
    Probe(Common),
    /// How long a target stands still at attach and detach, beside the stop alone
    Attach(Common),
    /// Records a second that reach the disk, beside a plain write of the same bytes
    Recorder(Common),
}

#[derive(Args)]
struct Common {
    /// One JSON object per line: samples, then a summary
    #[arg(long)]
    json: bool,
    /// Fewer and shorter repetitions
    #[arg(long)]
    quick: bool,
    /// Also write the lines to DIR/BENCH.jsonl (by custom docs/results/DATE-HOST)
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Where the measured programs are built [default: target/bench, or the cache folder]
    #[arg(long, value_name = "DIR")]
    build_dir: Option<PathBuf>,
    /// The hopscope binary to measure [default: this one]
    #[arg(long, value_name = "PATH")]
    hopscope: Option<PathBuf>,
}

/// Beside a Cargo workspace's other build results, otherwise in the user's cache.
fn default_build_dir() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    if here.join("Cargo.toml").exists() {
        return Ok(here.join("target/bench"));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .context("no home directory; say --build-dir DIR")?;
    Ok(cache.join("hopscope/bench"))
}

impl Common {
    fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            hopscope: match &self.hopscope {
                Some(path) => path.clone(),
                None => std::env::current_exe().context("cannot tell my own path")?,
            },
            build_dir: match &self.build_dir {
                Some(dir) => std::path::absolute(dir)?,
                None => default_build_dir()?,
            },
            quick: self.quick,
            quiet: false,
        })
    }
}

pub fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let mut stdout = std::io::stdout();
    let (name, common, bench): (_, _, fn(&Settings, Output<'_>) -> _) = match &args.what {
        What::Probe(common) => ("probe", common, hopscope_bench::probe::run),
        What::Attach(common) => ("attach", common, hopscope_bench::attach::run),
        What::Recorder(common) => ("recorder", common, hopscope_bench::recorder::run),
    };
    let output = Output::new(name, &mut stdout, common.json, common.save.as_deref())?;
    let complete: bool = bench(&common.settings()?, output)?;
    Ok(ExitCode::from(if complete { 0 } else { 1 }))
}
