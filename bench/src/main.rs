//! `hopscope-bench`: what `hopscope bench` starts.
#![forbid(unsafe_code)]

mod settings;

use clap::{ArgAction, Args, Parser};
use hopscope_bench as benches;
use hopscope_bench_flags::{Bench, BenchArgs};
use hopscope_compare::commands;
use hopscope_compare::output::Output;
use hopscope_event::Printable;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Measure what hopscope costs on this machine, beside its baseline and other tools
#[derive(Parser)]
#[command(name = "hopscope-bench", version)]
struct Cli {
    #[command(flatten)]
    of_every_command: OfEveryCommand,
    #[command(flatten)]
    args: BenchArgs,
}

/// What `hopscope` takes with every command and passes on. A bench logs nothing.
#[derive(Args)]
struct OfEveryCommand {
    #[arg(short, long, action = ArgAction::Count, global = true, hide = true)]
    verbose: u8,
    #[arg(short, long, global = true, hide = true)]
    quiet: bool,
    #[arg(long, global = true, hide = true)]
    color: Option<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli.args.bench, cli.of_every_command.quiet) {
        Ok(complete) => ExitCode::from(if complete { 0 } else { 1 }),
        // `hopscope bench … | head` is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hopscope: {}", Printable::new(&error.to_string()));
            ExitCode::from(2)
        }
    }
}

/// True when everything that the bench is there for was measured; of `compare`, when the verdict is an expected one.
fn run(bench: &Bench, quiet: bool) -> anyhow::Result<bool> {
    let (name, common) = bench.named();
    let mut stdout = std::io::stdout();
    let output = Output::new(name, &mut stdout, common.json, common.save.as_deref())?;
    let settings = settings::settings(common, quiet)?;
    let kernel = |dir: &Option<_>| settings::kernel(dir.as_ref(), &settings);
    Ok(match bench {
        Bench::Probe(_) => benches::probe::run(&settings, output)?,
        Bench::Counters(_) => benches::counters::run(&settings, output)?,
        Bench::Attach(_) => benches::attach::run(&settings, output)?,
        Bench::Recorder(_) => benches::recorder::run(&settings, output)?,
        Bench::Analyze(_) => benches::analyze::run(&settings, output)?,
        Bench::Load(_) => benches::load::run(&settings, output)?,
        Bench::Slice(_) => benches::slice::run(&settings, output)?,
        Bench::Splice(_) => benches::splice::run(&settings, output)?,
        Bench::SpliceGuest(guest) => {
            benches::splice::guest::run(&settings, &kernel(&guest.kernel), output)?
        }
        Bench::Vnet(_) => benches::vnet::run(&settings, output)?,
        Bench::VnetGuest(guest) => {
            benches::vnet::guest::run(&settings, &kernel(&guest.kernel), output)?
        }
        Bench::Stack(_) => benches::unmodified::run(&settings, output)?,
        Bench::StackEngine(_) => benches::stack::run(&settings, output)?,
        Bench::CaseTcpSend(_) => benches::slice::send::run(&settings, output)?,
        Bench::CaseDensity(case) => benches::density::run(&settings, case.demo.as_ref(), output)?,
        Bench::CasePropagation(case) => {
            benches::propagation::run(&settings, case.demo.as_ref(), output)?
        }
        Bench::CaseLocality(case) => benches::locality::run(&settings, case.demo.as_ref(), output)?,
        Bench::Coverage(coverage) => benches::coverage::run(&settings, &coverage.programs, output)?,
        Bench::Html(_) => benches::html::run(&settings, output)?,
        Bench::Compare(args) => commands::run(&args.compared(quiet), output)?,
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.any(|cause: &std::io::Error| cause.kind() == ErrorKind::BrokenPipe)
}
