//! `hopscope`: see where every packet's time goes. This file is a table of contents.
#![forbid(unsafe_code)]
// Nothing of a binary can be reached from outside: `pub` means "the subcommand's own surface".
#![allow(unreachable_pub)]

use clap::{Args, FromArgMatches, Subcommand};
use hopscope_session::output;
use hopscope_trace::host;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

mod address;
mod bench;
mod check;
mod command;
mod detach;
mod diff;
mod event_file;
mod export;
mod functions;
mod help;
mod info;
mod json;
mod load;
mod logger;
mod method;
mod netns;
mod record;
mod report;
mod serving;
mod slice;
mod splice;
mod stack;
mod status;
mod test_hooks;
mod top;
mod units;
mod vnet;

#[derive(clap::Parser)]
#[command(name = "hopscope", version = test_hooks::VERSION, about = help::ABOUT, long_about = help::LONG)]
struct Cli {
    #[command(flatten)]
    verbosity: logger::Verbosity,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Record the calls of chosen functions in running processes, or of a command
    Record(record::RecordArgs),
    /// Trace packets through the kernel and show the time between hooks
    Slice(slice::SliceArgs),
    /// Show calls and times of chosen functions live, once a second
    Top(top::TopArgs),
    /// List functions that can be measured, and why others cannot
    Functions(functions::FunctionsArgs),
    /// Remove the probes of a killed recorder and save its records
    Detach(detach::DetachArgs),
    /// Check what this machine supports, and how to enable what is missing
    Check(check::CheckArgs),
    /// Show calls, times and call trees of a recording
    Report(report::ReportArgs),
    /// Compare two recordings and test differences for significance
    Diff(diff::DiffArgs),
    /// Convert a recording for other tools: flame graphs, tables, Perfetto, pcapng
    Export(export::ExportArgs),
    /// Show what a recording contains and how it was made
    Info(info::InfoArgs),
    /// Accelerate TCP between local programs: redirect data socket to socket (sockmap)
    #[command(subcommand)]
    Splice(splice::Verb),
    /// Serve, drive or simulate virtio-net queues and their notification policies
    Vnet(vnet::VnetArgs),
    /// Serve and connect with a TCP/IP stack of its own on a device, TAP or AF_XDP
    Stack(stack::StackArgs),
    /// Generate requests or packets at scheduled send times and measure latency
    Load(load::LoadArgs),
    /// Benchmark hopscope on this machine against a baseline and installed tools
    Bench(bench::BenchArgs),
    #[command(name = hopscope_session::attach::CALIBRATION, hide = true)]
    Calibrate,
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == slice::NSDUMP) {
        return nsdump(words);
    }
    let matches = help::command::<Cli>().get_matches_from(words);
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    logger::start(&cli.verbosity);
    let done = match cli.command {
        Command::Record(args) => record::run(args),
        Command::Slice(args) => slice::run(args, &cli.verbosity),
        Command::Top(args) => top::run(args),
        Command::Functions(args) => functions::run(args),
        Command::Detach(args) => detach::run(args),
        Command::Check(args) => check::run(args),
        Command::Report(args) => report::run(args, &cli.verbosity),
        Command::Diff(args) => diff::run(args, &cli.verbosity),
        Command::Export(args) => export::run(args),
        Command::Info(args) => info::run(args),
        Command::Splice(verb) => splice::run(verb),
        Command::Vnet(args) => vnet::run(args),
        Command::Stack(args) => stack::run(args),
        Command::Load(args) => load::run(args),
        Command::Bench(args) => bench::run(args, cli.verbosity.is_quiet()),
        Command::Calibrate => calibrated(),
    };
    done.unwrap_or_else(|error| status::failed(&error, 2))
}

/// The recorder measures a child of its own, to know what its probes cost.
fn calibrated() -> anyhow::Result<ExitCode> {
    hopscope_session::attach::be_calibrated()?;
    Ok(ExitCode::SUCCESS)
}

/// `hopscope slice` under the name that tcpdump's users know, in its help too.
fn nsdump(words: Vec<OsString>) -> ExitCode {
    let whole = help::command::<Cli>();
    let slice = whole.find_subcommand("slice").cloned();
    let command = slice
        .unwrap_or_default()
        .name(slice::NSDUMP)
        .bin_name(slice::NSDUMP)
        .before_help(help::examples_as("slice", slice::NSDUMP))
        // As tcpdump: what is given again counts.
        .args_override_self(true)
        .version(test_hooks::VERSION);
    let command = logger::Verbosity::augment_args(command);
    let matches = command.get_matches_from(words);
    let verbosity = logger::Verbosity::from_arg_matches(&matches);
    let args = slice::SliceArgs::from_arg_matches(&matches);
    let (verbosity, args) = match (verbosity, args) {
        (Ok(verbosity), Ok(args)) => (verbosity, args),
        (Err(error), _) | (_, Err(error)) => error.exit(),
    };
    logger::start(&verbosity);
    let done = slice::run(args, &verbosity);
    done.unwrap_or_else(|error| status::failed(&error, 2))
}
