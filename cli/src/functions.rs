//! `hopscope functions`: what can be measured, and why not the rest.
use anyhow::bail;
use clap::{ArgGroup, Args};
use hopscope_session::functions::{self, FunctionsRequest, Where};
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "binary"])))]
pub struct FunctionsArgs {
    /// List functions of every module mapped in this process
    #[arg(short, long, value_name = "PID")]
    pid: Option<i32>,
    /// List functions of a file, or of a program that runs or is in PATH
    #[arg(short, long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// List only these: name, module!name, glob or /regex/ (repeatable)
    ///
    /// A module is its file name, a link or path to it, or the name the process was started under.
    #[arg(short, long = "function", value_name = "PATTERN")]
    functions: Vec<String>,
    /// Exclude functions that match this pattern (repeatable)
    #[arg(short = 'x', long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Print one line per module: measurable functions, reasons for the others
    #[arg(long)]
    summary: bool,
    /// Include functions that exceptions could unwind, as record does
    #[arg(long)]
    assume_no_exceptions: bool,
    /// Print one JSON object per line on stdout
    #[arg(long)]
    json: bool,
}

pub fn run(args: FunctionsArgs) -> anyhow::Result<ExitCode> {
    let place = match (args.binary, args.pid) {
        (Some(path), _) => Where::File(path),
        (None, Some(pid)) => Where::Process(pid),
        (None, None) => bail!("give -p PID or -b FILE"),
    };
    let request = FunctionsRequest {
        place,
        functions: args.functions,
        exclude: args.exclude,
        assume_no_exceptions: args.assume_no_exceptions,
        is_summary: args.summary,
        json: args.json,
    };
    let out = BufWriter::new(std::io::stdout().lock());
    functions::list(&request, out)?;
    Ok(ExitCode::SUCCESS)
}
